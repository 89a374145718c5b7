package model

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/layers"
)

// A plainRule is a translation or filter rule in the words of FreeBSD's
// pf.conf(5). plainFate judges by these alone: it shares nothing with the
// resolver and the model but the text that a plainRule becomes.
type plainRule struct {
	kind         string // nat, rdr, binat, pass, block
	no           bool
	pass, quick  bool
	direction    string // of filter rules; empty: both
	on           string // empty: any
	notOn        bool
	proto        string
	from, to     string // an address or network; empty: any
	notTo        bool
	low, high    uint16 // of the destination; 0: any
	tag, tagged  string
	target       []string
	tlow, thigh  uint16
	star, static bool
}

func (r *plainRule) String() string {
	words := []string{r.kind}
	if r.no {
		words = []string{"no", r.kind}
	}
	add := func(yes bool, w ...string) {
		if yes {
			words = append(words, w...)
		}
	}
	host := func(h string, not bool) string {
		switch {
		case h == "":
			return "any"
		case not:
			return "! " + h
		}
		return h
	}
	add(r.pass, "pass")
	add(r.direction != "", r.direction)
	add(r.quick, "quick")
	add(r.on != "" && r.notOn, "on !", r.on)
	add(r.on != "" && !r.notOn, "on", r.on)
	add(r.proto != "", "proto", r.proto)
	add(true, "from", host(r.from, false), "to", host(r.to, r.notTo))
	add(r.low != 0 && r.high == r.low, "port", fmt.Sprint(r.low))
	add(r.low != 0 && r.high != r.low, "port", fmt.Sprintf("%d:%d", r.low, r.high))
	add(r.tag != "", "tag", r.tag)
	add(r.tagged != "", "tagged", r.tagged)
	if len(r.target) == 0 {
		return strings.Join(words, " ")
	}
	add(true, "-> {", strings.Join(r.target, ", "), "}")
	switch {
	case r.star:
		add(true, "port", fmt.Sprintf("%d:*", r.tlow))
	case r.thigh > r.tlow:
		add(true, "port", fmt.Sprintf("%d:%d", r.tlow, r.thigh))
	case r.tlow != 0:
		add(true, "port", fmt.Sprint(r.tlow))
	}
	add(r.static, "static-port")
	return strings.Join(words, " ")
}

// A plainPacket is one on its way, and what it may have become.
type plainPacket struct {
	proto        string
	src, dst     netip.Addr
	sport, dport uint16
	tag          string
	srcs, dsts   []string // what can stand for src and dst; of a pool all, src and dst are the first
	low, high    uint16   // of the source port
}

func within(a netip.Addr, network string) bool {
	if network == "" {
		return true
	}
	p, err := netip.ParsePrefix(network)
	return err == nil && p.Contains(a) || err != nil && netip.MustParseAddr(network) == a
}

func (r *plainRule) family() bool { // IPv6, of what the rule names
	for _, a := range append([]string{r.from, r.to}, r.target...) {
		if a != "" {
			return strings.Contains(a, ":")
		}
	}
	return false
}

func (r *plainRule) named() bool { return r.from != "" || r.to != "" || len(r.target) > 0 }

// asks reports whether the packet is one of the rule, which asks it from src to dst.
func (r *plainRule) asks(p *plainPacket, iface, from, to string, notFrom, notTo bool) bool {
	return (r.on == "" || (r.on == iface) != r.notOn) &&
		(!r.named() || r.family() == p.src.Is6()) &&
		(r.proto == "" || r.proto == p.proto) &&
		within(p.src, from) != (notFrom && from != "") && within(p.dst, to) != (notTo && to != "") &&
		(r.low == 0 || p.dport >= r.low && p.dport <= r.high) &&
		(r.tagged == "" || r.tagged == p.tag)
}

// exchanged is addr with the network to in front.
func exchanged(addr netip.Addr, to string) netip.Addr {
	p := netip.MustParsePrefix(to)
	a, n := addr.AsSlice(), p.Addr().AsSlice()
	for bit := range p.Bits() {
		mask := byte(0x80 >> (bit % 8))
		a[bit/8] = a[bit/8]&^mask | n[bit/8]&mask
	}
	moved, _ := netip.AddrFromSlice(a)
	return moved
}

// translate asks one list; it reports whether a rule of it translated, and
// whether that passes the packet.
func translate(rules []plainRule, kind, direction, iface string, p *plainPacket) (done, passes bool) {
	for i := range rules {
		r := &rules[i]
		back := kind == "binat" && direction == "in" && !r.no
		switch {
		case r.kind != kind:
			continue
		case back && !r.asks(p, iface, r.to, r.target[0], r.notTo, false):
			continue
		case !back && !r.asks(p, iface, r.from, r.to, false, r.notTo):
			continue
		}
		if r.tag != "" {
			p.tag = r.tag
		}
		if r.no {
			return false, false
		}
		switch {
		case back:
			p.dst = exchanged(p.dst, r.from)
			p.dsts = []string{p.dst.String()}
		case kind == "binat":
			p.src = exchanged(p.src, r.target[0])
			p.srcs = []string{p.src.String()}
		case kind == "nat":
			p.src, p.srcs = netip.MustParseAddr(r.target[0]), r.target
			switch {
			case r.static:
			case r.tlow != 0:
				p.low, p.high = r.tlow, max(r.tlow, r.thigh)
			default:
				p.low, p.high = 50001, 65535
			}
		case kind == "rdr":
			p.dst, p.dsts = netip.MustParseAddr(r.target[0]), r.target
			switch {
			case r.star:
				p.dport = r.tlow + p.dport - r.low
			case r.tlow != 0 && r.thigh > r.tlow:
				p.dport = r.tlow + (p.dport-r.low)%(r.thigh-r.tlow+1)
			case r.tlow != 0:
				p.dport = r.tlow
			}
		}
		return true, r.pass
	}
	return false, false
}

// crosses reports whether a packet may cross an interface, and translates it.
func crosses(rules []plainRule, direction, iface string, p *plainPacket) bool {
	lists := []string{"binat", "rdr"}
	if direction == "out" {
		lists = []string{"binat", "nat"}
	}
	for _, kind := range lists {
		if done, passes := translate(rules, kind, direction, iface, p); passes {
			return true
		} else if done {
			break
		}
	}
	verdict := true
	for i := range rules {
		r := &rules[i]
		if r.kind != "pass" && r.kind != "block" || r.direction != "" && r.direction != direction || !r.asks(p, iface, r.from, r.to, false, r.notTo) {
			continue
		}
		verdict = r.kind == "pass"
		if r.tag != "" {
			p.tag = r.tag
		}
		if r.quick {
			break
		}
	}
	return verdict
}

// plainFate is what becomes of a packet in the box of these tests.
func plainFate(rules []plainRule, iface string, p plainPacket) string {
	p.srcs, p.dsts, p.low, p.high = []string{p.src.String()}, []string{p.dst.String()}, p.sport, p.sport
	if !crosses(rules, "in", iface, &p) {
		return "block"
	}
	out := "wan"
	switch {
	case slices.Contains([]string{"192.168.1.1", "203.0.113.5", "fd00:1::1", "2001:db8:5::5"}, p.dst.String()):
		out = ""
	case within(p.dst, "192.168.1.0/24"), within(p.dst, "fd00:1::/64"):
		out = "lan"
	}
	if out != "" && !crosses(rules, "out", out, &p) {
		return "block"
	}
	return fmt.Sprintf("%v:%d-%d > %v:%d", p.srcs, p.low, p.high, p.dsts, p.dport)
}

// modelFate is the same by the model.
func modelFate(m *Model, f Frame) string {
	w := New(m.box, m.rules, 0).Ask(&f) // pools begin with their first address
	if !w.Pass {
		return "block"
	}
	return fmt.Sprintf("%v:%d-%d > %v:%d", w.Src.addrs(), w.Src.Low, w.Src.High, w.Dst.addrs(), w.Dst.Low)
}

// addrs are the single addresses of an end.
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

// Addresses that rules and packets of each family draw from.
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

// TestTranslationRandom asks the model and plainFate about random packets among
// random translation and filter rules.
func TestTranslationRandom(t *testing.T) {
	const lists, packets = 400, 24
	fates := map[string]int{}
	for seed := range uint64(lists) {
		r := rand.New(rand.NewPCG(seed, 5))
		var rules []plainRule
		var config strings.Builder
		for range 1 + r.IntN(9) {
			rule := randomPlainRule(r)
			rules = append(rules, rule)
			fmt.Fprintln(&config, rule.String())
		}
		m := load(t, config.String())
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
				t.Fatalf("seed %d\n%s%s %s %v:%d > %v:%d in by %s\nthe model: %s\nby the manual: %s", seed, config.String(),
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

func kindOfFate(fate string, p plainPacket) string {
	switch fate {
	case "block":
		return "blocked"
	case fmt.Sprintf("[%v]:%d-%d > [%v]:%d", p.src, p.sport, p.sport, p.dst, p.dport):
		return "as it was"
	}
	return "translated"
}

// opening is the first packet of a connection.
func opening(t *testing.T, p plainPacket) []byte {
	t.Helper()
	if p.proto == "udp" {
		return udp(t, p.src, p.sport, p.dst, p.dport, "q")
	}
	return frame(t, ip(p.src, p.dst, layers.IPProtocolTCP),
		&layers.TCP{SrcPort: layers.TCPPort(p.sport), DstPort: layers.TCPPort(p.dport), SYN: true, Window: 1000})
}
