package htb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Handles of weir's qdiscs.
const (
	rootHandle  = 0x7765_0000
	classHandle = 0x7766_0000
)

// ticks are the kernel's unit of times in traffic control: 64 ns.
func ticks(d time.Duration) uint32 { return uint32(d / 64) }

// What linux/pkt_sched.h says and the library does not have.
const (
	htbVersion  = 3
	ethernetATM = 2               // TC_LINKLAYER_ATM
	ethernetAny = 1               // TC_LINKLAYER_ETHERNET
	tbfRate     = 125_000_000_000 // bytes per second; it also tells weir's root from others with its handle
)

// send changes a qdisc or class and waits for the kernel's answer.
func send(message uint16, flags int, what nl.TcMsg, kind string, options *nl.RtAttr) error {
	r := nl.NewNetlinkRequest(int(message), flags|unix.NLM_F_ACK)
	what.Family = nl.FAMILY_ALL
	r.AddData(&what)
	if kind != "" {
		r.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated(kind)))
	}
	if options != nil {
		r.AddData(options)
	}
	_, err := r.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// putSplitter sets the root, which cuts super-packets and lets everything through at once.
func putSplitter(ifindex int, p *Plan, flags int) error {
	spec := nl.TcRateSpec{Linklayer: ethernetAny, Rate: ^uint32(0)}
	options := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	q := nl.TcTbfQopt{Rate: spec, Limit: 1 << 20}
	options.AddRtAttr(nl.TCA_TBF_PARMS, q.Serialize())
	options.AddRtAttr(nl.TCA_TBF_RATE64, nl.Uint64Attr(tbfRate))
	options.AddRtAttr(nl.TCA_TBF_BURST, nl.Uint32Attr(p.Largest))
	return send(unix.RTM_NEWQDISC, flags, nl.TcMsg{Ifindex: int32(ifindex), Handle: rootHandle, Parent: netlink.HANDLE_ROOT}, "tbf", options)
}

func addHTB(ifindex int, p *Plan) error {
	options := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	q := nl.TcHtbGlob{Version: htbVersion, Rate2Quantum: 10, Defcls: defaultMinor(p)}
	options.AddRtAttr(nl.TCA_HTB_INIT, q.Serialize())
	return send(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_EXCL,
		nl.TcMsg{Ifindex: int32(ifindex), Handle: classHandle, Parent: rootHandle | 1}, "htb", options)
}

// defaultMinor is the class for packets that name none. Without one it is none that exists: they
// are not shaped.
func defaultMinor(p *Plan) uint32 {
	if p.Default < 0 {
		return 0
	}
	return uint32(p.Default + 1)
}

// classID is the handle of a class of the plan.
func classID(at int) uint32 { return classHandle | uint32(at+1) }

// putClass adds a class, or changes it.
func putClass(ifindex int, p *Plan, at int) error {
	c := &p.Classes[at]
	spec := nl.TcRateSpec{Linklayer: ethernetAny, Overhead: p.Overhead, Mpu: p.MPU}
	if p.ATM {
		spec.Linklayer = ethernetATM
	}
	rate, ceil := spec, spec
	rate.Rate, ceil.Rate = uint32(min(c.Rate, 1<<32-1)), uint32(min(c.Ceil, 1<<32-1))
	q := nl.TcHtbCopt{
		Rate: rate, Ceil: ceil, Prio: c.Priority, Quantum: c.Quantum,
		Buffer: bufferOf(c.Burst, c.Rate), Cbuffer: bufferOf(c.Burst, c.Ceil),
	}
	options := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	options.AddRtAttr(nl.TCA_HTB_PARMS, q.Serialize())
	if c.Rate >= 1<<32 {
		options.AddRtAttr(nl.TCA_HTB_RATE64, nl.Uint64Attr(c.Rate))
	}
	if c.Ceil >= 1<<32 {
		options.AddRtAttr(nl.TCA_HTB_CEIL64, nl.Uint64Attr(c.Ceil))
	}
	parent := uint32(classHandle)
	if c.Parent >= 0 {
		parent = classID(c.Parent)
	}
	return send(unix.RTM_NEWTCLASS, unix.NLM_F_CREATE|unix.NLM_F_REPLACE,
		nl.TcMsg{Ifindex: int32(ifindex), Handle: classID(at), Parent: parent}, "htb", options)
}

// bufferOf is the time that a burst takes.
func bufferOf(burst uint32, rate uint64) uint32 {
	return ticks(time.Duration(float64(burst) / float64(rate) * float64(time.Second)))
}

const (
	leafCake  = "cake"
	leafCodel = "fq_codel"
	leafFIFO  = "bfifo"
)

// kinds returns the kinds of qdiscs that may hold the packets of a leaf, the best first.
func (l *Leaf) kinds() []string {
	if l.Hosts != NoHosts {
		return []string{leafCake, leafCodel, leafFIFO}
	}
	return []string{leafCodel, leafFIFO}
}

// Options of CAKE (linux/pkt_sched.h). It shapes nothing: HTB does.
const (
	cakeDiffserv   = 3
	cakeFlowMode   = 5
	cakeRTT        = 7
	cakeTarget     = 8
	cakeMemory     = 10
	cakeBestEffort = 3 // CAKE_DIFFSERV_BESTEFFORT: one class, as the rules have chosen it
)

// putLeaf adds the queue of a class, or changes that with a handle. Without a handle it takes the place of another kind.
func putLeaf(ifindex, at int, l *Leaf, kind string, handle uint32) error {
	options := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	switch kind {
	case leafCodel:
		options.AddRtAttr(nl.TCA_FQ_CODEL_TARGET, nl.Uint32Attr(uint32(l.Target/time.Microsecond)))
		options.AddRtAttr(nl.TCA_FQ_CODEL_INTERVAL, nl.Uint32Attr(uint32(l.Interval/time.Microsecond)))
		options.AddRtAttr(nl.TCA_FQ_CODEL_ECN, nl.Uint32Attr(asNumber(l.ECN)))
		if l.Flows > 0 && handle == 0 { // the kernel cannot change it
			options.AddRtAttr(nl.TCA_FQ_CODEL_FLOWS, nl.Uint32Attr(l.Flows))
		}
		options.AddRtAttr(nl.TCA_FQ_CODEL_LIMIT, nl.Uint32Attr(orDefault(l.Limit, codelLimit)))
		if l.Quantum > 0 {
			options.AddRtAttr(nl.TCA_FQ_CODEL_QUANTUM, nl.Uint32Attr(l.Quantum))
		}
	case leafCake:
		options.AddRtAttr(cakeDiffserv, nl.Uint32Attr(cakeBestEffort))
		options.AddRtAttr(cakeFlowMode, nl.Uint32Attr(uint32(l.Hosts)))
		options.AddRtAttr(cakeRTT, nl.Uint32Attr(uint32(l.Interval/time.Microsecond)))
		options.AddRtAttr(cakeTarget, nl.Uint32Attr(uint32(l.Target/time.Microsecond)))
		options.AddRtAttr(cakeMemory, nl.Uint32Attr(l.Memory))
	case leafFIFO:
		options.Data = nl.Uint32Attr(l.Bytes)
	}
	return send(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, nl.TcMsg{Ifindex: int32(ifindex), Handle: handle, Parent: classID(at)}, kind, options)
}

// The kernel's own values.
const (
	codelLimit = 10_240
	codelFlows = 1024
)

func orDefault(n, otherwise uint32) uint32 {
	if n == 0 {
		return otherwise
	}
	return n
}

func asNumber(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}

// A found is a qdisc or class of the kernel's.
type found struct {
	ifindex        int
	handle, parent uint32
	kind           string
	options        []byte
	stats          Stats
}

// dump reads all qdiscs of the namespace, or the classes of a device.
func dump(message uint16, ifindex int) ([]found, error) {
	r := nl.NewNetlinkRequest(int(message), unix.NLM_F_DUMP)
	r.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(ifindex)})
	answers, err := r.Execute(unix.NETLINK_ROUTE, 0)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, err
	}
	var all []found
	for _, answer := range answers {
		if len(answer) < nl.SizeofTcMsg {
			continue
		}
		head := nl.DeserializeTcMsg(answer)
		attributes, err := nl.ParseRouteAttrAsMap(answer[nl.SizeofTcMsg:])
		if err != nil {
			return nil, fmt.Errorf("read a qdisc: %w", err)
		}
		f := found{
			ifindex: int(head.Ifindex), handle: head.Handle, parent: head.Parent,
			kind: strings.TrimRight(string(attributes[nl.TCA_KIND].Value), "\x00"), options: attributes[nl.TCA_OPTIONS].Value,
		}
		if f.stats, err = statsOf(attributes[nl.TCA_STATS2].Value); err != nil {
			return nil, err
		}
		if ifindex == 0 || f.ifindex == ifindex {
			all = append(all, f)
		}
	}
	return all, nil
}

// statsOf reads what the kernel has counted.
func statsOf(value []byte) (s Stats, err error) {
	if len(value) == 0 {
		return s, nil
	}
	parts, err := nl.ParseRouteAttrAsMap(value)
	if err != nil {
		return s, fmt.Errorf("read the counters of a qdisc: %w", err)
	}
	if basic := parts[nl.TCA_STATS_BASIC].Value; len(basic) >= 12 {
		s.Bytes, s.Packets = binary.NativeEndian.Uint64(basic), uint64(binary.NativeEndian.Uint32(basic[8:]))
	}
	if wide := parts[nl.TCA_STATS_PKT64].Value; len(wide) >= 8 {
		s.Packets = binary.NativeEndian.Uint64(wide)
	}
	if queue := parts[nl.TCA_STATS_QUEUE].Value; len(queue) >= 12 {
		s.Backlog, s.Drops = uint64(binary.NativeEndian.Uint32(queue[4:])), uint64(binary.NativeEndian.Uint32(queue[8:]))
	}
	s.app = parts[nl.TCA_STATS_APP].Value
	return s, nil
}

// wideOption returns a number of 64 bits among the options of a qdisc; 0: there is none.
func (f *found) wideOption(number uint16) uint64 {
	all, err := nl.ParseRouteAttrAsMap(f.options)
	if err != nil || len(all[number].Value) < 8 {
		return 0
	}
	return binary.NativeEndian.Uint64(all[number].Value)
}

// option returns a number among the options of a qdisc.
func (f *found) option(number uint16) (uint32, bool) {
	all, err := nl.ParseRouteAttrAsMap(f.options)
	if err != nil || len(all[number].Value) < 4 {
		return 0, false
	}
	return binary.NativeEndian.Uint32(all[number].Value), true
}
