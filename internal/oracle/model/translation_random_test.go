package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/layers"
)

// modelFate returns the same from the model.
func modelFate(m *Model, f Frame) string {
	w := New(m.box, m.rules, 0).Trace(&f) // pools begin with their first address
	if !w.Pass {
		return "block"
	}
	return fmt.Sprintf("%v:%d-%d > %v:%d", w.Src.addrs(), w.Src.Low, w.Src.High, w.Dst.addrs(), w.Dst.Low)
}

// addrs returns the single addresses of an end.
func (e *End) addrs() (all []string) {
	for _, p := range e.Addrs {
		all = append(all, p.Addr().String())
	}
	return all
}

func (e *End) text() string {
	host := fmt.Sprint(e.addrs()[0])
	if len(e.Addrs) > 1 {
		host = "{" + strings.Trim(fmt.Sprint(e.Addrs), "[]") + "}"
	}
	if e.Low != e.High {
		return fmt.Sprintf("%s:%d-%d", host, e.Low, e.High)
	}
	return fmt.Sprintf("%s:%d", host, e.Low)
}

// Addresses for rules and packets of each family.
var (
	plainNear = [2][]string{{"192.168.1.10", "192.168.1.20", "192.168.1.30"}, {"fd00:1::10", "fd00:1::20", "fd00:1::30"}}
	plainFar  = [2][]string{{"198.51.100.7", "198.51.100.8", "198.51.101.9"}, {"2001:db8:7::7", "2001:db8:7::8", "2001:db8:8::9"}}
	plainOwn  = [2][]string{{"203.0.113.5", "192.168.1.1"}, {"2001:db8:5::5", "fd00:1::1"}}
	plainOut  = [2][]string{{"203.0.113.8", "203.0.113.9", "203.0.113.10"}, {"2001:db8:5::8", "2001:db8:5::9", "2001:db8:5::a"}}
	plainNets = [2][]string{{"192.168.1.0/27", "198.51.100.0/24", "203.0.113.0/28"}, {"fd00:1::/64", "2001:db8:7::/64", "2001:db8:5::/120"}}
	plainSwap = [2][2][]string{
		{{"192.168.1.0/28", "192.168.1.10/32"}, {"203.0.113.0/28", "203.0.113.9/32"}},
		{{"fd00:1::/120", "fd00:1::10/128"}, {"2001:db8:5::/120", "2001:db8:5::9/128"}},
	}
)

func oneOf[T any](r *rand.Rand, from ...[]T) T {
	all := slices.Concat(from...)
	return all[r.IntN(len(all))]
}

func sometimes(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

func randomPlainRule(r *rand.Rand) plainRule {
	f := r.IntN(2)
	rule := plainRule{kind: oneOf(r, []string{"nat", "nat", "rdr", "rdr", "binat", "pass", "block"})}
	if !sometimes(r, 4) {
		rule.on, rule.notOn = oneOf(r, []string{"lan", "wan", "wan"}), sometimes(r, 6)
	}
	if sometimes(r, 2) {
		rule.from = oneOf(r, plainNear[f], plainFar[f], plainNets[f])
	}
	if sometimes(r, 2) {
		rule.to, rule.notTo = oneOf(r, plainNear[f], plainFar[f], plainOwn[f], plainOut[f], plainNets[f]), sometimes(r, 5)
	}
	if sometimes(r, 5) {
		rule.tag = oneOf(r, []string{"A", "B"})
	}
	if sometimes(r, 6) {
		rule.tagged = oneOf(r, []string{"A", "B"})
	}
	if rule.kind != "binat" && sometimes(r, 3) {
		rule.proto = oneOf(r, []string{"tcp", "udp"})
		rule.low = oneOf(r, []uint16{53, 79, 80})
		rule.high = rule.low + oneOf(r, []uint16{0, 1, 20})
	}
	switch rule.kind {
	case "pass", "block":
		rule.direction, rule.quick = oneOf(r, []string{"", "in", "out"}), sometimes(r, 5)
		if rule.kind == "block" && sometimes(r, 2) {
			rule.kind = "pass"
		}
		return rule
	}
	rule.no = sometimes(r, 6)
	rule.pass = !rule.no && sometimes(r, 4)
	randomTarget(r, &rule, f)
	return rule
}

func randomTarget(r *rand.Rand, rule *plainRule, f int) {
	if rule.kind == "binat" {
		n := r.IntN(2)
		rule.from = plainSwap[f][0][n]
		if !rule.no {
			rule.target = []string{plainSwap[f][1][n]}
		}
		return
	}
	if rule.no {
		return
	}
	from := plainOut[f]
	if rule.kind == "rdr" {
		from = slices.Concat(plainNear[f], plainFar[f][:1])
	}
	rule.target = slices.Clone(from[r.IntN(len(from)):])
	if sometimes(r, 2) {
		rule.target = rule.target[:1]
	}
	switch {
	case rule.kind == "nat" && sometimes(r, 3):
		rule.static = true
	case rule.kind == "nat" && sometimes(r, 2):
		rule.tlow, rule.thigh = 1024, oneOf(r, []uint16{0, 1030})
	case rule.kind == "rdr" && rule.low != 0 && sometimes(r, 2):
		rule.tlow, rule.thigh, rule.star = 8000, oneOf(r, []uint16{0, 8001, 8004}), sometimes(r, 3)
		if rule.star {
			rule.thigh = 0
		}
	}
}

// TestTranslationRandom compares the model and plainFate for random packets with random
// translation and filter rules.
func TestTranslationRandom(t *testing.T) {
	const lists, packets = 400, 24
	fates := map[string]int{}
	for seed := range uint64(lists) {
		r := rand.New(rand.NewPCG(seed, 5))
		rules := make([]plainRule, 1+r.IntN(9))
		for i := range rules {
			rules[i] = randomPlainRule(r)
		}
		config := plainText(r, rules)
		m := load(t, config)
		for range packets {
			f := r.IntN(2)
			iface, index := "lan", uint32(lanIndex)
			p := plainPacket{
				proto: oneOf(r, []string{"tcp", "udp"}), src: addr(oneOf(r, plainNear[f])), dst: addr(oneOf(r, plainFar[f], plainOut[f])),
				sport: 4000, dport: oneOf(r, []uint16{53, 79, 80, 90, 443}),
			}
			if sometimes(r, 2) {
				iface, index = "wan", wanIndex
				p.src, p.dst = addr(oneOf(r, plainFar[f])), addr(oneOf(r, plainOwn[f], plainOut[f], plainNear[f]))
			}
			want := plainFate(rules, iface, p)
			frame := Frame{Interface: index, Bytes: opening(t, p)}
			if got := modelFate(m, frame); got != want {
				t.Fatalf("seed %d\n%s%s %s %v:%d > %v:%d in by %s\nthe model: %s\nby the manual: %s", seed, config,
					p.proto, p.tag, p.src, p.sport, p.dst, p.dport, iface, got, want)
			}
			fates[kindOfFate(want, p)]++
		}
	}
	for _, kind := range []string{"blocked", "as it was", "translated"} {
		if fates[kind] < lists {
			t.Errorf("%v: too few %s to tell", fates, kind)
		}
	}
}

// plainText returns the configuration of rules. Some adjacent translation rules are in an
// anchor that is called in their place, which means the same.
func plainText(r *rand.Rand, rules []plainRule) string {
	var text, inside strings.Builder
	first := r.IntN(len(rules))
	last := first
	if sometimes(r, 2) {
		last += r.IntN(len(rules) - first + 1)
	}
	for i := range rules {
		rule := &rules[i]
		filters := rule.kind == "pass" || rule.kind == "block"
		if i < first || i >= last || filters {
			fmt.Fprintln(&text, rule)
		} else {
			fmt.Fprintln(&inside, rule)
		}
		if i == first && first < last {
			text.WriteString("nat-anchor x\nrdr-anchor x\nbinat-anchor x\n")
		}
	}
	if first < last {
		fmt.Fprintf(&text, "anchor x {\n%s}\n", inside.String())
	}
	return text.String()
}

func kindOfFate(fate string, p plainPacket) string {
	switch fate {
	case "block":
		return "blocked"
	case fmt.Sprintf("[%v]:%d-%d > [%v]:%d", p.src, p.sport, p.sport, p.dst, p.dport):
		return "as it was"
	}
	return "translated"
}

// opening returns the first packet of a connection.
func opening(t *testing.T, p plainPacket) []byte {
	t.Helper()
	if p.proto == "udp" {
		return udp(t, p.src, p.sport, p.dst, p.dport, "q")
	}
	return frame(t, ip(p.src, p.dst, layers.IPProtocolTCP),
		&layers.TCP{SrcPort: layers.TCPPort(p.sport), DstPort: layers.TCPPort(p.dport), SYN: true, Window: 1000})
}
