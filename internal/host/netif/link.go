package netif

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sort"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Kind is the type of a link's device.
type Kind string

// Kinds that weir treats differently. Other virtual devices have the kernel's name of
// their kind (dummy, vxlan, gre, …).
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
	PPPoE     Kind = "pppoe" // weir's own, internal/pppoe/line
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
	Carrier   bool             // a tun or tap device: a program has it open
	Master    int              // index of the bridge, bond, … that it is a port of; 0: none
	MasterOf  string           // kind of the master, "" without a master
	RDomain   uint32           // routing table of the VRF that it belongs to; 0: none
	Parent    int              // index of a VLAN device's parent, or of the carrier of a PPPoE session; 0: none, or in another namespace
	Group     uint32           // number of its group; 0: the default group
	Tag       uint16           // VLAN device: priority and id of the tag in its parent's frames; PPPoE: the session
	TagType   uint16           // likewise: EtherType of that tag
	Peer      net.HardwareAddr // PPPoE interface with a session: the concentrator
	Line      int              // PPPoE interface: index of its line
	KeepsTag  bool             // VLAN device: received frames keep the tag (reorder_hdr off)
	Shared    bool             // other devices (macvlan, ipvlan) use it with addresses of their own, or with its address
	RxQueues  int
	XDP       uint32 // id of the attached XDP program, anybody's; 0: none
	Addresses []Address
}

// Address is an address of a link.
type Address struct {
	Prefix     netip.Prefix
	Peer       netip.Addr // the other end of a point-to-point link; otherwise not valid
	Static     bool       // unlimited lifetime, so not from DHCP or router advertisements
	Deprecated bool       // not for new connections
	Tentative  bool       // not yet proven unique
	Temporary  bool       // IPv6: one of those that change from day to day (RFC 8981)
}

// Port reports whether the link's master handles its frames. The link then has no hooks
// of its own.
func (l *Link) Port() bool {
	switch Kind(l.MasterOf) {
	case Bridge, Bond, Team:
		return true
	}
	return false
}

// Stacked reports whether the link has part of another device's frames and gives its own
// packets on to that device, which sends them as they are.
func (l *Link) Stacked() bool { return stacks(string(l.Kind)) }

// Framed reports whether packets that come in by a link without Ethernet headers may have one: the
// kernel leaves that of the frame in front of what it has decrypted.
func (l *Link) Framed() bool {
	switch l.Kind {
	case "xfrm", "vti", "vti6":
		return true
	}
	return false
}

func stacks(kind string) bool {
	switch kind {
	case "macvlan", "macvtap", "ipvlan", "ipvtap":
		return true
	}
	return false
}

// dumpTries is how often a dump is repeated if the list changed during it.
const dumpTries = 5

// WaitingPrefix begins the names of the devices where weir has packets wait that have come in
// (internal/fw/htb). They are no interfaces of the box: Links leaves them out.
const WaitingPrefix = "weir-in"

// What tells the line of a PPPoE interface (internal/pppoe/line) from other devices: the end of its
// name, and the beginning of its alias. Lines are no interfaces of the box: Links leaves them out.
const (
	LineSuffix = "-line"
	LineAlias  = "weir: the line of "
)

// IsLine reports whether a device is the line of a PPPoE interface.
func IsLine(l netlink.Link) bool {
	a := l.Attrs()
	name, is := strings.CutSuffix(a.Name, LineSuffix)
	return is && l.Type() == "veth" && a.Alias == LineAlias+name
}

// Links lists the interfaces of the namespace by index, with their addresses in
// the interface's order.
func Links() ([]Link, error) {
	raw, err := Dump(netlink.LinkList)
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
	kinds, vrfs := make(map[int]string, len(raw)), make(map[int]uint32) // tables, by index
	lines := make(map[string]int)
	for _, r := range raw {
		kinds[r.Attrs().Index] = r.Type()
		if v, ok := r.(*netlink.Vrf); ok {
			vrfs[v.Index] = v.Table
		}
		if IsLine(r) {
			lines[strings.TrimSuffix(r.Attrs().Name, LineSuffix)] = r.Attrs().Index
		}
	}
	for _, r := range raw {
		if r.Type() == "ifb" && strings.HasPrefix(r.Attrs().Name, WaitingPrefix) || IsLine(r) {
			continue
		}
		l := newLink(r, kinds)
		if l.Line = lines[l.Name]; l.Line != 0 && l.Kind == Veth {
			l.Kind = PPPoE
		}
		l.Addresses = addresses[l.Index]
		l.Shared = shared[l.Index]
		l.RDomain = vrfs[l.Master]
		if l.RDomain == 0 {
			l.RDomain = vrfs[l.Index]
		}
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
		Carrier:  a.RawFlags&unix.IFF_LOWER_UP != 0,
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

// carrier returns a VLAN device's parent, and the tag of frames forwarded through it. The
// tag includes the priority that the device assigns to packets without one.
func carrier(v *netlink.Vlan) (parent int, tag uint16) {
	const priorityShift = 13
	if v.NetNsID >= 0 { // the parent's index belongs to another namespace
		return 0, 0
	}
	return v.ParentIndex, uint16(v.VlanId) | uint16(v.EgressQosMap[0])<<priorityShift
}

// sharedLinks returns the devices below others that take part of their frames. Devices in
// other namespaces show in the addresses that the lower device accepts for them. An
// ipvlan has its lower device's address, so it shows only in this namespace.
func sharedLinks(raw []netlink.Link) (map[int]bool, error) {
	shared := make(map[int]bool)
	own := make(map[int]net.HardwareAddr)
	for _, r := range raw {
		a := r.Attrs()
		own[a.Index] = a.HardwareAddr
		if stacks(r.Type()) && a.NetNsID < 0 {
			shared[a.ParentIndex] = true
		}
	}
	accepted, err := Dump(func() ([]netlink.Neigh, error) { return netlink.NeighList(0, unix.AF_BRIDGE) })
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

// linkAddresses returns the addresses of every link by its index.
func linkAddresses() (map[int][]Address, error) {
	raw, err := Dump(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	all := make(map[int][]Address)
	for _, r := range raw {
		ip, ok := netip.AddrFromSlice(r.IP)
		if !ok {
			return nil, fmt.Errorf("list addresses: the kernel returned %q", r.IP)
		}
		bits, _ := r.Mask.Size()
		all[r.LinkIndex] = append(all[r.LinkIndex], Address{
			Prefix:     netip.PrefixFrom(ip.Unmap(), bits),
			Peer:       peerOf(&r),
			Static:     r.Flags&unix.IFA_F_PERMANENT != 0,
			Deprecated: r.Flags&unix.IFA_F_DEPRECATED != 0,
			Tentative:  r.Flags&unix.IFA_F_TENTATIVE != 0,
			Temporary:  ip.Unmap().Is6() && r.Flags&unix.IFA_F_TEMPORARY != 0, // of IPv4 the bit says that it is a secondary one
		})
	}
	return all, nil
}

// peerOf returns the other end of a point-to-point link.
func peerOf(a *netlink.Addr) netip.Addr {
	if a.Peer == nil || a.Peer.IP.Equal(a.IP) {
		return netip.Addr{}
	}
	peer, _ := netip.AddrFromSlice(a.Peer.IP)
	return peer.Unmap()
}

// Dump asks again while the kernel reports that the list changed during the dump. If that happens each time, it
// returns what it has, and the error wraps netlink.ErrDumpInterrupted.
func Dump[T any](list func() ([]T, error)) ([]T, error) {
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
