package collect

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/host/doctor"
	"weir/internal/host/netif"
)

func sortIRQs(irqs []doctor.IRQ) {
	slices.SortFunc(irqs, func(a, b doctor.IRQ) int { return cmp.Compare(a.Number, b.Number) })
}

// settings reads what ethtool tells of a device. That virtual ones tell little is
// nothing to note.
func (r *reader) settings(n *doctor.Interface) {
	e := r.devices.ethtool
	note := func(what string, err error) {
		if n.Kind == string(netif.Physical) {
			r.lacks("interfaces."+n.Name+"."+what, err)
		}
	}
	n.Driver = netif.Driver(n.Name)
	if features, err := e.Features(n.Name); err == nil {
		n.Features = features
	} else {
		note("features", err)
	}
	if c, err := e.GetChannels(n.Name); err == nil {
		n.Channels = &doctor.Channels{Combined: int(c.CombinedCount), MaxCombined: int(c.MaxCombined),
			Rx: int(c.RxCount), MaxRx: int(c.MaxRx), Tx: int(c.TxCount), MaxTx: int(c.MaxTx)}
	} else {
		note("channels", err)
	}
	if g, err := e.GetRing(n.Name); err == nil {
		n.Rings = &doctor.Rings{Rx: int(g.RxPending), MaxRx: int(g.RxMaxPending), Tx: int(g.TxPending), MaxTx: int(g.TxMaxPending)}
	} else {
		note("rings", err)
	}
	if p, err := e.GetPause(n.Name); err == nil {
		n.Pause = &doctor.Pause{Autoneg: p.Autoneg != 0, Rx: p.RxPause != 0, Tx: p.TxPause != 0}
	} else {
		note("pause", err)
	}
	if c, err := e.GetCoalesce(n.Name); err == nil {
		n.Coalesce = &doctor.Coalesce{Adaptive: c.UseAdaptiveRxCoalesce != 0, RxUsecs: int(c.RxCoalesceUsecs), RxFrames: int(c.RxMaxCoalescedFrames)}
	} else {
		note("coalesce", err)
	}
	if eee, err := r.devices.eee(n.Name); err == nil {
		n.EEE = eee
	} else {
		note("eee", err)
	}
	r.speed(n, note)
	r.spreading(n, note)
}

// linkSettings is struct ethtool_link_settings with room for the three masks of
// link modes behind it.
type linkSettings struct {
	command, speed                                          uint32
	duplex, port, phy, autoneg, mdio, mdix, mdixControl     uint8
	words                                                   int8 // of each mask; negative: how many the kernel wants
	transceiver, masterSlave, masterSlaveState, rateMatched uint8
	reserved                                                [7]uint32
	masks                                                   [3 * 127]uint32 // supported, advertised, the partner's
}

// Values of ethtool_link_settings, and the bits of link modes of copper ports by
// their speed (linux/ethtool.h): what a port falls back from.
const (
	speedUnknown = 1<<32 - 1
	duplexHalf   = 0
	duplexFull   = 1
)

var modes = []struct{ bit, mbit int }{{3, 100}, {5, 1000}, {47, 2500}, {48, 5000}, {12, 10000}}

func (r *reader) speed(n *doctor.Interface, note func(string, error)) {
	l, err := r.devices.link(n.Name)
	if err != nil {
		note("mbit", err)
		return
	}
	if l.speed != speedUnknown {
		n.Mbit = int(l.speed)
	} else {
		note("mbit", errors.New("no link, or the driver does not say"))
	}
	switch l.duplex {
	case duplexHalf:
		n.Duplex = "half"
	case duplexFull:
		n.Duplex = "full"
	}
	for _, m := range modes {
		if l.masks[m.bit/32]&(1<<(m.bit%32)) != 0 && m.bit/32 < int(l.words) {
			n.MaxMbit = max(n.MaxMbit, m.mbit)
		}
	}
}

// link asks twice: the first answer is how long the masks are.
func (d *devices) link(name string) (*linkSettings, error) {
	first := &linkSettings{command: getLink}
	if err := d.ioctl(name, unsafe.Pointer(first)); err != nil {
		return nil, err
	}
	if first.words >= 0 {
		return nil, fmt.Errorf("the kernel wants masks of %d words", first.words)
	}
	second := &linkSettings{command: getLink, words: -first.words}
	if err := d.ioctl(name, unsafe.Pointer(second)); err != nil {
		return nil, err
	}
	return second, nil
}

// spreading reads how received flows are spread over queues.
func (r *reader) spreading(n *doctor.Interface, note func(string, error)) {
	hash := map[string]string{}
	for _, flow := range flows {
		fields, err := r.devices.hash(n.Name, flow.number)
		if err != nil {
			note("rss", err)
			return
		}
		hash[flow.name] = fields
	}
	n.RSS = &doctor.RSS{Hash: hash}
	table, err := r.devices.ethtool.GetIndir(n.Name)
	if err != nil {
		return
	}
	for i := range min(int(table.Size), len(table.RingIndex)) {
		n.RSS.Indirection = append(n.RSS.Indirection, int(table.RingIndex[i]))
	}
	if on, err := r.devices.symmetric(n.Name); err == nil {
		n.RSS.Symmetric = &on
	}
}

// hashKey is struct ethtool_rxfh with room for the table and the longest key.
type hashKey struct {
	command, context, table, key uint32
	function, transformation     uint8
	reserved                     [6]byte
	config                       [4096 + 256]byte
}

// symmetric reports whether both directions of a flow hash alike: by what the card
// does before it hashes, or by a key that repeats itself each 16 bits.
func (d *devices) symmetric(name string) (bool, error) {
	request := &hashKey{command: getKey}
	if err := d.ioctl(name, unsafe.Pointer(request)); err != nil { // how long they are
		return false, err
	}
	if request.transformation != 0 {
		return true, nil
	}
	table, key := request.table, request.key
	if key < 4 || int(4*table+key) > len(request.config) {
		return false, fmt.Errorf("a key of %d bytes behind a table of %d", key, table)
	}
	*request = hashKey{command: getKey, table: table, key: key}
	if err := d.ioctl(name, unsafe.Pointer(request)); err != nil {
		return false, err
	}
	bytes := request.config[4*table : 4*table+key]
	for i := 2; i < len(bytes); i++ {
		if bytes[i] != bytes[i-2] {
			return false, nil
		}
	}
	return true, nil
}

// Requests and structures of linux/ethtool.h that the library does not have.
const (
	getEEE  = 0x44 // ETHTOOL_GEEE
	getLink = 0x4c // ETHTOOL_GLINKSETTINGS
	getHash = 0x29 // ETHTOOL_GRXFH
	getKey  = 0x46 // ETHTOOL_GRSSH
)

// flows are the protocols of struct ethtool_rxnfc.
var flows = []struct {
	name   string
	number uint32
}{{"tcp4", 0x01}, {"udp4", 0x02}, {"tcp6", 0x05}, {"udp6", 0x06}}

// hashFields are the bits RXH_ by the letters of ethtool -N.
var hashFields = []struct {
	bit    uint64
	letter string
}{{1 << 1, "m"}, {1 << 2, "v"}, {1 << 3, "t"}, {1 << 4, "s"}, {1 << 5, "d"}, {1 << 6, "f"}, {1 << 7, "n"}}

type eeeRequest struct {
	command, supported, advertised, partner uint32
	active, enabled, lpi, timer             uint32
	reserved                                [2]uint32
}

type hashRequest struct {
	command, flow uint32
	data          uint64
	rest          [256]byte // struct ethtool_rxnfc is longer, and not used here
}

func (d *devices) eee(name string) (*doctor.EEE, error) {
	request := &eeeRequest{command: getEEE}
	if err := d.ioctl(name, unsafe.Pointer(request)); err != nil {
		return nil, err
	}
	return &doctor.EEE{Enabled: request.enabled != 0, Active: request.active != 0}, nil
}

func (d *devices) hash(name string, flow uint32) (string, error) {
	request := &hashRequest{command: getHash, flow: flow}
	if err := d.ioctl(name, unsafe.Pointer(request)); err != nil {
		return "", err
	}
	var fields strings.Builder
	for _, f := range hashFields {
		if request.data&f.bit != 0 {
			fields.WriteString(f.letter)
		}
	}
	return fields.String(), nil
}

// ioctl asks the driver. Its error is the kernel's: "operation not supported".
func (d *devices) ioctl(name string, data unsafe.Pointer) error {
	var pin runtime.Pinner
	pin.Pin(data) // the kernel gets its address inside of another structure
	defer pin.Unpin()
	var request struct {
		name [unix.IFNAMSIZ]byte
		data uintptr
		rest [16]byte
	}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	request.data = uintptr(data)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(d.fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return errno
	}
	return nil
}

// disciplines adds the queueing disciplines with their rates, where they have one.
func (d *devices) disciplines(c *doctor.Counters, names map[int]string) error {
	all, err := d.netlink.QdiscList(nil)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return err
	}
	c.Qdiscs = []doctor.Qdisc{}
	for _, q := range all {
		a := q.Attrs()
		one := doctor.Qdisc{Interface: names[a.LinkIndex], Kind: q.Type(), Handle: handle(a.Handle), Parent: handle(a.Parent)}
		if tbf, ok := q.(*netlink.Tbf); ok {
			one.RateBits = tbf.Rate * 8
		}
		if s := a.Statistics; s != nil {
			if s.Basic != nil {
				one.Bytes, one.Packets = s.Basic.Bytes, uint64(s.Basic.Packets)
			}
			if s.Queue != nil {
				one.Drops, one.Overlimits = uint64(s.Queue.Drops), uint64(s.Queue.Overlimits)
				one.Requeues, one.Backlog = uint64(s.Queue.Requeues), uint64(s.Queue.Backlog)
			}
		}
		c.Qdiscs = append(c.Qdiscs, one)
	}
	return d.shaperRates(c.Qdiscs, names)
}

// handle writes a number as tc does; the two special parents have words.
func handle(h uint32) string {
	switch h {
	case netlink.HANDLE_ROOT:
		return "root"
	case netlink.HANDLE_INGRESS:
		return "ingress"
	}
	return fmt.Sprintf("%x:%x", h>>16, h&0xffff)
}
