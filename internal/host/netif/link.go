package netif

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sort"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Kind is what sort of device a link is.
type Kind string

// Kinds that weir treats differently. Other virtual devices bear the kernel's
// name of their kind (dummy, vxlan, gre, …).
const (
	Physical  Kind = "physical"
	Loopback  Kind = "loopback"
	Veth      Kind = "veth"
	Bridge    Kind = "bridge"
	Bond      Kind = "bond"
	Team      Kind = "team"
	VLAN      Kind = "vlan"
	TUN       Kind = "tun"
	TAP       Kind = "tap"
	WireGuard Kind = "wireguard"
	PPP       Kind = "ppp"
)

// Link is an interface as weir sees it.
type Link struct {
	Index     int
	Name      string
	Kind      Kind
	MAC       net.HardwareAddr // empty on devices without Ethernet header
	MTU       int              // bytes
	Ethernet  bool             // frames begin with an Ethernet header
	Up        bool
	Master    int    // index of the bridge, bond, … that it is a port of; 0: none
	MasterOf  string // kind of the master, "" if there is none
	Parent    int    // index of a VLAN device's parent; 0: none, or in another namespace
	Group     uint32 // its group's number; 0: the default one
	Tag       uint16 // of a VLAN device: priority and id of the tag that its parent's frames bear
	TagType   uint16 // of a VLAN device: EtherType of that tag
	KeepsTag  bool   // of a VLAN device: frames come in with the tag still in them (reorder_hdr off)
	Shared    bool   // other devices stand on it with addresses of their own, or its address (macvlan, ipvlan)
	RxQueues  int
	XDP       uint32 // id of the XDP program attached, whoever's; 0: none
	Addresses []Address
}

// Address is an address of a link.
type Address struct {
	Prefix     netip.Prefix
	Peer       netip.Addr // the other end of a point-to-point link; not valid elsewhere
	Static     bool       // without end of life, so not from DHCP or router advertisements
	Deprecated bool       // not for new connections
	Tentative  bool       // not yet known to be unique
}

// Port reports whether the link's frames are its master's business, so that it
// has no hooks of its own.
func (l *Link) Port() bool {
	switch Kind(l.MasterOf) {
	case Bridge, Bond, Team:
		return true
	}
	return false
}

// dumpTries is how often a dump is asked for again that changed under way.
const dumpTries = 5

// Links lists the interfaces of the namespace by index, with their addresses in
// the interface's order.
func Links() ([]Link, error) {
	raw, err := dump(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	addresses, err := linkAddresses()
	if err != nil {
		return nil, err
	}
	shared, err := sharedLinks(raw)
	if err != nil {
		return nil, err
	}
	links := make([]Link, 0, len(raw))
	kinds := make(map[int]string, len(raw))
	for _, r := range raw {
		kinds[r.Attrs().Index] = r.Type()
	}
	for _, r := range raw {
		l := newLink(r, kinds)
		l.Addresses = addresses[l.Index]
		l.Shared = shared[l.Index]
		links = append(links, l)
	}
	sort.Slice(links, func(i, j int) bool { return links[i].Index < links[j].Index })
	return links, nil
}

func newLink(r netlink.Link, kinds map[int]string) Link {
	a := r.Attrs()
	l := Link{
		Index:    a.Index,
		Name:     a.Name,
		Kind:     kind(r),
		MTU:      a.MTU,
		Ethernet: a.EncapType == "ether",
		Up:       a.RawFlags&unix.IFF_UP != 0,
		Master:   a.MasterIndex,
		MasterOf: kinds[a.MasterIndex],
		RxQueues: a.NumRxQueues,
		Group:    a.Group,
	}
	if l.Ethernet {
		l.MAC = a.HardwareAddr
	}
	if v, ok := r.(*netlink.Vlan); ok {
		l.Parent, l.Tag = carrier(v)
		l.TagType = uint16(v.VlanProtocol)
		l.KeepsTag = v.ReorderHdr == nil || !*v.ReorderHdr // the kernel leaves out flags that are all off
	}
	if a.Xdp != nil && a.Xdp.Attached {
		l.XDP = a.Xdp.ProgId
	}
	return l
}

// carrier gives a VLAN device's parent and the tag of what is forwarded by it. A
// priority that the device maps packets of no priority to is in the tag.
func carrier(v *netlink.Vlan) (parent int, tag uint16) {
	const priorityShift = 13
	if v.NetNsID >= 0 { // the parent's index is one of another namespace
		return 0, 0
	}
	return v.ParentIndex, uint16(v.VlanId) | uint16(v.EgressQosMap[0])<<priorityShift
}

// sharedLinks are the devices that others stand on which take part of their frames. Those
// in other namespaces are told by the addresses that the device accepts for them; an ipvlan
// has its device's address, and is seen only in this namespace.
func sharedLinks(raw []netlink.Link) (map[int]bool, error) {
	shared := make(map[int]bool)
	own := make(map[int]net.HardwareAddr)
	for _, r := range raw {
		a := r.Attrs()
		own[a.Index] = a.HardwareAddr
		switch r.Type() {
		case "macvlan", "macvtap", "ipvlan", "ipvtap":
			if a.NetNsID < 0 {
				shared[a.ParentIndex] = true
			}
		}
	}
	accepted, err := dump(func() ([]netlink.Neigh, error) { return netlink.NeighList(0, unix.AF_BRIDGE) })
	if err != nil {
		return nil, fmt.Errorf("list the addresses that devices accept: %w", err)
	}
	for _, n := range accepted {
		group := len(n.HardwareAddr) > 0 && n.HardwareAddr[0]&1 != 0
		if n.MasterIndex == 0 && !group && !bytes.Equal(n.HardwareAddr, own[n.LinkIndex]) {
			shared[n.LinkIndex] = true
		}
	}
	return shared, nil
}

func kind(r netlink.Link) Kind {
	if r.Attrs().Flags&net.FlagLoopback != 0 {
		return Loopback
	}
	switch v := r.(type) {
	case *netlink.Tuntap:
		if v.Mode == netlink.TUNTAP_MODE_TAP {
			return TAP
		}
		return TUN
	case *netlink.Device:
		if r.Attrs().EncapType == "ppp" {
			return PPP
		}
		return Physical
	}
	return Kind(r.Type())
}

// linkAddresses gives the addresses of every link by its index.
func linkAddresses() (map[int][]Address, error) {
	raw, err := dump(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	all := make(map[int][]Address)
	for _, r := range raw {
		ip, ok := netip.AddrFromSlice(r.IP)
		if !ok {
			return nil, fmt.Errorf("list addresses: the kernel gave %q for one", r.IP)
		}
		bits, _ := r.Mask.Size()
		all[r.LinkIndex] = append(all[r.LinkIndex], Address{
			Prefix:     netip.PrefixFrom(ip.Unmap(), bits),
			Peer:       peerOf(&r),
			Static:     r.Flags&unix.IFA_F_PERMANENT != 0,
			Deprecated: r.Flags&unix.IFA_F_DEPRECATED != 0,
			Tentative:  r.Flags&unix.IFA_F_TENTATIVE != 0,
		})
	}
	return all, nil
}

// peerOf gives the other end of a point-to-point link.
func peerOf(a *netlink.Addr) netip.Addr {
	if a.Peer == nil || a.Peer.IP.Equal(a.IP) {
		return netip.Addr{}
	}
	peer, _ := netip.AddrFromSlice(a.Peer.IP)
	return peer.Unmap()
}

// dump asks again while the kernel says that the list changed under way.
func dump[T any](list func() ([]T, error)) ([]T, error) {
	var all []T
	var err error
	for range dumpTries {
		all, err = list()
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}
