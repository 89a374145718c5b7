package ladder

import (
	"slices"

	"weir/internal/bench/paths"
	"weir/internal/lab"
)

// Firewalls of rungs.
const (
	Kernel = "kernel"
	Nft    = "nft"
	Weir   = "weir"
)

// rung is one step of the ladder with one firewall.
type rung struct {
	name     string // as the report shows it; "nat, weir"
	step     string // what it adds to the one below
	firewall string // "": no firewall
	path     string // name of a path in internal/bench/paths; "": none
	below    string // the rung that it is compared with
	route    route
	about    string
}

// route is the way that traffic takes.
type route int

const (
	overLoopback route = iota // within one host
	overWire                  // from host to host
	routed                    // through the firewall, with addresses that are not translated
	translated                // through the firewall, with addresses that are translated
)

// rungs are all steps from the bottom up.
var rungs = []*rung{
	{name: "loopback", step: "loopback", route: overLoopback, about: "sockets of one host: no wire and no firewall"},
	{name: "direct", step: "direct", route: overWire, below: "loopback", about: "a veth pair between two hosts"},
	{name: "routed, kernel", step: "routed", firewall: Kernel, path: paths.Kernel, route: routed, below: "direct", about: "the kernel's routing, no rules"},
	{name: "stateful, nft", step: "stateful", firewall: Nft, path: paths.Nft, route: routed, below: "routed, kernel", about: "examples/gateway.nft, addresses that it does not translate"},
	{name: "stateful, weir", step: "stateful", firewall: Weir, path: paths.Weir, route: routed, below: "routed, kernel", about: "examples/gateway.conf, addresses that it does not translate"},
	{name: "nat, nft", step: "nat", firewall: Nft, path: paths.NftNAT, route: translated, below: "stateful, nft", about: "examples/gateway.nft, addresses that it translates"},
	{name: "nat, weir", step: "nat", firewall: Weir, path: paths.WeirNAT, route: translated, below: "stateful, weir", about: "examples/gateway.conf, addresses that it translates"},
}

// control returns the rung that is measured twice as if it were two: the kernel's
// routing, or the direct wire if the kernel is not chosen.
func (o *Options) control() *rung {
	if slices.Contains(o.Firewalls, Kernel) {
		return rungOf("routed, kernel")
	}
	return rungOf("direct")
}

// elsewhere are steps that other benchmarks measure, and the command that does.
var elsewhere = []struct{ step, command string }{
	{"a line with queues", "weir bench qos"},
	{"a PPPoE session", "weir bench pppoe --tcp"},
	{"a VPN", "weir bench vpn"},
}

// rungOf finds a rung by its name; nil: there is none.
func rungOf(name string) *rung {
	i := slices.IndexFunc(rungs, func(r *rung) bool { return r.name == name })
	if i < 0 {
		return nil
	}
	return rungs[i]
}

// chosen returns the rungs of the chosen firewalls.
func (o *Options) chosen() []*rung {
	return slices.DeleteFunc(slices.Clone(rungs), func(r *rung) bool { return r.firewall != "" && !slices.Contains(o.Firewalls, r.firewall) })
}

// spot is a rung with offloads on or off.
type spot struct {
	rung     *rung
	offloads lab.Offloads
}

// mode returns the offloads as part of a measurement's name.
func mode(o lab.Offloads) string { return "offloads-" + o.String() }

// pathOptions returns how to start the rung's path: each firewall as it would choose by
// itself. weir takes TCX if super-packets cross, and XDP if whole frames do. The kernel
// joins frames by GRO.
func (s spot) pathOptions() paths.SocketOptions {
	if s.offloads == lab.OffloadsOn {
		return paths.SocketOptions{Hook: "tcx"}
	}
	return paths.SocketOptions{Hook: "xdp", GRO: s.rung.firewall != Weir}
}
