package lint

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir/internal/testenv"
	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/resolve"
)

func load(t testing.TB, src string) (*resolve.Ruleset, diag.List) {
	t.Helper()
	host, err := resolve.ReadHost("../resolve/testdata/host.json")
	if err != nil {
		t.Fatal(err)
	}
	rules, list := resolve.Load("in", []byte(src), host)
	if rules == nil {
		t.Fatal(list.Err())
	}
	return rules, list
}

// TestGolden checks the files in testdata: linting "in" gives "warnings", folded as in
// weir check.
func TestGolden(t *testing.T) {
	testenv.EachGolden(t, "testdata/*.txtar", func(t *testing.T, g *testenv.Golden) {
		rules, list := load(t, g.Section("in"))
		Warn(rules, &list)
		list.Fold()
		var b strings.Builder
		if err := list.Fprint(&b); err != nil {
			t.Fatal(err)
		}
		g.Check(t, "warnings", b.String())
	})
}

// A packet is a random packet of TestNeverMatches.
type packet struct {
	direction    ast.Direction
	iface        string
	family       ast.Family
	proto        uint8
	src, dst     netip.Addr
	sport, dport uint16
	flags        uint8
}

// TestNeverMatches evaluates random rules for random packets, in order, and checks that
// no packet matches a rule that lint calls unreachable.
func TestNeverMatches(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	said, unsaid := 0, 0
	for range 300 {
		var src strings.Builder
		for range 20 {
			fmt.Fprintln(&src, randomRule(random, 0))
		}
		rules, _ := load(t, src.String())
		never := map[int]bool{}
		next := 0
		walk(rules.Rules, func(r, by *resolve.Rule) {
			for ; next < r.Nr; next++ {
				never[next] = true // in an anchor that is skipped
			}
			never[r.Nr], next = by != nil, r.Nr+1
		})
		for range 300 {
			for _, nr := range matching(rules.Rules, randomPacket(random)) {
				if never[nr] {
					t.Fatalf("%s\nis said never to match, but does, in\n%s", rules.Rules[nr].Text, src.String())
				}
			}
		}
		for _, n := range never {
			if n {
				said++
			} else {
				unsaid++
			}
		}
	}
	if said < 300 || unsaid < 300 {
		t.Errorf("%d rules are said never to match, %d not: the test shows little", said, unsaid)
	}
}

// matching returns the numbers of the rules that match a packet.
func matching(rules []*resolve.Rule, p packet) (matched []int) {
	for i := 0; i < len(rules); i++ {
		r := rules[i]
		if !matches(r, p) {
			i = end(r) - 1
			continue
		}
		matched = append(matched, i)
		if r.Action == ast.Match && r.Nat != nil && p.direction == ast.Out {
			p.src = r.Nat.Addrs[0].Prefix.Addr()
		}
		if r.Quick {
			break
		}
	}
	return matched
}

func end(r *resolve.Rule) int {
	if r.Anchor != nil {
		return r.Anchor.End
	}
	return r.Nr + 1
}

func matches(r *resolve.Rule, p packet) bool {
	ports := p.proto == 6 || p.proto == 17
	return (r.Direction == ast.AnyDirection || r.Direction == p.direction) &&
		(r.Interface.Any || (r.Interface.Name == p.iface) != r.Interface.Not) &&
		(r.Family == ast.AnyFamily || r.Family == p.family) &&
		(r.Proto == 0 || r.Proto == p.proto) &&
		holds(&r.From, p.src, p.sport, ports) && holds(&r.To, p.dst, p.dport, ports) &&
		(p.proto != 6 || p.flags&r.Flags.Mask == r.Flags.Set)
}

func holds(e *resolve.Endpoint, a netip.Addr, port uint16, ports bool) bool {
	return (e.Port.Op == ast.AnyPort || ports && e.Port.Match(port)) &&
		(e.Addr.Kind == resolve.AnyAddress || e.Addr.Prefix.Contains(a) != e.Addr.Not)
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func randomRule(r *rand.Rand, depth int) string {
	if depth < 2 && r.IntN(8) == 0 {
		return "anchor " + randomHead(r, pick(r, "", "in", "out")) + " {\n" + randomRule(r, depth+1) + "\n" + randomRule(r, depth+1) + "\n}"
	}
	if r.IntN(12) == 0 {
		return "match out " + pick(r, "", "on em0") + " inet nat-to 10.0.0.1"
	}
	return pick(r, "pass ", "block ") + pick(r, "", "in ", "out ") + pick(r, "", "quick ") + randomHead(r, "")
}

func randomHead(r *rand.Rand, direction string) string {
	words := []string{direction, pick(r, "", "", "on em0", "on em1", "on ! em0"), pick(r, "inet", "inet", "inet", "inet6", "")}
	v4 := words[2] == "inet"
	proto := pick(r, "", "proto tcp", "proto udp")
	words = append(words, proto)
	for _, side := range []string{"from ", "to "} {
		host, port := "any", ""
		if v4 {
			host = pick(r, "any", "any", "10.0.0.0/8", "10.0.0.1", "10.0.0.0/24", "! 10.0.0.0/24")
		}
		if proto != "" {
			port = pick(r, "", "", " port 1", " port 1:3", " port > 2", " port != 2", " port 1 >< 4", " port 2 <> 3")
		}
		words = append(words, side+host+port)
	}
	return strings.Join(words, " ")
}

func randomPacket(r *rand.Rand) packet {
	p := packet{
		direction: pick(r, ast.In, ast.Out), iface: pick(r, "em0", "em1", "em2"), family: pick(r, ast.Inet, ast.Inet6),
		proto: pick[uint8](r, 6, 6, 17, 1), sport: uint16(r.IntN(6)), dport: uint16(r.IntN(6)), flags: pick[uint8](r, 2, 16, 18),
	}
	addr := func() netip.Addr {
		if p.family == ast.Inet6 {
			return netip.MustParseAddr("2001:db8::1")
		}
		return netip.MustParseAddr(pick(r, "10.0.0.1", "10.0.0.2", "10.1.0.1", "11.0.0.1"))
	}
	p.src, p.dst = addr(), addr()
	return p
}

// TestCost checks that the cost stays linear with many shapes, and with many rules of one
// shape.
func TestCost(t *testing.T) {
	for name, line := range map[string]func(i int) string{
		"many forms": func(i int) string {
			return fmt.Sprintf("pass in quick on em%d proto tcp from 10.0.0.0/%d to 11.0.0.0/%d port %d", i%3, 8+i%24, 8+i/24%24, i%60000)
		},
		"one form": func(i int) string { return fmt.Sprintf("pass in quick on em0 proto tcp to port %d", i%60000) },
		"no state": func(i int) string { return fmt.Sprintf("pass in on em%d proto udp to port %d no state", i, i%60000) },
		"translations": func(i int) string {
			return fmt.Sprintf("match out nat-to 10.0.%d.%d", i/250%250, i%250)
		},
	} {
		var src strings.Builder
		for i := range 5_000 {
			fmt.Fprintln(&src, line(i))
		}
		rules, list := load(t, src.String())
		start := time.Now()
		Warn(rules, &list)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: %v for 5,000 rules", name, took)
		}
	}
}
