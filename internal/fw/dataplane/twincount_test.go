package dataplane

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/fw/reason"
	"weir/internal/oracle/model"
)

// A tallyKey is one of the counters of interfaces.
type tallyKey struct {
	ifindex int
	reason  reason.Reason
}

// forgetPaths empties the paths, so that their indices begin again.
func (t *twin) forgetPaths() {
	t.tb.Helper()
	tables := t.dp.tables
	var keys []xdpPath
	var key xdpPath
	for all := tables.maps[mapPaths].Iterate(); all.Next(&key, new(uint32)); {
		keys = append(keys, key)
	}
	for i := range keys {
		check(t.tb, tables.maps[mapPaths].Delete(&keys[i]))
	}
	none := make([]xdpPathCounter, len(t.values))
	for i := range tables.shared.PathsHigh + pathFirst {
		check(t.tb, tables.maps[mapPathCounters].Put(i, none))
	}
	tables.shared.PathsHigh = 0
}

// pathFirst is PATH_FIRST of bpf/observe/count.h.
const pathFirst = 2

// counted returns the reason that the frame was counted under. It is the model's if that
// counter has gone up as it should. Otherwise it is what all counters say.
func (t *twin) counted(s *shot, want *model.Outcome) string {
	key := tallyKey{int(want.At), want.Reason}
	if want.At == 0 {
		key.ifindex = s.ifindex
	}
	if s.uncounted(want.Reason) {
		return want.Reason.String()
	}
	if p := want.Passed; p != nil && !s.uncounted(p.Reason) { // before an ether rule blocked it
		passed := tallyKey{key.ifindex, p.Reason}
		c := t.tally[passed]
		c.Packets++
		c.Bytes += uint64(p.Length)
		t.tally[passed] = c
	}
	expected := t.tally[key]
	expected.Packets++
	expected.Bytes += uint64(want.Length)
	if t.tallyOf(key) == expected {
		t.tally[key] = expected
		return want.Reason.String()
	}
	now := t.tallies()
	defer func() { t.tally = now }()
	return differTallies(t.tally, now)
}

// uncounted reports whether nothing counts this frame. What weir redirected passes egress
// uncounted, and so does a reject to the box itself at ingress.
func (s *shot) uncounted(why reason.Reason) bool {
	return s.noted && why == reason.Marked
}

// differTallies prints what has been counted since.
func differTallies(before, now map[tallyKey]Counter) string {
	var all []string
	for key, c := range now {
		if c != before[key] {
			all = append(all, fmt.Sprintf("%d*%s (%d bytes) at interface %d",
				c.Packets-before[key].Packets, key.reason, c.Bytes-before[key].Bytes, key.ifindex))
		}
	}
	slices.Sort(all)
	return "counted " + strings.Join(all, ", ")
}

func (t *twin) tallyOf(key tallyKey) Counter {
	index := t.dp.tables.shared.Interfaces[key.ifindex].Counters + uint32(key.reason)
	return must(sumCounter(t.dp.tables.maps[mapInterfaceCounters], index, t.values))(t.tb)
}

// tallies reads the counters of all interfaces. 0 means unknown interfaces.
func (t *twin) tallies() map[tallyKey]Counter {
	t.tb.Helper()
	all := make(map[tallyKey]Counter)
	for _, ifindex := range []int{0, t.net.lan0, t.net.wan0} {
		for r := range reason.Count {
			all[tallyKey{ifindex, r}] = t.tallyOf(tallyKey{ifindex, r})
		}
	}
	return all
}

// differCounters compares all counters of both, after many frames.
func (t *twin) differCounters() error {
	t.tb.Helper()
	now := t.tallies()
	var texts []string
	if !maps.Equal(now, t.tally) {
		texts = append(texts, "counted besides: "+differTallies(t.tally, now))
	}
	t.tally = now
	made := t.dp.tables.shared.StatesMade - t.dp.tables.shared.StatesReleased
	if used := t.model.Used(); used != int(made) {
		texts = append(texts, fmt.Sprintf("model: %d places of states are used, dataplane: %d", used, made))
	}
	return errorsOf(append(texts, t.differPaths(), t.differRules(), t.differTables(), t.differPools(), t.differRejects())...)
}

func (t *twin) differPaths() string {
	t.tb.Helper()
	key, index := xdpPath{}, uint32(0)
	got := map[model.Path][2]model.Counter{{}: t.pathCounter(0)}
	for all := t.dp.tables.maps[mapPaths].Iterate(); all.Next(&key, &index); {
		var path model.Path
		for crossing := range path {
			copy(path[crossing][:], key.Rule[crossing*len(path[crossing]):])
		}
		got[path] = t.pathCounter(index)
	}
	var b strings.Builder
	for path, c := range got {
		if want := t.model.Paths()[path]; want != c {
			fmt.Fprintf(&b, "packets of rules %v, model: %+v, dataplane: %+v\n", path, want, c)
		}
	}
	for path, want := range t.model.Paths() {
		if _, ok := got[path]; !ok {
			fmt.Fprintf(&b, "packets of rules %v, model: %+v, dataplane: none\n", path, want)
		}
	}
	return b.String()
}

func (t *twin) pathCounter(index uint32) [2]model.Counter {
	t.tb.Helper()
	ways := must(sumPath(t.dp.tables.maps[mapPathCounters], index, make([]xdpPathCounter, len(t.values))))(t.tb)
	return [2]model.Counter{model.Counter(ways[0]), model.Counter(ways[1])}
}

// ruleCounters are the counters of the rules in use.
func (t *twin) ruleCounters() []RuleCounter {
	t.tb.Helper()
	rules := len(t.rules.Sequence())
	c := must(readCounters(t.dp.objects.Maps[mapRuleCounters], rules))(t.tb)
	all := make([]RuleCounter, rules)
	asked := c.asked
	for i := range all {
		if i < len(t.rules.Ethers()) {
			continue // not counted
		}
		all[i] = RuleCounter{Evaluations: asked, States: c.states[i]}
		asked -= c.stops[i]
	}
	return all
}

func (t *twin) differRules() string {
	t.tb.Helper()
	var b strings.Builder
	for i, c := range t.ruleCounters() {
		got := model.RuleCounter{Evaluations: c.Evaluations - t.rules0[i].Evaluations, States: c.States - t.rules0[i].States}
		if want := t.model.Rules()[i]; want != got {
			fmt.Fprintf(&b, "rule %d, model: %+v, dataplane: %+v\n", i, want, got)
		}
	}
	return b.String()
}
