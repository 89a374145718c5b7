package paths

import (
	"strings"
	"testing"

	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
	"weir/internal/fw/ruleset"
	"weir/pf/resolve"
)

// Both sides have the same number of classes in both directions, and weir has the line's
// rate.
func TestQueuesConf(t *testing.T) {
	const rate = 123_456_000
	text := before(weirRules(traffic.Case{}), weirFilter, queuesConf(QueuesConf, rate))
	rules, list := resolve.LoadWith(testbed.RulesFile, []byte(text), nil, resolve.Settings{})
	if rules == nil {
		t.Fatal(list)
	}
	program, err := ruleset.Compile(rules, ruleset.Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	if len(program.Shapers) != 2 {
		t.Fatalf("%d trees, want 2", len(program.Shapers))
	}
	want := strings.Count(HTBScript, "\tclass \"$1\"")
	for _, tree := range program.Shapers {
		leaves := 0
		for i := range tree.Classes {
			if tree.Classes[i].Children == 0 {
				leaves++
			}
		}
		if got := tree.Classes[0].Max.Bytes; got != rate/8 {
			t.Errorf("%s: %d bytes per second, want %d", tree.Name(), got, rate/8)
		}
		if leaves != want {
			t.Errorf("%s has %d classes, htb.sh %d", tree.Name(), leaves, want)
		}
	}
}
