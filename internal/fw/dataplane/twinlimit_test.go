package dataplane

import (
	"fmt"
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
	t.shared.Sources, t.shared.Overloads = 0, 0
}

// uncount takes a state back from what counts it, as limit_release() does.
func (t *twin) uncount(s *xdpState) {
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

// sweepSources forgets sources, as source_gc.h does.
func (t *twin) sweepSources() {
	tables := t.dp.tables
	for i := range tables.sources {
		s := &tables.sources[i]
		due := s.Expires
		if s.Over != 0 {
			due += sourceOver
		}
		if s.Stage != sourceLive || s.States != 0 || int32(tables.shared.Now-due) < 0 {
			continue
		}
		check(t.tb, tables.maps[mapSourceIndex].Delete(&s.Key))
		if s.Key.Limit != 0 {
			tables.limits[s.Key.Limit].Nodes--
		}
		tables.shared.Sources--
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
		if s.Limit != 0 {
			key.Rule = t.ruleOfLimit(s.Limit)
		}
		got[key] = model.Source{States: int(s.States), Connections: int(s.Connections), Count: uint64(s.Rate), Last: s.Last, Over: s.Over}
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
