package ladder

import (
	"slices"

	"weir/internal/bench/paths"
	"weir/internal/lab"
)

// Firewalls that rungs are built with.
const (
	Kernel = "kernel"
	Nft    = "nft"
	Weir   = "weir"
)

// rung is one step of the ladder, built by one firewall.
type rung struct {
	name     string // as the report shows it; "nat, weir"
	step     string // what it has more than the one below
	firewall string // "": none
	path     string // of internal/bench; "": none
	below    string // the rung that it is compared with
	route    route
	about    string
}

// route is which way traffic takes.
type route int

const (
	overLoopback route = iota // within one host
	overWire                  // from host to host
	routed                    // through the firewall, with addresses that are not translated
	translated                // through the firewall, with addresses that are
)

// rungs are all steps from the bottom up. What weir learns next (queues, PPPoE,
// tunnels) is a rung more.
var rungs = []*rung{
	{name: "loopback", step: "loopback", route: overLoopback, about: "sockets of one host: no wire and no firewall"},
	{name: "direct", step: "direct", route: overWire, below: "loopback", about: "a veth pair between two hosts"},
	{name: "routed, kernel", step: "routed", firewall: Kernel, path: paths.Kernel, route: routed, below: "direct", about: "the kernel's routing, no rules"},
	{name: "stateful, nft", step: "stateful", firewall: Nft, path: paths.Nft, route: routed, below: "routed, kernel", about: "examples/gateway.nft, addresses that it does not translate"},
	{name: "stateful, weir", step: "stateful", firewall: Weir, path: paths.Weir, route: routed, below: "routed, kernel", about: "examples/gateway.conf, addresses that it does not translate"},
	{name: "nat, nft", step: "nat", firewall: Nft, path: paths.NftNAT, route: translated, below: "stateful, nft", about: "examples/gateway.nft, addresses that it translates"},
	{name: "nat, weir", step: "nat", firewall: Weir, path: paths.WeirNAT, route: translated, below: "stateful, weir", about: "examples/gateway.conf, addresses that it translates"},
}

// control is the rung that is measured twice, as if it were two: the kernel's
// routing, or the direct wire where the kernel is not wanted.
func (o *Options) control() *rung {
	if slices.Contains(o.Firewalls, Kernel) {
		return rungOf("routed, kernel")
	}
	return rungOf("direct")
}

// toCome are steps that have no rung yet, and why.
var toCome = []string{"queues (QoS)", "PPPoE", "VPN"}

// rungOf finds a rung by its name.
func rungOf(name string) *rung {
	i := slices.IndexFunc(rungs, func(r *rung) bool { return r.name == name })
	return rungs[i]
}

// chosen are the rungs without those of firewalls that are not wanted.
func (o *Options) chosen() (found []*rung) {
	for _, r := range rungs {
		if r.firewall == "" || slices.Contains(o.Firewalls, r.firewall) {
			found = append(found, r)
		}
	}
	return found
}

// spot is a rung with offloads on or off.
type spot struct {
	rung     *rung
	offloads lab.Offloads
}

// mode is how names of measurements call the offloads.
func mode(o lab.Offloads) string { return "offloads-" + o.String() }

// pathOptions are how the rung's path is started: each firewall as it would
// choose itself. Weir takes TCX where super-packets cross, and XDP where a wire's
// frames do; the kernel joins a wire's frames by GRO.
func (s spot) pathOptions() paths.SocketOptions {
	if s.offloads == lab.OffloadsOn {
		return paths.SocketOptions{Hook: "tcx"}
	}
	return paths.SocketOptions{Hook: "xdp", GRO: s.rung.firewall != Weir}
}
