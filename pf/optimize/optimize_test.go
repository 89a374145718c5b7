package optimize

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/pf/ast"
	"weir/pf/printer"
)

// TestRandom checks pass by pass that the linear algorithms give what comparing all pairs
// gives.
func TestRandom(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		rules := make([]*ast.Rule, 1+r.IntN(60))
		few := r.IntN(3) == 0 // few different fields, so that tables appear
		for i := range rules {
			rules[i] = drawRule(r, few)
		}
		got := text(Rules(rules, tables()))
		if want := text(plainRules(rules, tables())); got != want {
			t.Fatalf("seed %d: of\n%s(-plain +got):\n%s", seed, text(rules), cmp.Diff(want, got))
		}
		again := text(Rules(rules, tables()))
		if again != got {
			t.Fatalf("seed %d: the rules themselves were changed", seed)
		}
	}
}

func plainRules(rules []*ast.Rule, table MakeTable) []*ast.Rule {
	r := newReader()
	var out []*ast.Rule
	for len(rules) > 0 {
		var b block
		b, rules = r.superblock(rules)
		if len(b) > 1 {
			b = plainOrdered(plainCombined(plainWithoutCovered(b), table))
		}
		for _, rule := range b {
			out = append(out, rule.ast)
		}
	}
	return out
}

// tables makes tables whose names list their contents.
func tables() MakeTable {
	return func(hosts []ast.Host) ast.Host {
		var names []string
		for i := range hosts {
			names = append(names, printer.Host(&hosts[i]))
		}
		return ast.Host{Kind: ast.HostTable, Name: strings.Join(names, "+"), Bits: -1}
	}
}

func text(rules []*ast.Rule) string {
	var b strings.Builder
	for _, r := range rules {
		fmt.Fprintln(&b, printer.Rule(r))
	}
	return b.String()
}

func drawRule(r *rand.Rand, few bool) *ast.Rule {
	out := &ast.Rule{Family: ast.Inet}
	if r.IntN(3) == 0 {
		out.Family = ast.Inet6
	}
	drawEnd(r, &out.From, out.Family)
	if !few || r.IntN(4) == 0 {
		drawEnd(r, &out.To, out.Family)
	}
	if few {
		return out
	}
	if r.IntN(12) == 0 {
		out.Action = ast.Block
	}
	if r.IntN(20) == 0 {
		out.Label = &ast.Word{Text: "here"}
	}
	out.Direction = ast.Direction(r.IntN(3))
	if names := []string{"", "", "em0", "em1", "em1", "egress"}; r.IntN(2) == 0 {
		if name := names[r.IntN(len(names))]; name != "" {
			out.On = []ast.Interface{{Name: name, Not: r.IntN(4) == 0}}
		}
	}
	if r.IntN(2) == 0 {
		out.Protos = []ast.Proto{{Word: ast.Word{Text: "tcp"}, Number: 6}}
		if r.IntN(2) == 0 {
			out.Flags = &ast.Flags{Set: 2, Mask: 18}
		}
		if r.IntN(2) == 0 {
			n := uint16(1 + r.IntN(3))
			out.To.Ports = []ast.Port{{Low: ast.Number{Word: ast.Word{Text: fmt.Sprint(n)}, Value: n}}}
		}
	}
	if len(out.From.Hosts)+len(out.To.Hosts) == 0 && r.IntN(2) == 0 {
		out.Family = ast.AnyFamily
	}
	return out
}

func drawEnd(r *rand.Rand, e *ast.Endpoint, family ast.Family) {
	switch r.IntN(8) {
	case 0:
	case 1:
		e.Hosts = []ast.Host{{Kind: ast.HostTable, Name: "t", Bits: -1, Not: r.IntN(2) == 0}}
	case 2:
		e.Hosts = []ast.Host{{Kind: ast.HostDynamic, Name: "em0", Bits: -1, Network: r.IntN(2) == 0}}
	default:
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(r.IntN(2)), byte(r.IntN(2)), byte(r.IntN(8))}), 32)
		if family == ast.Inet6 {
			p = netip.PrefixFrom(netip.AddrFrom16([16]byte{32, 1, 15: byte(r.IntN(8))}), 128)
		}
		if r.IntN(3) == 0 {
			p, _ = p.Addr().Prefix(r.IntN(p.Bits() + 1))
		}
		e.Hosts = []ast.Host{{Kind: ast.HostPrefix, Prefix: p, Bits: -1, Not: r.IntN(6) == 0}}
	}
}

// Each ruleset has its own reader, and there may be one for each of many anchors. So a
// reader must cost almost nothing.
func TestReadersShareEncoders(t *testing.T) {
	newReader()
	if n := testing.AllocsPerRun(10, func() { newReader() }); n > 10 {
		t.Errorf("a reader takes %.0f allocations", n)
	}
	one := []*ast.Rule{{}}
	if n := testing.AllocsPerRun(10, func() { Rules(one, nil) }); n > 0 {
		t.Errorf("a ruleset of one rule takes %.0f allocations", n)
	}
}
