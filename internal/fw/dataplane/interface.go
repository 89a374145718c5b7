package dataplane

import (
	"fmt"
	"net"
	"sync/atomic"

	"weir/internal/fw/limits"
	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/internal/killpoint"
)

// InterfaceFlags are what the programs must know of an interface: the bits
// INTERFACE_* of bpf/shared.h.
type InterfaceFlags uint32

// Flags of an interface.
const (
	InterfacePresent  InterfaceFlags = 1 << iota // weir's programs are attached
	InterfaceSkip                                // set skip on
	InterfaceL3                                  // no Ethernet header (tun, WireGuard, ppp)
	InterfaceXDP                                 // XDP judges what comes in; TCX ingress only marks
	InterfaceTarget                              // can be reached by an XDP redirect
	InterfaceLoopback                            // no sanity
	InterfaceStatic4                             // has an IPv4 address without end of life: DHCP only if asked
	InterfaceStatic6                             // has a global IPv6 address without end of life: likewise
	interfaceCapture                             // packets go by the capturing programs
	interfaceBare                                // XDP found no room for metadata
	interfaceDevmap                              // redirects to it go by its prefetch device
	interfacePrefetch                            // packets may go there after a first pass
)

// MaxIfindex is one more than the highest index of an interface that can be
// known; packets of others are dropped with reason "interface".
const MaxIfindex = limits.MaxIfindex

// MaxInterfaces is how many interfaces are counted apart; the rest are counted
// together, under Ifindex 0.
const MaxInterfaces = 256

// An Interface is what the programs must know of one.
type Interface struct {
	MAC   net.HardwareAddr // 6 bytes; empty where the device has no Ethernet header
	MTU   uint32           // bytes of an IP packet
	Flags InterfaceFlags
	// Parent is the interface that carries this one's frames, with Tag in them; 0: none.
	// XDP sends such frames to the parent itself. It takes them for this interface where
	// they come in only if SetLogicals says so.
	Parent  int
	Tag     uint16 // priority and VLAN id, or PPPoE session
	TagType uint16 // EtherType of the tag
}

// SetInterface tells the programs of an interface, and gives it counters of its
// own at the first call.
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
	copy(raw.Mac[:], i.MAC)
	atomic.StoreUint32(&raw.Mtu, i.MTU)
	if i.Parent == 0 {
		raw.Front = 0
	}
	raw.Tag, raw.TagType = i.Tag, fromWire(i.TagType)
	atomic.StoreUint32(&raw.Parent, uint32(i.Parent))
	d.setFlags(raw, i.Flags)
	killpoint.Done("tell of interface %d", ifindex)
	return nil
}

// setFlags sets an interface's flags, but for the one that packets set: what one of
// them has paid for holds for as long as the interface is there; and for those that
// Prefetch sets.
func (d *Dataplane) setFlags(raw *xdpInterface, flags InterfaceFlags) {
	for {
		was := atomic.LoadUint32(&raw.Flags)
		now := d.withCapture(flags) | InterfaceFlags(was)&(interfaceBare|interfaceDevmap|interfacePrefetch)
		if atomic.CompareAndSwapUint32(&raw.Flags, was, uint32(now)) {
			return
		}
	}
}

// RemoveInterface forgets an interface that is gone. Its counters are another's
// next, and so may its index be: the states of link-local addresses, which are
// the interface's own, end with it, and no tagged frame belongs to it any more.
func (d *Dataplane) RemoveInterface(ifindex int) error {
	raw, err := d.interfaceAt(ifindex)
	if err != nil {
		return err
	}
	d.forgetLogicals(func(carrier, logical int) bool { return carrier == ifindex || logical == ifindex })
	*raw = xdpInterface{}
	d.View().KillStates(func(s *state.State) bool { return int(s.Tuple[0].Zone) == ifindex })
	killpoint.Done("forget interface %d", ifindex)
	return nil
}

// Bare reports whether XDP has found out that an interface's driver has no room
// for its verdicts. TCX judges there since, and XDP is of no use.
func (d *Dataplane) Bare(ifindex int) bool {
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

// freeCounters returns the first of a set of counters that no interface has, emptied;
// or those of the last, which the interfaces beyond share. Number 0 stays
// empty: it is that of interfaces nobody has told of.
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
