package resolve

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	"weir/pf/ast"
)

// Host is what the resolver needs to know about the target machine. internal/host/netif
// fills it from the kernel. weir check --host reads it from a JSON file, so that a file
// can be checked for another machine.
type Host struct {
	Interfaces []HostInterface         `json:"interfaces"`
	Hosts      map[string][]netip.Addr `json:"hosts,omitempty"`
	Users      map[string]uint32       `json:"users,omitempty"`
	Groups     map[string]uint32       `json:"groups,omitempty"`
	Services   []Service               `json:"services,omitempty"`  // followed by a built-in list
	Protocols  []Protocol              `json:"protocols,omitempty"` // likewise

	// Lookup returns the addresses of a host that is not in Hosts, or none without an
	// error if there is no such host. If it is nil, nothing is looked up.
	Lookup func(name string) ([]netip.Addr, error) `json:"-"`

	// Secret makes the keys of source-hash pools that have none in the file. If it is
	// nil, they are drawn each time.
	Secret []byte `json:"-"`

	// Tables are the entries that tables have at run time in addition to the file's.
	Tables map[string][]TableEntry `json:"tables,omitempty"`
}

// HostInterface is one interface, its addresses in the interface's order.
type HostInterface struct {
	Name      string         `json:"name"`
	Groups    []string       `json:"groups"`
	Addresses []netip.Prefix `json:"addresses"`
	Peers     []netip.Addr   `json:"peers,omitempty"` // other ends of its point-to-point links

	// MTU is in bytes; 0: unknown. Rules that go with a PPPoE interface depend on its own.
	MTU uint32 `json:"mtu,omitempty"`

	// Default are the gateways of the default routes on this interface, at most one
	// of each family. The language does not use them; weir check --expect does.
	Default Gateways `json:"default_route,omitempty"`
}

// Gateways are addresses. In JSON a single one needs no brackets.
type Gateways []netip.Addr

// UnmarshalJSON reads an address or a list of them.
func (g *Gateways) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*g = nil
		if text == "" {
			return nil
		}
		one, err := netip.ParseAddr(text)
		if err != nil {
			return fmt.Errorf("%q is not an address", text)
		}
		*g = Gateways{one}
		return nil
	}
	return json.Unmarshal(data, (*[]netip.Addr)(g))
}

// lookup returns the addresses of a host, or none if it is unknown. The error says why
// the look-up failed.
func (h *Host) lookup(name string) ([]netip.Addr, error) {
	if addrs := h.Hosts[name]; len(addrs) > 0 || h.Lookup == nil {
		return addrs, nil
	}
	return h.Lookup(name)
}

// Interface returns the interface with that name, or nil.
func (h *Host) Interface(name string) *HostInterface {
	for i := range h.Interfaces {
		if h.Interfaces[i].Name == name {
			return &h.Interfaces[i]
		}
	}
	return nil
}

// WithGroups returns a copy of h whose interfaces are also members of the groups in
// Options.Groups. Members of these are interfaces or groups. Linux' loopback lo is also
// called lo0, as withLoopback says.
func (h *Host) WithGroups(made map[string][]string) *Host {
	if h = h.withLoopback(); len(made) == 0 {
		return h
	}
	holders := make(map[string][]string) // groups that contain each member
	for _, group := range sortedKeys(made) {
		for _, member := range made[group] {
			holders[member] = append(holders[member], group)
		}
	}
	out := *h
	out.Interfaces = slices.Clone(h.Interfaces)
	for i := range out.Interfaces {
		out.Interfaces[i].join(holders)
	}
	return &out
}

// loopback0 is the name of the loopback on BSD.
const loopback0 = loopbacks + "0"

// withLoopback makes lo the only member of a group lo0, if there is no interface of that
// name: files from BSD mean the loopback by it. It returns a copy, or h.
func (h *Host) withLoopback() *Host {
	at := slices.IndexFunc(h.Interfaces, func(i HostInterface) bool { return i.Name == loopbacks })
	if at < 0 || h.Interface(loopback0) != nil || slices.Contains(h.Interfaces[at].Groups, loopback0) {
		return h
	}
	out := *h
	out.Interfaces = slices.Clone(h.Interfaces)
	lo := &out.Interfaces[at]
	lo.Groups = append(slices.Clip(lo.Groups), loopback0)
	return &out
}

// join makes the interface a member of the groups that contain it or one of its groups.
// Each group is joined once, so this ends even if groups contain each other.
func (i *HostInterface) join(holders map[string][]string) {
	names := append([]string{i.Name, i.kind()}, i.Groups...)
	joined := make(map[string]bool, len(names))
	for _, name := range names {
		joined[name] = true
	}
	i.Groups = slices.Clip(i.Groups)
	for n := 0; n < len(names); n++ {
		for _, group := range holders[names[n]] {
			if !joined[group] {
				joined[group] = true
				names, i.Groups = append(names, group), append(i.Groups, group)
			}
		}
	}
}

// Members returns the interfaces of a group: those that list it, and those with the
// group's name and a number, as eth0 is in group eth. Only a listed group can have a name
// that ends in a digit.
func (h *Host) Members(group string) []*HostInterface {
	var members []*HostInterface
	for i := range h.Interfaces {
		if h.Interfaces[i].in(group) {
			members = append(members, &h.Interfaces[i])
		}
	}
	return members
}

func (i *HostInterface) in(group string) bool {
	if slices.Contains(i.Groups, group) {
		return true
	}
	return group != "" && group == i.kind()
}

// kind returns the group of an interface by its name, which is the name without the
// number at its end, or "". It does not end in a digit, so eth10 is not in a group eth1.
func (i *HostInterface) kind() string {
	if kind := strings.TrimRight(i.Name, "0123456789"); kind != i.Name {
		return kind
	}
	return ""
}

// loopback reports whether the interface is a loopback.
func (i *HostInterface) loopback() bool { return i.Name == "lo" || i.in("lo") }

// names returns the names of all interfaces and groups, for suggestions.
func (h *Host) names() []string {
	var names []string
	for i := range h.Interfaces {
		names = append(names, h.Interfaces[i].Name)
	}
	for i := range h.Interfaces {
		names = append(names, h.Interfaces[i].Groups...)
	}
	return names
}

// selected returns the addresses of the interface that the modifiers of h select.
func (i *HostInterface) selected(h *ast.Host) []netip.Prefix {
	var found []netip.Prefix
	switch {
	case h.Peer:
		for _, p := range i.Peers {
			found = append(found, netip.PrefixFrom(p, p.BitLen()))
		}
		return found
	case h.Broadcast && i.loopback():
		return nil
	}
	for _, p := range i.Addresses {
		switch last, ok := Broadcast(p); {
		case h.Broadcast && ok:
			found = append(found, netip.PrefixFrom(last, last.BitLen()))
		case h.Broadcast, h.Network && p.Addr().Is6() && p.Addr().IsLinkLocalUnicast():
		default:
			found = append(found, p)
		}
	}
	return found
}

// Broadcast returns the broadcast address of an IPv4 network, if it is large enough to
// have one.
func Broadcast(p netip.Prefix) (netip.Addr, bool) {
	const tooLong = 31 // RFC 3021: both addresses are hosts
	if !p.Addr().Is4() || p.Bits() >= tooLong {
		return netip.Addr{}, false
	}
	return netipx.PrefixLastIP(p), true
}
