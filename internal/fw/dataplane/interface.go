package dataplane

import (
	"fmt"
	"math"
	"net"
	"sync/atomic"

	"weir/internal/fw/limits"
	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/internal/killpoint"
)

// InterfaceFlags are an interface's properties that the programs need: the bits
// INTERFACE_* of bpf/shared.h.
type InterfaceFlags uint32

// Flags of an interface.
const (
	InterfacePresent   InterfaceFlags = 1 << iota // weir's programs are attached
	InterfaceSkip                                 // under set skip
	InterfaceL3                                   // no Ethernet header (tun, WireGuard, ppp)
	InterfaceXDP                                  // XDP handles incoming packets; TCX ingress only marks
	InterfaceTarget                               // can be reached by an XDP redirect
	InterfaceLoopback                             // no sanity checks
	InterfaceStatic4                              // has a permanent IPv4 address: accept DHCP replies only if asked for
	InterfaceStatic6                              // has a permanent global IPv6 address: likewise
	interfaceCapture                              // packets go through the capture programs
	interfaceBare                                 // XDP found no room for metadata
	interfaceDevmap                               // redirects to it go through its prefetch device
	interfacePrefetch                             // packets may go there after a first pass
	InterfaceStacked                              // gives packets on to the device below it
	InterfaceScattered                            // a target that also takes frames in several buffers
	InterfaceProgram                              // the device of a program of divert-packet
	InterfaceRead                                 // such a program has it open
	InterfaceEtherIn                              // frames that come in meet ether rules
	InterfaceEtherOut                             // frames that leave do: XDP does not redirect there
	InterfaceHolds                                // a qdisc holds what leaves: likewise
	InterfaceFramed                               // with InterfaceL3: what comes in may have an Ethernet header
)

// MaxIfindex is one more than the highest interface index that weir can handle. If
// programs are attached to another interface, they drop its packets with reason
// "interface".
const MaxIfindex = limits.MaxIfindex

// MaxInterfaces is how many interfaces have their own counters. The rest are counted
// together, under Ifindex 0.
const MaxInterfaces = 256

// An Interface is what the programs must know of an interface.
type Interface struct {
	MAC   net.HardwareAddr // 6 bytes; empty if the device has no Ethernet header
	MTU   uint32           // bytes of an IP packet
	Flags InterfaceFlags
	// Parent is the interface that carries this one's frames, with Tag in them. 0
	// means none. XDP sends such frames to the parent itself. Incoming frames count
	// as this interface's only if SetLogicals says so.
	Parent  int
	Tag     uint16 // priority and VLAN id, or PPPoE session
	TagType uint16 // EtherType of the tag
	// Of a PPPoE session: the index of the interface's line, in whose place the
	// concentrator's MAC is kept. The indexes must be near each other.
	Line int
	Peer net.HardwareAddr
}

// maxLineDistance is how far the index of a line may be from that of its interface.
const maxLineDistance = math.MaxInt8

// SetInterface describes an interface to the programs. The first call gives it its own
// counters.
func (d *Dataplane) SetInterface(ifindex int, i Interface) error {
	raw, err := d.interfaceAt(ifindex)
	if err != nil {
		return err
	}
	if i.Parent < 0 || i.Parent >= MaxIfindex {
		return fmt.Errorf("interface %d: its parent's index is %d, must be less than %d", ifindex, i.Parent, MaxIfindex)
	}
	if raw.Counters == 0 {
		if raw.Counters, err = d.freeCounters(); err != nil {
			return err
		}
	}
	if err := d.setPeer(raw, ifindex, &i); err != nil {
		return err
	}
	copy(raw.Mac[:], i.MAC)
	atomic.StoreUint32(&raw.Mtu, i.MTU)
	if i.Parent == 0 {
		raw.Front = 0
	}
	raw.Tag, raw.TagType = i.Tag, fromWire(i.TagType)
	atomic.StoreUint32(&raw.Parent, uint32(i.Parent))
	const stack = InterfaceEtherOut | InterfaceHolds
	if d.setFlags(raw, i.Flags)&stack != i.Flags&stack {
		d.BumpRoutes() // next hops know whether XDP reaches them
	}
	killpoint.Done("tell of interface %d", ifindex)
	return nil
}

// setPeer says who is at the other end of a PPPoE session.
func (d *Dataplane) setPeer(raw *xdpInterface, ifindex int, i *Interface) error {
	if i.Line == 0 {
		raw.Line = 0
		return nil
	}
	line, err := d.interfaceAt(i.Line)
	if err != nil {
		return err
	}
	distance := i.Line - ifindex
	if distance == 0 || max(distance, -distance) > maxLineDistance {
		return fmt.Errorf("interface %d: the index of its line is %d, must be at most %d away", ifindex, i.Line, maxLineDistance)
	}
	copy(line.Mac[:], i.Peer)
	raw.Line = int8(distance)
	return nil
}

// HasSession reports whether XDP has a session open on a PPPoE interface. Packets close it when the
// concentrator ends it.
func (d *Dataplane) HasSession(ifindex int) bool {
	raw, err := d.interfaceAt(ifindex)
	return err == nil && raw.Line != 0
}

// Heard returns a number that is another one when XDP has had packets of a session since, with a pause of
// seconds between. line is the index of the line of the session's interface.
func (d *Dataplane) Heard(line int) uint32 {
	raw, err := d.interfaceAt(line)
	if err != nil {
		return 0
	}
	return atomic.LoadUint32(&raw.Asked)
}

// setFlags sets an interface's flags, except two kinds. The flag that packets set stays
// for as long as the interface exists, because finding it out costs a packet. Prefetch
// sets its own flags. It returns the flags before.
func (d *Dataplane) setFlags(raw *xdpInterface, flags InterfaceFlags) InterfaceFlags {
	for {
		was := atomic.LoadUint32(&raw.Flags)
		now := d.withCapture(flags) | InterfaceFlags(was)&(interfaceBare|interfaceDevmap|interfacePrefetch)
		if atomic.CompareAndSwapUint32(&raw.Flags, was, uint32(now)) {
			return InterfaceFlags(was)
		}
	}
}

// RemoveInterface forgets an interface that is gone. Another interface may reuse its
// counters and its index. So the states of link-local addresses on it end, and no tagged
// frame belongs to it any more.
func (d *Dataplane) RemoveInterface(ifindex int) error {
	if ifindex >= MaxIfindex {
		return nil // it was never known
	}
	raw, err := d.interfaceAt(ifindex)
	if err != nil {
		return err
	}
	d.forgetLogicals(func(carrier, logical int) bool { return carrier == ifindex || logical == ifindex })
	delete(d.spreads, ifindex)
	*raw = xdpInterface{}
	if err := d.SetQueues(ifindex); err != nil {
		return err
	}
	d.View().KillStates(func(s *state.State) bool { return int(s.Tuple[0].Zone) == ifindex })
	killpoint.Done("forget interface %d", ifindex)
	return nil
}

// LacksHeadroom reports whether XDP found that an interface's driver has no room for its verdicts.
// TCX filters there since then, and XDP is of no use.
func (d *Dataplane) LacksHeadroom(ifindex int) bool {
	raw, err := d.interfaceAt(ifindex)
	return err == nil && InterfaceFlags(atomic.LoadUint32(&raw.Flags))&interfaceBare != 0
}

func (d *Dataplane) interfaceAt(ifindex int) (*xdpInterface, error) {
	all := &d.tables.shared.Interfaces
	if ifindex < 1 || ifindex >= len(all) {
		return nil, fmt.Errorf("interface %d: index must be 1 to %d", ifindex, len(all)-1)
	}
	return (*xdpInterface)(&all[ifindex]), nil
}

// freeCounters returns the first index of an unused set of counters, set to 0. If none is
// free, it returns the last set, which the remaining interfaces share. Set 0 is never
// assigned: it counts for interfaces that weir was not told about.
func (d *Dataplane) freeCounters() (uint32, error) {
	used := make([]bool, MaxInterfaces+1)
	for i := range d.tables.shared.Interfaces {
		used[d.tables.shared.Interfaces[i].Counters/uint32(reason.Count)] = true
	}
	for number := uint32(1); number < MaxInterfaces; number++ {
		if !used[number] {
			return number * uint32(reason.Count), d.emptyCounters(number)
		}
	}
	return MaxInterfaces * uint32(reason.Count), nil
}

func (d *Dataplane) emptyCounters(number uint32) error {
	empty, err := newPerCPU[xdpCounter]()
	if err != nil {
		return err
	}
	for r := range uint32(reason.Count) {
		if err := d.tables.maps[mapInterfaceCounters].Put(number*uint32(reason.Count)+r, empty); err != nil {
			return fmt.Errorf("empty an interface's counters: %w", err)
		}
	}
	return nil
}
