package dataplane

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/dataplane/rulesprog"
	"weir/internal/fw/reason"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/ruleset/rulestest"
	"weir/internal/testenv"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// testRuleBase is the global id of rule 0 in these tests.
const testRuleBase = 1000

// A rulesHarness evaluates the rules in the kernel, without the rest of the packet's
// path.
type rulesHarness struct {
	objects *bpfload.Objects
	program *ruleset.Program
	live    *liveRules
	pools   int // that may have given out addresses
}

// newRulesHarness loads the program with maps that have room for what entries say.
func newRulesHarness(tb testing.TB, entries map[string]uint32, values map[string]any) *rulesHarness {
	tb.Helper()
	testenv.NeedRoot(tb)
	spec, err := rulesprog.LoadRules()
	check(tb, err)
	values["rule_base"] = uint32(testRuleBase)
	objects, err := bpfload.Load([]*bpfload.Spec{spec}, bpfload.Options{Entries: entries, Values: values})
	check(tb, err)
	h := &rulesHarness{objects: objects, live: &liveRules{objects: objects}}
	tb.Cleanup(func() { h.live.close(); objects.Close() })
	return h
}

// newLargeRulesHarness has room for any rules that rulestest draws.
func newLargeRulesHarness(tb testing.TB) *rulesHarness {
	entries := map[string]uint32{}
	for name := range ruleEntries(&ruleset.Program{}, 0) {
		entries[name] = 1 << 19
	}
	entries["pool_addresses"] = 1 << 20 // the most that Compile allows
	entries["pool_sticky"] = 1 << 17
	entries["rules"], entries[mapRuleCounters] = ruleset.MaxRules, ruleset.MaxRules+1
	return newRulesHarness(tb, entries, map[string]any{"rule_chunks": uint32(ruleset.Chunks(ruleset.MaxRules))})
}

// load puts a program into the place of another.
func (h *rulesHarness) load(tb rapid.TB, p *ruleset.Program) {
	h.program = p
	if err := h.live.load(p); err != nil {
		tb.Fatal(err)
	}
	if err := forgetSources(h.objects.Maps["pool_sticky"]); err != nil {
		tb.Fatal(err)
	}
	used := h.pools
	h.pools = len(p.Pools)
	for i := range 2 * max(used, h.pools) {
		if err := h.objects.Maps["pool_turns"].Put(uint32(i), uint64(0)); err != nil {
			tb.Fatal(err)
		}
	}
}

// forgetSources forgets which addresses sources keep.
func forgetSources(m *bpfload.Map) error {
	var keys []rulesprog.RulesPoolSource
	var key rulesprog.RulesPoolSource
	all := m.Iterate()
	for all.Next(&key, new(rulesprog.RulesPoolGiven)) {
		keys = append(keys, key)
	}
	for i := range keys {
		if err := m.Delete(&keys[i]); err != nil {
			return err
		}
	}
	return all.Err()
}

// evaluate evaluates the rules for a packet.
func (h *rulesHarness) evaluate(tb rapid.TB, p rulestest.Packet) rulestest.Result {
	asked := h.ask(p)
	frame, err := binary.Append(nil, binary.NativeEndian, &asked)
	if err != nil {
		tb.Fatal(err)
	}
	verdict, frame, err := h.objects.Programs["evaluate_frame"].Test(frame)
	if err != nil {
		tb.Fatal(err)
	}
	var crossing rulesprog.RulesCrossing
	if _, err := binary.Decode(frame, binary.NativeEndian, &crossing); err != nil {
		tb.Fatal(err)
	}
	return h.result(tb, reason.Reason(verdict), &crossing, &p)
}

// tag returns the number of a tag; 0: none, or one that no rule knows.
func (h *rulesHarness) tag(name string) uint16 {
	for number, known := range h.program.Tags {
		if known == name {
			return number
		}
	}
	return 0
}

func (h *rulesHarness) ask(p rulestest.Packet) rulesprog.RulesCrossing {
	j := rulesprog.RulesCrossing{
		Ifindex: p.Ifindex, Proto: p.Proto, Family: 4, TcpFlags: p.TCPFlags,
		IcmpType: p.ICMPType, IcmpCode: p.ICMPCode, Sport: swap(p.SPort), Dport: swap(p.DPort),
		Tag: h.tag(p.Tag), Mark: p.Mark, MarkKeep: p.Keep,
	}
	if p.Tag != "" && j.Tag == 0 {
		j.Tag = 0xffff // a tag that no rule knows
	}
	if p.Src.Is6() {
		j.Family = 6
	}
	if p.Direction == ast.Out {
		j.Direction = 1
	}
	j.Src.Word, j.Dst.Word = rawAddr(p.Src).Word, rawAddr(p.Dst).Word
	return j
}

func swap(port uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, port))
}

// Bits of crossing.flags.
const (
	crossingKeepState = 1 << iota
	crossingAllowOptions
	crossingNat
	crossingNatStatic
	crossingRdr
	crossingRdrPort
	crossingNoNat
	_
	crossingNoRdr
)

func (h *rulesHarness) result(tb rapid.TB, why reason.Reason, j *rulesprog.RulesCrossing, p *rulestest.Packet) rulestest.Result {
	if (why == reason.NATAddress) != (j.Flags&(crossingNoNat|crossingNoRdr) != 0) && why != reason.Block {
		tb.Fatalf("the rules return %s with flags %#x", why, j.Flags)
	}
	a := rulestest.Result{
		Verdict: why, Rule: h.number(j.Rule), Stop: rulestest.None,
		Mark: j.Mark, SetMark: j.MarkMask, KeepState: j.Flags&crossingKeepState != 0, AllowOptions: j.Flags&crossingAllowOptions != 0,
	}
	if j.Rule == 0 {
		a.Rule = rulestest.None
	}
	for _, id := range j.Matched[:j.Matches] {
		a.Matched = append(a.Matched, h.number(id))
	}
	switch {
	case j.Tag == 0xffff:
		a.Tag = "unknown"
	case j.Tag != 0:
		a.Tag = h.program.Tags[j.Tag]
	}
	if why == reason.Block {
		return a
	}
	a.Scrub = scrubOf(j.Scrub, j.MinTtl, j.MaxMss, j.SetTos)
	a.Listed = scrubOf(j.Listed.Flags, j.Listed.MinTtl, j.Listed.MaxMss, j.Listed.SetTos)
	if j.Flags&crossingNat != 0 {
		a.Nat = &rulestest.Target{
			Addr: addrOf(j.Nat.Addr.Word, p.Src.Is4()), Low: j.NatPorts.Low, High: j.NatPorts.High, StaticPort: j.Flags&crossingNatStatic != 0, Endpoint: j.Endpoint != 0,
		}
	}
	if j.Flags&crossingRdr != 0 {
		a.Rdr = &rulestest.Target{Addr: addrOf(j.Rdr.Addr.Word, p.Src.Is4()), Low: p.DPort}
		if j.Flags&crossingRdrPort != 0 {
			a.Rdr.Low = swap(j.RdrPort)
		}
	}
	return a
}

func scrubOf(flags, minTTL uint8, maxMSS uint16, tos uint8) resolve.Scrub {
	f := ruleset.ScrubFlags(flags)
	s := resolve.Scrub{NoDF: f&ruleset.NoDF != 0, RandomID: f&ruleset.RandomID != 0, MinTTL: minTTL, MaxMSS: maxMSS}
	if f&ruleset.TOS != 0 {
		s.SetTOS = resolve.SetTOS{Given: true, N: tos}
	}
	return s
}

// number returns the number of a rule by its global id + 1; a rule that is not in
// force has none.
func (h *rulesHarness) number(id uint32) int {
	return slices.Index(h.program.Order, id-1-testRuleBase)
}

func addrOf(words [4]uint32, is4 bool) netip.Addr {
	var b []byte
	for _, w := range words {
		b = binary.NativeEndian.AppendUint32(b, w)
	}
	addr := netip.AddrFrom16([16]byte(b))
	if is4 {
		return addr.Unmap()
	}
	return addr
}

// stops returns how often evaluations have ended at each rule, the last: at none.
func (h *rulesHarness) stops(tb rapid.TB) []uint64 {
	c, err := readCounters(h.objects.Maps[mapRuleCounters], len(h.program.Rules))
	if err != nil {
		tb.Fatal(err)
	}
	var sums []uint64
	for _, index := range h.program.Order {
		sums = append(sums, c.stops[index])
	}
	sums = append(sums, c.stops[len(c.stops)-1])
	return sums
}

// For every packet, the kernel agrees with evaluating the rules one by one.
func TestRulesRandom(t *testing.T) {
	h := newLargeRulesHarness(t)
	rapid.Check(t, func(t *rapid.T) {
		rs, host := rulestest.DrawRuleset(t), rulestest.DrawSnapshot(t)
		program, err := ruleset.Compile(rs, host)
		if err != nil {
			t.Fatal(err)
		}
		h.load(t, program)
		slow := rulestest.NewEvaluator(rs, host)
		before := h.stops(t)
		var p rulestest.Packet
		for n := range 40 {
			if n%2 == 0 { // the second time the result is in the cache
				p = rulestest.DrawPacket(t)
			}
			want, got := slow.Evaluate(p), h.evaluate(t, p)
			stop := want.Stop
			if stop == rulestest.None {
				stop = len(rs.Sequence())
			}
			before[stop]++
			want.Stop = rulestest.None
			if got.Tag == "unknown" {
				got.Tag = p.Tag
			}
			if diff := rulestest.Diff(want, got); diff != "" {
				t.Fatalf("%+v (-asked one by one +in the kernel):\n%s", p, diff)
			}
		}
		if after := h.stops(t); !slices.Equal(before, after) {
			t.Fatalf("evaluations ended at rules\n%v, want\n%v", after, before)
		}
	})
}

// With the most rules possible, all are distinguished, from the first to the last.
func TestMostRules(t *testing.T) {
	const n = ruleset.MaxRules
	p := must(ruleset.Compile(&resolve.Ruleset{Rules: services(host4, true)(n)}, benchHost))(t)
	h := newRulesHarness(t, ruleEntries(p, 0), map[string]any{"rule_chunks": uint32(p.Chunks())})
	h.load(t, p)
	for _, i := range []int{0, 1, 510, 511, 512, 1022, 1023, 1024, 32766, 32767, 32768, n - 514, n - 513, n - 2} {
		packet := syn(host4(1<<20), host4(i), servicePort(i))
		for range 2 { // the second time the result is in the cache
			if rule, err := h.decider(packet); rule != i+1 || err != nil {
				t.Errorf("server %d: rule %d decides (%v)", i, rule, err)
			}
		}
	}
	for range 2 {
		if rule, err := h.decider(syn(host4(1<<20), host4(n), 80)); rule != 0 || err != nil {
			t.Errorf("no server: rule %d decides (%v)", rule, err)
		}
	}
}
