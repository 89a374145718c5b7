package ruleset_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/fw/shaper"
)

// TestDummynet checks what becomes of pipes and queues of dummynet: a rule's packets have
// the number of a queue in the tree of each of its directions.
func TestDummynet(t *testing.T) {
	p := compiled(t, `pipe 1 config bw 10Mb
sched 1 config pipe 1 type fq_codel interval 40ms
queue 3 config pipe 1 weight 20 mask src-ip 0xffffffff ecn
pipe 2 config bw 100Mbit/s queue 200
queue 4 config pipe 2
pass in on em0 inet dnpipe (1, 2)
pass in on em0 inet6 dnqueue (3, 4)
`)
	tree := func(in bool, rate float64, pipe string, leaves ...shaper.Class) shaper.Shaper {
		return shaper.Shaper{Interface: "em0", In: in, Classes: append([]shaper.Class{
			{Name: "dummynet", Parent: -1, Children: 2, First: 1, Weight: 1, Max: shaper.Rate{Bytes: shaper.MaxRate}},
			{Name: "dummynet_rest", Default: true, Weight: 1},
			{Name: pipe, Weight: 1, Fair: shaper.FairFlow, Max: shaper.Rate{Bytes: mbit(rate)}, Children: 2, First: 3},
		}, leaves...)}
	}
	want := []shaper.Shaper{
		tree(true, 10, "pipe_1",
			shaper.Class{Name: "dnpipe_1_2", Parent: 2, Weight: 1, Fair: shaper.FairFlow, RTT: 40 * time.Millisecond},
			shaper.Class{Name: "dnqueue_3_4", Parent: 2, Weight: 20, FairSaid: true, ECN: true, RTT: 40 * time.Millisecond}),
		tree(false, 100, "pipe_2",
			shaper.Class{Name: "dnpipe_1_2", Parent: 2, Weight: 1, Fair: shaper.FairFlow, Limit: 200},
			shaper.Class{Name: "dnqueue_3_4", Parent: 2, Weight: 1, Fair: shaper.FairFlow, Limit: 200}),
	}
	if diff := cmp.Diff(want, p.Shapers, cmpopts.IgnoreFields(shaper.Class{}, "Number")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, name := range []string{"dnpipe_1_2", "dnqueue_3_4"} {
		if got := p.Queues[p.Rules[i].Queue]; got != name {
			t.Errorf("rule %d sends packets to %q, want %s", i, got, name)
		}
	}
}
