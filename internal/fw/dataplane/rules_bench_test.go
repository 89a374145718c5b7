package dataplane

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"weir/internal/fw/ruleset"
	"weir/internal/fw/ruleset/rulestest"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// A shape is rules that grow in number, and packets that meet them.
type shape struct {
	name   string
	rules  func(n int) []*resolve.Rule
	packet func(n int, r *rand.Rand) rulestest.Packet
	unlike bool                         // no two packets are alike: what a walk costs that is not remembered
	tables func(n int) []*resolve.Table // that the rules name; nil: none
}

func host4(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
}

func host6(n int) netip.Addr {
	return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, byte(n >> 4), 0, byte(n), 14: byte(n >> 8), 15: byte(n)})
}

func to(a netip.Addr) resolve.Address {
	return resolve.Address{Kind: resolve.PrefixAddress, Prefix: netip.PrefixFrom(a, a.BitLen())}
}

// service is "pass in [quick] on lan0 proto tcp from any to HOST port PORT flags
// S/SA keep state", as a file has one for each server.
func service(host netip.Addr, port uint16, quick bool) *resolve.Rule {
	family := ast.Inet
	if host.Is6() {
		family = ast.Inet6
	}
	return &resolve.Rule{
		Direction: ast.In, Quick: quick, Interface: resolve.Interface{Name: "lan0"}, Family: family, Proto: 6,
		To:    resolve.Endpoint{Addr: to(host), Port: resolve.PortRange{Op: ast.PortEqual, Low: port}},
		Flags: resolve.TCPFlags{Set: 0x02, Mask: 0x12},
	}
}

func servicePort(n int) uint16 { return 1000 + uint16(n%200) }

func syn(src, dst netip.Addr, port uint16) rulestest.Packet {
	return rulestest.Packet{Direction: ast.In, Ifindex: 2, Src: src, Dst: dst, Proto: 6, SPort: 40000, DPort: port, TCPFlags: 0x02}
}

// services returns a default block and then a rule for each server.
func services(host func(int) netip.Addr, quick bool) func(int) []*resolve.Rule {
	return func(n int) []*resolve.Rule {
		rules := []*resolve.Rule{{Action: ast.Block, Interface: resolve.Interface{Any: true}}}
		for i := range n - 1 {
			rules = append(rules, service(host(i), servicePort(i), quick))
		}
		return rules
	}
}

func toServices(host func(int) netip.Addr) func(int, *rand.Rand) rulestest.Packet {
	return func(n int, r *rand.Rand) rulestest.Packet {
		i := r.IntN(n)
		return syn(host(1<<20+r.IntN(1<<16)), host(i), servicePort(i))
	}
}

// pairs returns rules of which each is asked by its source or by its destination
// of every packet, and none by both: no chunk can be passed over.
func pairs(n int) []*resolve.Rule {
	var rules []*resolve.Rule
	for i := range n {
		r := &resolve.Rule{Interface: resolve.Interface{Any: true}, Quick: true}
		r.From.Addr, r.To.Addr = to(host4(i%2)), to(host4(i%2))
		rules = append(rules, r)
	}
	return rules
}

func alike(action ast.Action) func(int) []*resolve.Rule {
	return func(n int) []*resolve.Rule {
		var rules []*resolve.Rule
		for range n {
			rules = append(rules, &resolve.Rule{Action: action, Interface: resolve.Interface{Any: true}})
		}
		return rules
	}
}

var shapes = []shape{
	{"servers-quick", services(host4, true), toServices(host4), false, nil},
	{"servers-quick-unlike", services(host4, true), toServices(host4), true, nil},
	{"servers-last", services(host4, false), toServices(host4), false, nil},
	{"servers-ipv6", services(host6, true), toServices(host6), false, nil},
	{"servers-refused", services(host4, true), func(n int, r *rand.Rand) rulestest.Packet {
		return syn(host4(1<<20), host4(r.IntN(n)), 999)
	}, false, nil},
	{"all-pass", alike(ast.Pass), toServices(host4), false, nil},
	{"none-of-pairs-unlike", pairs, func(int, *rand.Rand) rulestest.Packet { return syn(host4(0), host4(1), 80) }, true, nil},
	{"all-match-unlike", alike(ast.Match), toServices(host4), true, nil},
	{"tables", askTables, toServices(host4), false, hostTables},
	{"tables-unlike", askTables, toServices(host4), true, hostTables},
}

// askTables returns a rule for each table.
func askTables(n int) []*resolve.Rule {
	var rules []*resolve.Rule
	for i := range n {
		r := service(host4(0), 0, true)
		r.To = resolve.Endpoint{Addr: resolve.Address{Kind: resolve.TableAddress, Table: fmt.Sprint("t", i)}}
		rules = append(rules, r)
	}
	return rules
}

// hostTables returns tables of one host each.
func hostTables(n int) []*resolve.Table {
	var tables []*resolve.Table
	for i := range n {
		tables = append(tables, &resolve.Table{Name: fmt.Sprint("t", i), Entries: []resolve.TableEntry{
			{Prefix: netip.PrefixFrom(host4(i), 32)},
		}})
	}
	return tables
}

var benchHost = ruleset.Snapshot{Interfaces: []ruleset.Interface{
	{Name: "lo", Index: 1}, {Name: "lan0", Index: 2}, {Name: "wan0", Index: 3},
}}

// maxTableSets is how many sets of tables there can be; the empty set is one of them.
const maxTableSets = 1 << 16

// The cost of one crossing in the kernel, by the number of rules. There are 4,096 random
// packets. The cost of drawing them is subtracted.
func BenchmarkRules(b *testing.B) {
	for _, s := range shapes {
		for _, n := range []int{1, 10, 100, 1000, 10000, 32768, 65536} {
			if s.tables != nil && n >= maxTableSets {
				continue
			}
			b.Run(fmt.Sprintf("%s/%d", s.name, n), func(b *testing.B) { benchmarkShape(b, s, n) })
		}
	}
}

func benchmarkShape(b *testing.B, s shape, n int) {
	const crossings = 4096
	rs := &resolve.Ruleset{Rules: s.rules(n)}
	if s.tables != nil {
		rs.Tables = s.tables(n)
	}
	program := must(ruleset.Compile(rs, benchHost))(b)
	entries := ruleEntries(program, 0)
	entries["crossings"] = crossings
	h := newRulesHarness(b, entries, map[string]any{
		"crossing_count": uint32(crossings), "rule_chunks": uint32(program.Chunks()),
		"never_alike": asByte(s.unlike),
	})
	h.load(b, program)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range crossings {
		asked := h.ask(s.packet(n, random))
		check(b, h.objects.Maps["crossings"].Put(uint32(i), &asked))
	}
	frame := make([]byte, 64)
	run := func(name string, times int) time.Duration {
		_, each, err := h.objects.Programs[name].Benchmark(frame, times, nil)
		check(b, err)
		return each
	}
	run("evaluate_drawn", crossings)
	evaluated, drawn := time.Hour, time.Hour // the shortest of all runs: others use this machine too
	for b.Loop() {
		times := 200_000
		if s.name == "all-match-unlike" {
			times = 2_000_000 / (n + 10)
		}
		evaluated = min(evaluated, run("evaluate_drawn", times))
		drawn = min(drawn, run("draw", 200_000))
	}
	b.ReportMetric(float64(evaluated-drawn), "ns/crossing")
	b.ReportMetric(0, "ns/op")
}

// The cost of a load in user space.
func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{1000, 10000, 65536} {
		rs := &resolve.Ruleset{Rules: services(host4, true)(n)}
		b.Run(fmt.Sprintf("servers/%d", n), func(b *testing.B) {
			for b.Loop() {
				must(ruleset.Compile(rs, benchHost))(b)
			}
		})
	}
	table := &resolve.Table{Name: "bad"}
	for i := range 200_000 {
		table.Entries = append(table.Entries, resolve.TableEntry{Prefix: netip.PrefixFrom(host4(i*37), 32)})
	}
	rs := &resolve.Ruleset{Rules: services(host4, true)(1000), Tables: []*resolve.Table{table}}
	rs.Rules[0].From.Addr = resolve.Address{Kind: resolve.TableAddress, Table: "bad"}
	b.Run("table/200000", func(b *testing.B) {
		for b.Loop() {
			must(ruleset.Compile(rs, benchHost))(b)
		}
	})
}
