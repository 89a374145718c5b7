package ruleset_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/fw/ruleset"
	"weir/pf/resolve"
)

const queues = "queue line on em0 bandwidth 10M\nqueue voice parent line bandwidth 1M\nqueue bulk parent line bandwidth 9M default\n"

func compiled(t *testing.T, rules string) *ruleset.Program {
	t.Helper()
	rs, list := resolve.Load("in", []byte(rules), &resolve.Host{})
	if rs == nil {
		t.Fatal(list.Err())
	}
	p, err := ruleset.Compile(rs, ruleset.Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestQueueNumbers checks that a queue, or a pair of queues, has the same number whatever
// other rules say, and that each number leads to the right queues.
func TestQueueNumbers(t *testing.T) {
	one := compiled(t, queues+"match out set queue (bulk, voice)\nmatch in set queue voice")
	other := compiled(t, queues+"match set prio 3\nmatch in set queue voice\npass tag x\nmatch out set queue (bulk, voice)")
	pair, voice := one.Rules[0].Queue, one.Rules[1].Queue
	if pair == 0 || voice == 0 || pair == voice {
		t.Fatalf("numbers %d and %d", pair, voice)
	}
	if other.Rules[3].Queue != pair || other.Rules[1].Queue != voice {
		t.Errorf("after a reload the numbers are %d and %d, want %d and %d", other.Rules[3].Queue, other.Rules[1].Queue, pair, voice)
	}
	if diff := cmp.Diff(one.QueuePairs, other.QueuePairs); diff != "" {
		t.Errorf("pairs (-one +other):\n%s", diff)
	}
	p := one.QueuePairs[pair]
	if one.Queues[p.Queue] != "bulk" || one.Queues[p.Ack] != "voice" || one.QueuePairs[voice] != (ruleset.QueuePair{Queue: voice, Ack: voice}) {
		t.Errorf("the pair is %q and %q, %v of %v", one.Queues[p.Queue], one.Queues[p.Ack], one.QueuePairs, one.Queues)
	}
	if gone := compiled(t, queues+"match in set queue voice"); gone.QueuePairs[pair] != (ruleset.QueuePair{}) {
		t.Error("a pair that no rule names has a number")
	}
}

// TestPriorities checks the priorities that rules set, and that an anchor itself sets
// none.
func TestPriorities(t *testing.T) {
	p := compiled(t, "match set prio 0\npass set prio (2, 7)\npass\nanchor a set prio 6 {\npass\n}\n")
	var got []string
	for _, r := range p.Rules {
		got = append(got, fmt.Sprintf("%#x", r.Prio))
	}
	if diff := cmp.Diff([]string{"0x11", "0x83", "0x0", "0x0", "0x0"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
