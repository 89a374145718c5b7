package resolve

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"weir/pf/ast"
	"weir/pf/diag"
)

// place is where an address is written, which decides what it may be.
type place uint8

const (
	ruleHost place = iota
	tableHost
	poolHost
)

// hosts resolves a list of addresses. One of them may resolve to several.
func (r *resolver) hosts(list []ast.Host, where place) []ast.Host {
	var all []ast.Host
	for i := range list {
		all = append(all, r.resolve(&list[i], where)...)
	}
	return all
}

// resolve returns the addresses of h, or none after it reported an error. A word is an
// interface or group if the machine has it, else an address, else a host, in pfctl's
// order.
func (r *resolver) resolve(h *ast.Host, where place) []ast.Host {
	switch h.Kind {
	case ast.HostTable:
		if where != tableHost {
			r.uses = append(r.uses, use{*h, r.scope})
		}
		return []ast.Host{*h}
	case ast.HostDynamic:
		if _, err := netip.ParseAddr(h.Name); err == nil {
			r.faults.Errorf(h.Span, "parentheses are only for interfaces")
			return nil
		}
		if h.Name != Self {
			r.known(ast.Word{Span: h.Span, Text: h.Name})
		}
		return []ast.Host{*h}
	case ast.HostName:
		if r.joinedRange(h, where) {
			return nil
		}
		return r.word(h)
	case ast.HostRange:
		return r.addressRange(h, where)
	case ast.HostRouteLabel:
		r.routeLabel(h, where)
	}
	return []ast.Host{*h}
}

func (r *resolver) routeLabel(h *ast.Host, where place) {
	if where != ruleHost {
		r.faults.Errorf(h.Span, "a route label is allowed only after from or to")
		return
	}
	r.faults.UnenforcedBut(h.Span, "route", "Linux's routes have no labels: name a table, which weir table changes")
}

func (r *resolver) word(h *ast.Host) []ast.Host {
	if members := r.named(h.Name); members != nil {
		return r.ofInterface(h, members)
	}
	if p, zone, fault := literal(h); fault != "" {
		r.faults.Errorf(h.Span, "%s", fault)
		return nil
	} else if p.IsValid() {
		if zone != "" {
			r.known(ast.Word{Span: h.Span, Text: zone})
		}
		return []ast.Host{prefixHost(h, p, zone)}
	}
	addrs, err := r.host.lookup(h.Name)
	if len(addrs) > 0 {
		return r.ofHost(h, addrs)
	}
	if name, modifier, ok := strings.Cut(h.Name, ":"); ok && r.named(name) != nil {
		r.faults.Errorf(h.Span, "unknown modifier :%s; interfaces have :network, :broadcast, :peer and :0", modifier)
		return nil
	}
	message := fmt.Sprintf("%q is not an address, and no interface or host has that name", h.Name)
	if err != nil {
		message = fmt.Sprintf("%q is neither an address nor an interface, and looking it up as a host failed: %v", h.Name, err)
	}
	r.suggest(ast.Word{Span: h.Span, Text: h.Name}, message,
		func() []string { return append(r.host.names(), sortedKeys(r.host.Hosts)...) })
	return nil
}

// named returns the interfaces with a name: the interface itself, the members of a group,
// or all for self. It returns nil if there is no such name.
func (r *resolver) named(name string) []*HostInterface {
	if name == Self {
		all := []*HostInterface{}
		for i := range r.host.Interfaces {
			all = append(all, &r.host.Interfaces[i])
		}
		return all
	}
	if i := r.host.Interface(name); i != nil {
		return []*HostInterface{i}
	}
	return r.host.Members(name)
}

// ofInterface returns the addresses, or networks, of interfaces.
func (r *resolver) ofInterface(h *ast.Host, interfaces []*HostInterface) []ast.Host {
	if (h.Network || h.Broadcast) && h.Bits >= 0 {
		r.faults.Errorf(h.Span, "%s already has a length; remove /%d", modifier(h), h.Bits)
		return nil
	}
	var found []ast.Host
	for _, i := range interfaces {
		found = append(found, addresses(h, i)...)
	}
	switch {
	case len(found) > 0:
	case h.Name == Self && !h.Not && !h.Broadcast && !h.Peer:
		r.faults.Warnf(h.Span, "this machine has no address yet, so this matches nothing")
	case h.Broadcast || h.Peer:
		r.faults.Errorf(h.Span, "%q has no %s address now", h.Name, strings.TrimPrefix(modifier(h), ":"))
	default:
		r.faults.Errorf(h.Span, "%q has no address now; write (%s) to follow its addresses", h.Name, h.Name)
	}
	return found
}

// modifier returns the word that selects some of an interface's addresses.
func modifier(h *ast.Host) string {
	switch {
	case h.Network:
		return ":network"
	case h.Broadcast:
		return ":broadcast"
	case h.Peer:
		return ":peer"
	}
	return ""
}

// addresses returns the addresses of one interface that h selects. With :network these
// are its networks except link-local ones, with :broadcast the broadcast addresses of its
// networks, with :peer the other ends of its links, with :0 the first of each family.
func addresses(h *ast.Host, i *HostInterface) []ast.Host {
	var found []ast.Host
	seen := map[ast.Family]bool{}
	for _, p := range i.selected(h) {
		family := ast.Of(p.Addr())
		if h.NoAlias && seen[family] {
			continue
		}
		seen[family] = true
		zone := ""
		if p.Addr().IsLinkLocalUnicast() && family == ast.Inet6 {
			zone = i.Name
		}
		bits := p.Addr().BitLen()
		switch {
		case h.Network:
			bits = p.Bits()
		case h.Bits >= 0:
			bits = min(h.Bits, bits)
		}
		found = append(found, prefixHost(h, netip.PrefixFrom(p.Addr(), bits), zone))
	}
	return found
}

func (r *resolver) ofHost(h *ast.Host, addrs []netip.Addr) []ast.Host {
	var found []ast.Host
	seen := map[ast.Family]bool{}
	if h.Network || h.Broadcast || h.Peer {
		r.faults.Errorf(h.Span, "%q is a host; only interfaces have a :network, :broadcast or :peer", h.Name)
		return nil
	}
	for _, a := range addrs {
		bits := a.BitLen()
		if h.Bits >= 0 {
			bits = min(h.Bits, bits)
		}
		if !h.NoAlias || !seen[ast.Of(a)] {
			found = append(found, prefixHost(h, netip.PrefixFrom(a, bits), a.Zone()))
		}
		seen[ast.Of(a)] = true
	}
	return found
}

// prefixHost returns h as the prefix p.
func prefixHost(h *ast.Host, p netip.Prefix, zone string) ast.Host {
	resolved := *h
	resolved.Kind = ast.HostPrefix
	resolved.Prefix = netip.PrefixFrom(p.Addr().WithZone(""), p.Bits()).Masked()
	resolved.Zone = zone
	resolved.Network, resolved.Broadcast, resolved.Peer, resolved.NoAlias = false, false, false, false
	resolved.Name, resolved.Bits = "", -1
	return resolved
}

// literal reads an address or network. The prefix is invalid if h is neither. fault
// describes an impossible address.
func literal(h *ast.Host) (p netip.Prefix, zone, fault string) {
	addr, err := netip.ParseAddr(h.Name)
	if err != nil && h.Bits >= 0 {
		addr, err = shortAddress(h.Name)
	}
	if err != nil {
		return p, "", ""
	}
	bits := addr.BitLen()
	switch {
	case h.Network || h.Broadcast || h.Peer || h.NoAlias:
		return p, "", fmt.Sprintf("%s is an address; only interfaces take modifiers", h.Name)
	case h.Bits > bits:
		return p, "", fmt.Sprintf("an IPv4 network has a length of at most 32, not %d", h.Bits)
	case h.Bits >= 0:
		bits = h.Bits
	}
	return netip.PrefixFrom(addr.WithZone(""), bits), addr.Zone(), ""
}

// shortAddress reads an IPv4 network whose trailing zeros are left out: 10/8.
func shortAddress(s string) (netip.Addr, error) {
	var octets [4]byte
	parts := strings.Split(s, ".")
	if len(parts) > len(octets) {
		return netip.Addr{}, fmt.Errorf("%q has more than four numbers", s)
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			return netip.Addr{}, err
		}
		octets[i] = byte(n)
	}
	return netip.AddrFrom4(octets), nil
}

// known warns, once for each name, if neither an interface nor a group has the name.
func (r *resolver) known(w ast.Word) {
	if r.host.Interface(w.Text) != nil || r.isGroup(w.Text) || r.unknown[w.Text] {
		return
	}
	r.unknown[w.Text] = true
	what := "interface"
	if groupName(w.Text) {
		what = "interface or group"
	}
	r.faults.Add(diag.Diagnostic{
		Severity: diag.Warning,
		Span:     w.Span,
		Message:  fmt.Sprintf("there is no %s %q yet", what, w.Text),
		Suggest:  r.nearest(w.Text, r.host.names),
	})
}

// isGroup reports whether name is a group. egress always is one, even if it is empty.
func (r *resolver) isGroup(name string) bool {
	return name == "egress" || r.host.Interface(name) == nil && len(r.host.Members(name)) > 0
}

// groupName reports whether an unused name can be a group's. Unlike an interface's name,
// it does not end in a digit.
func groupName(name string) bool {
	last := name[len(name)-1]
	return last < '0' || last > '9'
}
