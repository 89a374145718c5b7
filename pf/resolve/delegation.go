package resolve

import (
	"net/netip"
	"slices"
	"strconv"

	"weir/pf/ast"
	"weir/pf/token"
)

// delegate checks to which interfaces a provider's prefix goes, numbers its subnets, and adds the
// rules that pass what this needs.
func (r *resolver) delegate(s *ast.PPPoE, o *PPPoE) {
	if !o.Inet6 {
		r.faults.Errorf(s.Prefix.Span, "a session without IPv6 has no prefix")
	}
	if s.Prefix.Length != nil {
		o.PrefixLength = uint8(s.Prefix.Length.N)
	}
	used := map[uint32]bool{}
	for _, l := range s.Prefix.To {
		if l.Subnet != nil && used[l.Subnet.N] {
			r.faults.Errorf(l.Subnet.Span, "two interfaces have the subnet %d", l.Subnet.N)
		}
		if l.Subnet != nil {
			used[l.Subnet.N] = true
		}
	}
	for _, l := range s.Prefix.To {
		r.delegateTo(l, o, used)
	}
	if !s.NoPass {
		r.passDelegation(s, o)
	}
}

func (r *resolver) delegateTo(l ast.DelegationLink, o *PPPoE, used map[uint32]bool) {
	if l.Text == o.Name || l.Text == o.On {
		r.faults.Errorf(l.Span, "the prefix is for the hosts of other interfaces than %s", l.Text)
		return
	}
	for _, other := range r.options.PPPoE {
		if slices.ContainsFunc(other.PrefixTo, func(p PrefixLink) bool { return p.Name == l.Text }) {
			r.faults.Errorf(l.Span, "%s has the prefix of %s already", l.Text, other.Name)
			return
		}
	}
	r.known(l.Word)
	p := PrefixLink{Name: l.Text}
	if l.Subnet != nil {
		p.Subnet = l.Subnet.N
	} else {
		for used[p.Subnet] {
			p.Subnet++
		}
		used[p.Subnet] = true
	}
	if bits := uint(o.PrefixLength); bits > 0 && uint64(p.Subnet)>>(64-bits) > 0 {
		r.faults.Errorf(l.Whole(), "a /%d has no subnet %d: %s needs a shorter prefix", bits, p.Subnet, l.Text)
	}
	o.PrefixTo = append(o.PrefixTo, p)
}

// Ports of DHCPv6.
const (
	dhcpv6Client = 546
	dhcpv6Server = 547
)

// discoveryTypes are the types of ICMPv6 by which hosts find routers and neighbours.
var discoveryTypes = map[string]uint16{"routersol": 133, "routeradv": 134, "neighbrsol": 135, "neighbradv": 136}

// passDelegation adds the rules that pass DHCPv6 of the session's interface, and between a link's
// hosts and the box what hosts need for addresses. They stand in front of all others and are quick.
func (r *resolver) passDelegation(s *ast.PPPoE, o *PPPoE) {
	at := s.Prefix.Span
	link, servers, routers := netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff02::1:2/128"), netip.MustParsePrefix("ff02::2/128")
	udp := func(d ast.Direction, from, to netip.Prefix, fromPort, toPort uint16) *ast.Rule {
		rule := quickPass(at, o.Name, d, ast.Proto{Word: ast.Word{Span: at, Text: "udp"}, Number: protoUDP}, from, to)
		rule.From.Ports, rule.To.Ports = onePort(at, fromPort), onePort(at, toPort)
		return rule
	}
	icmp := func(d ast.Direction, on string, kind string, from, to netip.Prefix) *ast.Rule {
		rule := quickPass(at, on, d, ast.Proto{Word: ast.Word{Span: at, Text: "ipv6-icmp"}, Number: protoICMP6}, from, to)
		rule.ICMP = []ast.ICMP{{Span: at, Family: ast.Inet6, Type: ast.Number{Word: ast.Word{Span: at, Text: kind}, Value: discoveryTypes[kind]}}}
		return rule
	}
	anyone := netip.Prefix{}
	rules := []*ast.Rule{
		udp(ast.Out, link, servers, dhcpv6Client, dhcpv6Server),
		udp(ast.In, anyone, link, dhcpv6Server, dhcpv6Client),
		icmp(ast.Out, o.Name, "routersol", anyone, routers),
		icmp(ast.In, o.Name, "routeradv", link, anyone),
	}
	for _, l := range o.PrefixTo {
		rules = append(rules,
			icmp(ast.In, l.Name, "routersol", anyone, routers),
			icmp(ast.Out, l.Name, "routeradv", link, anyone),
			icmp(ast.AnyDirection, l.Name, "neighbrsol", anyone, anyone),
			icmp(ast.AnyDirection, l.Name, "neighbradv", anyone, anyone),
		)
	}
	for _, rule := range rules {
		if !r.addFirst(rule) {
			return
		}
	}
}

// quickPass is a rule of IPv6 that keeps no state. A prefix that is not valid is any address.
func quickPass(at token.Span, on string, d ast.Direction, p ast.Proto, from, to netip.Prefix) *ast.Rule {
	hosts := func(p netip.Prefix) []ast.Host {
		if !p.IsValid() {
			return nil
		}
		return []ast.Host{{Span: at, Kind: ast.HostPrefix, Prefix: p}}
	}
	return &ast.Rule{
		Span: at, Origin: at, Action: ast.Pass, Direction: d, Quick: true, Family: ast.Inet6,
		On: []ast.Interface{{Span: at, Name: on}}, Protos: []ast.Proto{p},
		From: ast.Endpoint{Hosts: hosts(from)}, To: ast.Endpoint{Hosts: hosts(to)}, State: &ast.State{Span: at},
	}
}

func onePort(at token.Span, n uint16) []ast.Port {
	return []ast.Port{{Span: at, Op: ast.PortEqual, Low: writtenNumber(at, n)}}
}

func writtenNumber(at token.Span, n uint16) ast.Number {
	return ast.Number{Word: ast.Word{Span: at, Text: strconv.FormatUint(uint64(n), 10)}, Value: n}
}
