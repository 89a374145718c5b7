package dataplane

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"weir/internal/oracle/model"
)

// limits draws state options that limit a rule.
func (d *drawing) limits() string {
	var options []string
	add := func(n int, text string) {
		if d.IntN(n) == 0 {
			options = append(options, text)
		}
	}
	add(3, fmt.Sprintf("max %d", 1+d.IntN(12)))
	global := d.IntN(4) == 0
	if global {
		options = append(options, "source-track global")
	} else {
		add(2, "source-track rule")
		add(3, fmt.Sprintf("max-src-nodes %d", 1+d.IntN(4)))
		add(2, fmt.Sprintf("max-src-conn %d", 1+d.IntN(3)))
		add(2, fmt.Sprintf("max-src-conn-rate %d/%d", 1+d.IntN(3), one(d.Rand, 1, 2, 5, 30)))
		if n := len(options); n > 0 && strings.HasPrefix(options[n-1], "max-src-conn") {
			add(2, "overload <over>"+one(d.Rand, "", " flush", " flush global"))
		}
	}
	add(3, fmt.Sprintf("max-src-states %d", 1+d.IntN(4)))
	add(3, fmt.Sprintf("src.track %d", one(d.Rand, 1, 5, 30)))
	for _, name := range []string{"tcp.first", "tcp.opening", "tcp.established", "udp.first", "udp.single", "udp.multiple", "icmp.first"} {
		add(12, fmt.Sprintf("%s %d", name, one(d.Rand, 1, 2, 10, 60, 600)))
	}
	add(4, "sloppy")
	if d.bound {
		add(2, one(d.Rand, "if-bound", "if-bound", "floating"))
	}
	if d.IntN(6) == 0 {
		options = append(options, fmt.Sprintf("adaptive.start %d, adaptive.end %d", 1+d.IntN(4), 4+d.IntN(10)))
	}
	if len(options) == 0 {
		return "keep state"
	}
	return "keep state (" + strings.Join(options, ", ") + ")"
}

// forgetSources empties the table of sources, and what the limits of rules count.
func (h *harness) forgetSources() {
	h.tb.Helper()
	t := h.dp.tables
	var key xdpSourceKey
	for all := t.maps[mapSourceIndex].Iterate(); all.Next(&key, new(uint32)); {
		check(h.tb, t.maps[mapSourceIndex].Delete(&key))
	}
	for i := range t.sources {
		if t.sources[i].Stage != sourceFree {
			t.sources[i] = xdpSource{}
		}
	}
	for i := range t.limits {
		t.limits[i].States, t.limits[i].Nodes, t.limits[i].Used, t.limits[i].Pkts = 0, 0, 0, 0
	}
	for i := range t.limiters {
		l := &t.limiters[i]
		l.States, l.Nodes, l.Admitted, l.Full, l.Fast, l.Crowded = 0, 0, 0, 0, 0, 0
	}
	h.fillBuckets()
	t.shared.Sources, t.shared.Overloads, t.shared.LimiterSources = 0, 0, 0
}

// fillBuckets fills the buckets of the limiters.
func (h *harness) fillBuckets() {
	for i := range h.dp.tables.limiters {
		l := &h.dp.tables.limiters[i]
		l.Emptied = nanosecondsOf(h.dp.tables.shared.Now) - l.Bucket
	}
}

// uncount takes a state back from what counts it, as limit_release() does.
func (t *twin) uncount(index int) {
	s := &t.dp.tables.states[index]
	if s.FlowBack.Limits&limitsLimiters != 0 {
		t.leaveLimiters(s, t.dp.tables.limited[index].Limiters)
	}
	in, out := limitsOf(s.FlowBack.Limits)
	for side, number := range []uint16{in, out} {
		if number == 0 || side == 1 && number == in {
			continue
		}
		l := &t.dp.tables.limits[number]
		l.States--
		if l.Flags&limitTrack == 0 {
			continue
		}
		key := xdpSourceKey{Zone: uint32(s.Forth.Tuple.Zone)}
		key.Addr = s.Forth.Tuple.Src
		if l.Flags&limitByRule != 0 {
			key.Limit = uint32(number)
		}
		var index uint32
		check(t.tb, t.dp.tables.maps[mapSourceIndex].Lookup(&key, &index))
		source := &t.dp.tables.sources[index]
		source.States--
		later(&source.Expires, t.dp.tables.shared.Now+l.Keep)
		if s.FlowBack.Limits&(1<<(2*limitsShift+side)) != 0 {
			source.Connections--
		}
	}
	s.FlowBack.Limits = 0
}

// limitsLimiters is LIMITS_LIMITERS of bpf/state/limit.h.
const limitsLimiters = 1 << (2*limitsShift + 3)

func nanosecondsOf(tick uint32) uint64 { return uint64(tick) * 10_000_000 }

// leaveLimiters takes a state back from its limiters, as limit_leave_limiters() does.
func (t *twin) leaveLimiters(s *xdpState, ids uint32) {
	for at := range 4 {
		id := ids >> (8 * at) & 0xff
		switch {
		case id == 0:
		case at&1 == 0:
			t.dp.tables.limiters[id].States--
		default:
			l := &t.dp.tables.limiters[limiterSources+id]
			l.States--
			a, bits := s.Forth.Tuple.Src.addr(), int(l.Bits6)
			if a.Is4() {
				bits = int(l.Bits4) - 96
			}
			key := xdpSourceKey{Zone: uint32(s.Forth.Tuple.Zone), Limit: sourceOfLimiter | id}
			key.Addr = rawAddr(netip.PrefixFrom(a, bits).Masked().Addr())
			var index uint32
			check(t.tb, t.dp.tables.maps[mapSourceIndex].Lookup(&key, &index))
			source := &t.dp.tables.sources[index]
			source.States--
			source.Expires = t.dp.tables.shared.Now + l.Keep
		}
	}
}

// differLimiters compares what limiters count.
func (t *twin) differLimiters() string {
	got := map[bool]map[uint8]model.Limiter{false: {}, true: {}}
	now := nanosecondsOf(t.dp.tables.shared.Now)
	want := t.model.Limiters()
	for number := range t.dp.tables.limiters {
		l := &t.dp.tables.limiters[number]
		source, id := number >= limiterSources, uint8(number)
		asked, ok := want[source][id]
		if !ok { // no packet has asked it
			continue
		}
		asked.Emptied = min(now-asked.Emptied, l.Bucket)
		want[source][id] = asked
		got[source][id] = model.Limiter{
			Emptied: min(now-l.Emptied, l.Bucket), States: int(l.States), Sources: int(l.Nodes),
			Admitted: l.Admitted, Full: l.Full, Fast: l.Fast, Crowded: l.Crowded,
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return "limiters, with what is in their buckets (-model +dataplane):\n" + diff
	}
	return ""
}

// limiters draws the definitions of two limiters of each kind.
func (d *drawing) limiters() (lines []string) {
	rate := func() string {
		return d.some(2, fmt.Sprintf(" rate %d/%d", 1+d.IntN(5), one(d.Rand, 1, 2, 10, 60)))
	}
	for id := 1; id <= 2; id++ {
		lines = append(lines, fmt.Sprintf("state limiter s%d id %d limit %d%s", id, id, 1+d.IntN(8), rate()))
		table := ""
		if above := 1 + d.IntN(3); d.IntN(2) == 0 {
			table = fmt.Sprintf(" table <many> above %d%s", above, d.some(2, fmt.Sprintf(" below %d", 1+d.IntN(above))))
		}
		lines = append(lines, fmt.Sprintf("source limiter c%d id %d entries %d limit %d%s%s%s%s", id, id, 1+d.IntN(6), 1+d.IntN(4), rate(),
			d.some(3, fmt.Sprintf(" inet mask %d", one(d.Rand, 8, 24, 31))), d.some(3, fmt.Sprintf(" inet6 mask %d", one(d.Rand, 1, 32, 64, 127))), table))
	}
	return lines
}

// sweepSources forgets sources, as source_gc.h does.
func (t *twin) sweepSources() {
	tables := t.dp.tables
	for i := range tables.sources {
		s := &tables.sources[i]
		due := s.Expires
		if s.Over == sourceOverNew || s.Over == sourceOverListed && tables.limiters[limiterSources+uint32(s.limiter())].Below != 0 {
			due += sourceOver
		}
		if s.Stage != sourceLive || s.States != 0 || int32(tables.shared.Now-due) < 0 {
			continue
		}
		check(t.tb, tables.maps[mapSourceIndex].Delete(&s.Key))
		if id := s.limiter(); id != 0 {
			tables.limiters[limiterSources+uint32(id)].Nodes--
			tables.shared.LimiterSources--
		} else {
			if s.Key.Limit != 0 {
				tables.limits[s.Key.Limit].Nodes--
			}
			tables.shared.Sources--
		}
		*s = xdpSource{}
	}
}

// settle does what the daemon does about sources that are over.
func (t *twin) settle() {
	want := t.model.Overloaded()
	over := t.dp.Overloaded()
	slices.SortFunc(over, func(a, b Overload) int { return a.Addr.Compare(b.Addr) })
	if len(want) != len(over) {
		t.tb.Fatalf("sources that are over: model %v, dataplane %v", want, over)
	}
	t.model.Flush(want)
	t.dp.Settle(over)
}

// differSources compares the sources and what they count.
func (t *twin) differSources() string {
	want, got := make(map[model.SourceKey]model.Source), make(map[model.SourceKey]model.Source)
	for key, s := range t.model.Sources() {
		want[key] = s.Counts()
	}
	for s := range t.dp.View().Sources() {
		key := model.SourceKey{Addr: s.Addr, Zone: uint16(s.Zone), Rule: -1}
		switch {
		case s.Limiter != 0:
			key.Rule = model.LimiterSources - int(s.Limiter)
		case s.Limit != 0:
			key.Rule = t.ruleOfLimit(s.Limit)
		}
		got[key] = model.Source{States: int(s.States), Connections: int(s.Connections), Count: uint64(s.Rate), Last: s.Last, Over: s.Over, Listed: s.Listed}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(model.Source{})); diff != "" {
		return "sources (-model +dataplane):\n" + diff
	}
	return ""
}

// ruleOfLimit returns the global id of the rule with a number of limits.
func (t *twin) ruleOfLimit(number uint16) int {
	for i, l := range must(t.dp.View().RuleLimits())(t.tb) {
		if l == number {
			return twinBase + i
		}
	}
	return -2
}
