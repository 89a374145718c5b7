package dataplane

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/state"
)

// Values of endpoint_key.outside (bpf/state/endpoint_key.h).
const (
	endpointSame    = 0
	endpointOutside = 1
	endpointOther   = 2
)

// A mapping is what a source's address and port become, and how many states it has.
type mapping struct {
	source, outside netip.AddrPort
	states          uint32
}

// mappings returns the mappings of all sources, in order. It checks that each has its second
// entry.
func (h *harness) mappings() []mapping {
	h.tb.Helper()
	var all []mapping
	outside := make(map[netip.AddrPort]bool)
	var key xdpEndpointKey
	var e xdpEndpoint
	for i := h.dp.tables.maps[mapEndpoints].Iterate(); i.Next(&key, &e); {
		at := netip.AddrPortFrom(key.Addr.addr(), fromWire(key.Port))
		if key.Outside == endpointOutside {
			outside[at] = true
			continue
		}
		all = append(all, mapping{at, netip.AddrPortFrom(e.Addr.addr(), fromWire(e.Port)), e.States})
	}
	slices.SortFunc(all, func(a, b mapping) int { return a.source.Compare(b.source) })
	for _, m := range all {
		if !outside[m.outside] {
			h.tb.Errorf("nothing keeps %s for %s", m.outside, m.source)
		}
	}
	if len(outside) != len(all) {
		h.tb.Errorf("%d sources have %d ports", len(all), len(outside))
	}
	return all
}

// forgetEndpoints removes all mappings.
func (h *harness) forgetEndpoints() {
	h.tb.Helper()
	var key xdpEndpointKey
	var keys []xdpEndpointKey // deleting while listing would leave some out
	m := h.dp.tables.maps[mapEndpoints]
	for all := m.Iterate(); all.Next(&key, new(xdpEndpoint)); {
		keys = append(keys, key)
	}
	for i := range keys {
		check(h.tb, m.Delete(&keys[i]))
	}
}

// unmap takes a state that is released from the count of its source, as endpoint_release()
// does.
func (t *twin) unmap(s *xdpState) {
	if state.FlowFlags(s.FlowForth.Flags)&state.FlowMapped == 0 || s.Forth.Tuple.Proto != unix.IPPROTO_UDP {
		return
	}
	key := xdpEndpointKey{Addr: s.Forth.Tuple.Src, Port: s.Forth.Tuple.Sport, Zone: s.Forth.Tuple.Zone}
	if s.Forth.Tuple.Src.addr().Is4() != s.Back.Tuple.Dst.addr().Is4() {
		key.Outside = endpointOther
	}
	var e xdpEndpoint
	m := t.dp.tables.maps[mapEndpoints]
	if err := m.Lookup(&key, &e); isMissing(err) || e.Addr != s.Back.Tuple.Dst || e.Port != s.Back.Tuple.Dport {
		return
	}
	e.States--
	if e.States > 0 {
		check(t.tb, m.Put(&key, &e))
		return
	}
	check(t.tb, m.Delete(&key))
	key.Addr, key.Port, key.Outside = e.Addr, e.Port, endpointOutside
	check(t.tb, m.Delete(&key))
}

// A UDP source has one address and port outside for all destinations (RFC 4787, 4.1).
func testEndpoints(h *harness) {
	const rule = "match out on wan0 inet nat-to (wan0) port 7000:7001 endpoint-independent\nmatch out on wan0 inet6 nat-to (wan0) port 7000:7001 endpoint-independent\npass"
	ask := func(source, to string) string { return "udp " + source + " > " + to }
	gets := func(port, to string) string {
		return "forward rule wan udp 203.0.113.2:" + port + " > " + to + " ttl 63"
	}
	h.plays([]play{
		{"one port for all destinations", rule, []step{
			{"xdp lan", ask("192.168.1.10:5", "198.51.100.9:53"), gets("$p", "198.51.100.9:53")},
			{"xdp lan", ask("192.168.1.10:5", "198.51.100.9:54"), gets("$p", "198.51.100.9:54")},
			{"tcx lan", ask("192.168.1.10:5", "198.51.100.8:53"), gets("$p", "198.51.100.8:53")},
			{"xdp wan", "udp 198.51.100.8:53 > 203.0.113.2:$p", "forward state lan udp 198.51.100.8:53 > 192.168.1.10:5 ttl 63"},
			{"xdp wan", "udp 198.51.100.7:53 > 203.0.113.2:$p", "up local done"}, // a mapping is no filter
			{"tcx lan", ask("192.168.1.11:5", "198.51.100.9:53"), gets("$q", "198.51.100.9:53")},
			{"xdp lan", ask("192.168.1.11:5", "198.51.100.8:53"), gets("$q", "198.51.100.8:53")},
			{"xdp lan", ask("192.168.1.10:6", "198.51.100.1:53"), "drop nat-ports"}, // free towards it, but both are others' outside
			{"xdp lan", "tcp 192.168.1.10:5 > 198.51.100.1:53 S", "forward rule wan tcp 203.0.113.2:$any > 198.51.100.1:53 S ttl 63"},
		}},
		{"IPv6", rule, []step{
			{"tcx lan", "udp [fd00:1::10]:5 > [2001:db8:9::1]:53", "forward rule wan udp [2001:db8:113::2]:$p > [2001:db8:9::1]:53 ttl 63"},
			{"xdp lan", "udp [fd00:1::10]:5 > [2001:db8:9::2]:53", "forward rule wan udp [2001:db8:113::2]:$p > [2001:db8:9::2]:53 ttl 63"},
		}},
		{"FreeBSD's nat, in a pool of several addresses", "nat on wan0 inet proto udp from any to any -> 203.0.113.64/30 endpoint-independent\npass", []step{
			{"xdp lan", ask("192.168.1.10:5", "198.51.100.9:53"), "forward rule wan udp 203.0.113.$a:$p > 198.51.100.9:53 ttl 63"},
			{"tcx lan", ask("192.168.1.10:5", "198.51.100.8:53"), "forward rule wan udp 203.0.113.$a:$p > 198.51.100.8:53 ttl 63"},
			{"xdp lan", ask("192.168.1.10:5", "198.51.100.7:53"), "forward rule wan udp 203.0.113.$a:$p > 198.51.100.7:53 ttl 63"},
		}},
		{"to the other family", "pass in on lan0 inet6 to 64:ff9b::/96 af-to inet from 203.0.113.64/30 endpoint-independent", []step{
			{"xdp lan", "udp [fd00:1::10]:5 > [64:ff9b::c633:6409]:53", "forward rule wan udp 203.0.113.$a:$p > 198.51.100.9:53 ttl 63"},
			{"tcx lan", "udp [fd00:1::10]:5 > [64:ff9b::c633:6408]:54", "forward rule wan udp 203.0.113.$a:$p > 198.51.100.8:54 ttl 63"},
			{"xdp lan", "udp [fd00:1::10]:5 > [64:ff9b::c633:6407]:53", "forward rule wan udp 203.0.113.$a:$p > 198.51.100.7:53 ttl 63"},
		}},
		{"an address of each family", "match out on wan0 inet6 nat-to (wan0) endpoint-independent\npass\npass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0) endpoint-independent", []step{
			{"xdp lan", "udp [fd00:1::10]:5 > [64:ff9b::c633:6409]:53", "forward rule wan udp 203.0.113.2:$p > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp [fd00:1::10]:5 > [2001:db8:9::1]:53", "forward rule wan udp [2001:db8:113::2]:$q > [2001:db8:9::1]:53 ttl 63"},
			{"tcx lan", "udp [fd00:1::10]:5 > [64:ff9b::c633:6408]:53", "forward rule wan udp 203.0.113.2:$p > 198.51.100.8:53 ttl 63"},
			{"tcx lan", "udp [fd00:1::10]:5 > [2001:db8:9::2]:53", "forward rule wan udp [2001:db8:113::2]:$q > [2001:db8:9::2]:53 ttl 63"},
		}},
		{"one source for each port, of either family", rule + "\npass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0) port 7000:7001 endpoint-independent", []step{
			{"xdp lan", ask("192.168.1.10:5", "198.51.100.9:53"), gets("$p", "198.51.100.9:53")},
			{"xdp lan", "udp [fd00:1::10]:5 > [64:ff9b::c633:6408]:53", gets("$q", "198.51.100.8:53")},
			{"xdp lan", "udp [fd00:1::11]:5 > [64:ff9b::c633:6407]:53", "drop nat-ports"},
			{"tcx lan", "udp [fd00:1::10]:5 > [64:ff9b::c633:6407]:53", gets("$q", "198.51.100.7:53")},
		}},
		{"where it comes in", "pass in proto udp nat-to 203.0.113.64 port 7000:7007 endpoint-independent\npass out", []step{
			{"xdp lan", ask("192.168.1.10:5", "198.51.100.9:53"), "forward rule wan udp 203.0.113.64:$p > 198.51.100.9:53 ttl 63"},
			{"xdp lan", ask("192.168.1.10:5", "198.51.100.8:53"), "forward rule wan udp 203.0.113.64:$p > 198.51.100.8:53 ttl 63"},
		}},
	})
}

const endpointRules = "match out on wan0 inet nat-to (wan0) endpoint-independent\npass\n" +
	"pass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0) endpoint-independent"

// A mapping ends with the last of its states.
func TestEndpointsEnd(t *testing.T) {
	h := newHarness(t, endpointRules, func(c *Config) { c.Frozen = false })
	h.liveFor(1)
	check(t, h.dp.startGC())
	for round := range 3 {
		for i := range 20 {
			h.dp.Heartbeat()
			h.expect("xdp lan", fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.%d:53", 1000+i%4, 1+i), "forward rule")
			h.expect("xdp lan", fmt.Sprintf("udp [fd00:1::10]:1000 > [64:ff9b::c633:64%02x]:53", 1+i), "forward rule")
		}
		if all := h.mappings(); len(all) != 5 || all[0].states != 5 || all[3].states != 5 || all[4].states != 20 {
			t.Errorf("round %d: %v", round, all)
		}
		h.waitEmpty()
		if all := h.mappings(); len(all) != 0 {
			t.Errorf("round %d: without states there are still %v", round, all)
		}
	}
}

// Two cores see packets of one source to other destinations at the same time. The source gets
// one port, and no count is left over.
func TestEndpointsRace(t *testing.T) {
	const rounds = 400
	h := newHarness(t, "set limit states 50000\n"+endpointRules, func(c *Config) { c.Frozen = false })
	h.liveFor(60)
	check(t, h.dp.startGC())
	h.onTwoCPUs(func(cpu int) error {
		for i := range rounds {
			h.dp.Heartbeat()
			for far := range 20 {
				text := fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.%d:53", 1000+i, 1+2*far+cpu)
				run := bpfload.Run{Frame: parsePkt(text).frame(lanHostMAC, lan0MAC), Ifindex: h.net.lan0}
				if _, err := bpfload.RunXDP(h.program("weir_xdp"), run); err != nil {
					return err
				}
			}
		}
		return nil
	})
	ports := make(map[uint16]map[uint16]int) // of sources: their ports outside
	for i := range h.dp.View().live() {
		s := &h.dp.tables.states[i]
		source := fromWire(s.Forth.Tuple.Sport)
		if ports[source] == nil {
			ports[source] = make(map[uint16]int)
		}
		ports[source][fromWire(s.Back.Tuple.Dport)]++
	}
	lost := 0
	for source, of := range ports {
		if len(of) != 1 {
			t.Errorf("port %d has several outside: %v", source, of)
		}
		for _, n := range of {
			lost += 40 - n
		}
	}
	if len(ports) != rounds {
		t.Errorf("%d sources, want %d", len(ports), rounds)
	}
	t.Logf("%d packets of %d found the mapping in the making, and were dropped", lost, 40*rounds)
	for _, m := range h.mappings() {
		if int(m.states) != ports[m.source.Port()][m.outside.Port()] {
			t.Errorf("%s counts %d states, there are %d", m.source, m.states, ports[m.source.Port()][m.outside.Port()])
		}
	}
	h.dp.View().KillStates(func(*state.State) bool { return true })
	h.waitEmpty()
	if all := h.mappings(); len(all) != 0 {
		t.Errorf("without states there are still %v", all)
	}
}

// Mappings outlive a reload, and tables of another size get them with the states.
func TestEndpointsAreKept(t *testing.T) {
	h := newHarness(t, endpointRules)
	commit(t, h.dp, nil)
	for far := range 3 {
		h.expect("xdp lan", fmt.Sprintf("udp 192.168.1.10:5 > 198.51.100.%d:53", 1+far), "forward rule")
		h.expect("xdp lan", fmt.Sprintf("udp [fd00:1::10]:5 > [64:ff9b::c633:640%d]:53", 1+far), "forward rule")
	}
	before := h.mappings()
	if len(before) != 2 || before[0].states != 3 || before[1].states != 3 {
		t.Fatalf("%v", before)
	}
	for _, rules := range []string{endpointRules + "\npass proto tcp", "set limit states 7777\n" + endpointRules} {
		cfg := h.net.config()
		cfg.Frozen, cfg.later = true, true
		rs := h.parse(rules)
		cfg.Program, cfg.Options = must(ruleset.Compile(rs, h.snapshot()))(t), ruleset.OptionsOf(&rs.Options)
		next := build(t, cfg)
		commit(t, next, nil)
		h.dp = next
		if diff := cmp.Diff(before, h.mappings(), cmp.AllowUnexported(mapping{}), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
			t.Errorf("%q: mappings (-before +after):\n%s", rules, diff)
		}
	}
}

// A mapping that a version without af-to in mappings has entered goes on. It is one to an
// address of the source's own family.
func TestEndpointsFromBefore(t *testing.T) {
	h := newHarness(t, "match out on wan0 nat-to (wan0) endpoint-independent\npass\npass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0) endpoint-independent")
	enter := func(source, outside string) {
		t.Helper()
		from, to := netip.MustParseAddrPort(source), netip.MustParseAddrPort(outside)
		e := xdpEndpoint{Addr: rawAddr(to.Addr()), Port: fromWire(to.Port()), States: 1}
		keys := []xdpEndpointKey{
			{Addr: rawAddr(from.Addr()), Port: fromWire(from.Port()), Outside: endpointSame},
			{Addr: e.Addr, Port: e.Port, Outside: endpointOutside},
		}
		for i := range keys {
			check(t, h.dp.tables.maps[mapEndpoints].Put(&keys[i], &e))
		}
	}
	enter("192.168.1.10:5", "203.0.113.2:50123")
	enter("[fd00:1::10]:5", "[2001:db8:113::2]:50124")
	for _, test := range []struct{ sent, want string }{
		{"udp 192.168.1.10:5 > 198.51.100.9:53", "wan udp 203.0.113.2:50123 > 198.51.100.9:53 ttl 63"},
		{"udp [fd00:1::10]:5 > [2001:db8:9::1]:53", "wan udp [2001:db8:113::2]:50124 > [2001:db8:9::1]:53 ttl 63"},
	} {
		r := h.in(h.xdp, "lan", test.sent)
		if got := r.packet(); got != test.want {
			t.Errorf("%s: %s, want %s", test.sent, got, test.want)
		}
	}
	r := h.in(h.xdp, "lan", "udp [fd00:1::10]:5 > [64:ff9b::c633:6409]:53")
	if got := r.packet(); !strings.Contains(got, "203.0.113.2:") {
		t.Errorf("to the other family: %s", got)
	}
	if all := h.mappings(); len(all) != 3 {
		t.Errorf("%v", all)
	}
}
