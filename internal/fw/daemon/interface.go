package daemon

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/shaper"
	"weir/internal/host/netif"
	"weir/pf/resolve"
)

// updateInterfaces updates the interfaces and addresses that the dataplane knows.
func (b *box) updateInterfaces(m *machine) error {
	b.above = m.links
	locals := b.localnets(m)
	if err := b.found.localnetOff(m.names(), locals); err != nil { // before set skip opens an interface
		return err
	}
	holding := b.hold(m)
	if err := errors.Join(holding, b.setInterfaces(m, nil)); err != nil {
		return err
	}
	if err := b.found.localnetOn(locals); err != nil {
		return err
	}
	if err := b.holdOn(); err != nil {
		return err
	}
	b.links = m.links
	return b.noteInterfaces(m)
}

// setInterfaces tells the dataplane the box's addresses and all interfaces, except those whose
// index is in known.
func (b *box) setInterfaces(m *machine, known map[int]bool) error {
	b.above = m.links
	for _, l := range m.hooked(b.hooks) {
		if err := b.setQueues(&l); err != nil {
			return err
		}
		if known[l.Index] {
			continue
		}
		if err := b.setInterface(&l); err != nil {
			return err
		}
	}
	if known == nil { // earlier programs may still handle the known ones
		if err := b.updateLogicals(m); err != nil {
			return err
		}
	}
	var addresses []dataplane.Address
	for _, l := range m.links {
		for _, a := range l.Addresses {
			addresses = append(addresses, dataplane.Address{Prefix: a.Prefix, Ifindex: l.Index})
		}
	}
	return b.setAddresses(addresses)
}

// setAddresses tells the dataplane the box's addresses. Some have no room if there are too
// many. That is only a warning: the box must be filtered all the same.
func (b *box) setAddresses(addresses []dataplane.Address) error {
	err := b.dp.SetAddresses(addresses)
	var many *dataplane.AddressesError
	if errors.As(err, &many) {
		if b.manyAddresses != err.Error() {
			b.cfg.Log.Warn("this box has more addresses than weir handles: frames that claim the rest as their source are not dropped", "error", err)
		}
		b.manyAddresses = err.Error()
		return nil
	}
	if err != nil {
		return fmt.Errorf("update the box's addresses: %w", err)
	}
	b.manyAddresses = ""
	return nil
}

// setInterface tells the dataplane what it must know of an interface. It cannot know
// interfaces with a high index (unknownIndex).
func (b *box) setInterface(l *netif.Link) error {
	if l.Index >= dataplane.MaxIfindex {
		return nil
	}
	h := b.hooks[l.Index]
	now, err := describe(l, h.Hook == XDP || h.parent.by != "", b.rules.skips(l, b.host), b.meetsFrames(l)|b.holds(l))
	if errors.Is(err, unix.ENODEV) {
		return nil // it has vanished: the follower forgets it
	}
	if err != nil {
		return err
	}
	if err := b.setQueues(l); err != nil {
		return err
	}
	if reflect.DeepEqual(h.known, now) && (now.Line == 0 || b.dp.HasSession(l.Index)) {
		return nil
	}
	err = b.dp.SetInterface(l.Index, now)
	if err == nil && now.Line != 0 && b.lines.over(l.Index) { // since the links were read
		now.Parent, now.Tag, now.TagType, now.Line, now.Peer = 0, 0, 0, 0, nil
		err = b.dp.SetInterface(l.Index, now)
	}
	if err != nil {
		return fmt.Errorf("update %s: %w", l.Name, err)
	}
	h.known = now
	b.hooks[l.Index] = h
	return nil
}

// setQueues says which queues the packets of an interface meet.
func (b *box) setQueues(l *netif.Link) error {
	if err := b.dp.SetQueues(l.Index, b.carriers(l)...); err != nil {
		return fmt.Errorf("set the queues of %s: %w", l.Name, err)
	}
	return nil
}

// lineOf returns what packets take on the line of an interface. The frames of a PPPoE interface have its
// session in front of them, and those of a VLAN device, or what it carries, a tag.
func (b *box) lineOf(l *netif.Link) shaper.Link {
	const session, tag = 8, 4
	if !l.Ethernet {
		return shaper.Link{Known: true}
	}
	layers := 0
	switch l.Kind {
	case netif.PPPoE:
		layers = session
	case netif.VLAN:
		layers = tag
	}
	for parent, depth := l.Parent, 0; parent != 0 && depth < 2; depth++ {
		at := slices.IndexFunc(b.above, func(l netif.Link) bool { return l.Index == parent })
		if at < 0 {
			break
		}
		if b.above[at].Kind == netif.VLAN {
			layers += tag
		}
		parent = b.above[at].Parent
	}
	return shaper.Ethernet(layers)
}

// carriers returns an interface and the devices that carry its frames.
func (b *box) carriers(l *netif.Link) []dataplane.QueueDevice {
	all := []dataplane.QueueDevice{{Name: l.Name, Line: b.lineOf(l)}}
	for parent, depth := l.Parent, 0; parent != 0 && depth < 2; depth++ {
		at := slices.IndexFunc(b.above, func(l netif.Link) bool { return l.Index == parent })
		if at < 0 {
			break
		}
		below := &b.above[at]
		all, parent = append(all, dataplane.QueueDevice{Name: below.Name, Line: b.lineOf(below)}), below.Parent
	}
	return all
}

// isProgram reports whether a device is that of a program of divert-packet.
func isProgram(l *netif.Link) bool {
	port, is := strings.CutPrefix(l.Name, resolve.DivertDevice)
	number, err := strconv.ParseUint(port, 10, 16)
	return is && err == nil && strconv.FormatUint(number, 10) == port && l.Kind == netif.TUN
}

// describe returns what the dataplane must know about an interface. xdp says that an XDP
// program filters its incoming packets, others where its frames meet ether rules and are held.
func describe(l *netif.Link, xdp, skip bool, others dataplane.InterfaceFlags) (dataplane.Interface, error) {
	target, err := netif.XDPTargetOf(l.Index)
	if err != nil {
		return dataplane.Interface{}, err
	}
	flags := dataplane.InterfacePresent | others
	for _, f := range []struct {
		on   bool
		flag dataplane.InterfaceFlags
	}{
		{skip, dataplane.InterfaceSkip},
		{!l.Ethernet && l.Kind != netif.Loopback, dataplane.InterfaceL3},
		{!l.Ethernet && l.Framed(), dataplane.InterfaceFramed},
		{xdp, dataplane.InterfaceXDP},
		{target.Any, dataplane.InterfaceTarget},
		{target.Scattered, dataplane.InterfaceScattered},
		{l.Kind == netif.Loopback, dataplane.InterfaceLoopback},
		{l.Stacked(), dataplane.InterfaceStacked},
		{isProgram(l), dataplane.InterfaceProgram},
		{isProgram(l) && l.Up && l.Carrier, dataplane.InterfaceRead},
		{hasStatic(l, netip.Addr.Is4), dataplane.InterfaceStatic4},
		{hasStatic(l, isGlobal6), dataplane.InterfaceStatic6},
	} {
		if f.on {
			flags |= f.flag
		}
	}
	i := dataplane.Interface{MAC: l.MAC, MTU: uint32(l.MTU), Flags: flags}
	if isLogical(l) && l.Parent < dataplane.MaxIfindex { // otherwise the stack sends its frames
		i.Parent, i.Tag, i.TagType = l.Parent, l.Tag, l.TagType
	}
	if l.Kind == netif.PPPoE && i.Parent != 0 && l.Line < dataplane.MaxIfindex {
		i.Line, i.Peer = l.Line, l.Peer
	}
	return i, nil
}

func hasStatic(l *netif.Link, family func(netip.Addr) bool) bool {
	return slices.ContainsFunc(l.Addresses, func(a netif.Address) bool {
		return a.Static && family(a.Prefix.Addr())
	})
}

func isGlobal6(a netip.Addr) bool { return a.Is6() && !a.IsLinkLocalUnicast() }

// meetsFrames returns where ether rules can match frames of an interface. XDP sees those of a
// VLAN device at the device below it.
func (b *box) meetsFrames(l *netif.Link) (flags dataplane.InterfaceFlags) {
	if !l.Ethernet || l.Kind == netif.Loopback || l.Kind == netif.PPPoE || b.rules.program == nil || b.rules.program.Ethers == 0 {
		return 0
	}
	if b.rules.program.MeetsFrames(l.Index, false) {
		flags |= dataplane.InterfaceEtherIn
	}
	if b.rules.program.MeetsFrames(l.Index, true) {
		flags |= dataplane.InterfaceEtherOut
	}
	for i := range b.above {
		if above := &b.above[i]; above.Kind == netif.VLAN && above.Parent == l.Index {
			flags |= b.meetsFrames(above) & dataplane.InterfaceEtherIn
		}
	}
	return flags
}
