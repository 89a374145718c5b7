package dataplane

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
	"weir/internal/testenv"
)

const (
	budgetFile = "testdata/budget.txt"
	// A kernel's verifier gives up at a million instructions. Another release may
	// need more of them for the same program.
	budgetLimit = 700_000
	// Growth beyond this needs an explanation and a new record.
	budgetGrowth = 1.25
)

// The number of instructions that the verifier processes for each program is on record.
// WEIR_TEST_UPDATE=1 go test -run TestBudget writes it.
func TestBudget(t *testing.T) {
	n := newNet(t)
	d := build(t, n.config())
	check(t, d.needCapture())
	check(t, d.need(programImport, programPrefetch))
	for _, e := range entries {
		check(t, d.need(e.name+"_"+tailOwner))
	}
	measured := make(map[string]uint32)
	for name, p := range d.objects.Programs {
		measured[name] = must(bpfload.Instructions(p))(t)
	}
	if testenv.Updating() {
		writeBudget(t, measured)
	}
	recorded := readBudget(t)
	for name, count := range measured {
		before, known := recorded[name]
		switch {
		case count > budgetLimit:
			t.Errorf("%s: the verifier processes %d instructions, more than %d", name, count, budgetLimit)
		case !known:
			t.Errorf("%s: not in %s", name, budgetFile)
		case float64(count) > float64(before)*budgetGrowth:
			t.Errorf("%s: the verifier processes %d instructions, on record are %d", name, count, before)
		}
		delete(recorded, name)
	}
	for name := range recorded {
		t.Errorf("%s is in %s, but is no program", name, budgetFile)
	}
}

// Programs that know of bound states are larger, but not too large.
func TestBudgetOfBoundStates(t *testing.T) {
	n := newNet(t)
	cfg := n.config()
	cfg.Program.Rules = append(cfg.Program.Rules, ruleset.Rule{More: ruleset.IfBound})
	cfg.Flows = true
	cfg.Program.Order, cfg.Program.Next = append(cfg.Program.Order, 0), append(cfg.Program.Next, 0)
	d := build(t, cfg)
	check(t, d.needCapture())
	check(t, d.need(programImport, programPrefetch))
	for name, p := range d.objects.Programs {
		if count := must(bpfload.Instructions(p))(t); count > budgetLimit {
			t.Errorf("%s: the verifier processes %d instructions, more than %d", name, count, budgetLimit)
		} else {
			t.Logf("%s: %d", name, count)
		}
	}
}

// So are those that know of states with two address families, those that send copies, those with
// limiters or with pools that count states, those whose frames meet ether rules, those in which
// scrub rules choose among fragments, and those with queues; and all of these together.
func TestBudgetOfFamilies(t *testing.T) {
	const listedRule = "scrub in from ! urpf-failed fragment no reassemble\nscrub out\n"
	const queueRule = "queue up on wan0 bandwidth 10M default\nqueue down on wan0 in bandwidth 10M default\n"
	all := etherRule + queueRule + listedRule + familyRule + copyRule + "\n" + limiterRule + leastRule + normalRule + boundRule
	for _, rules := range []string{familyRule, copyRule, limiterRule, leastRule, normalRule, etherRule, listedRule, queueRule + "pass", all} {
		h := newHarness(t, rules)
		h.everything()
		check(t, h.dp.needCapture())
		check(t, h.dp.need(programImport, programPrefetch))
		for name, p := range h.dp.objects.Programs {
			if count := must(bpfload.Instructions(p))(t); count > budgetLimit {
				t.Errorf("%s: the verifier processes %d instructions, more than %d", name, count, budgetLimit)
			} else {
				t.Logf("%s: %d", name, count)
			}
		}
	}
}

func writeBudget(tb testing.TB, measured map[string]uint32) {
	tb.Helper()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(measured)) {
		fmt.Fprintf(&b, "%s %d\n", name, measured[name])
	}
	check(tb, os.WriteFile(budgetFile, []byte(b.String()), 0o644))
}

func readBudget(tb testing.TB) map[string]uint32 {
	tb.Helper()
	recorded := make(map[string]uint32)
	for line := range strings.Lines(string(must(os.ReadFile(budgetFile))(tb))) {
		var name string
		var count uint32
		if _, err := fmt.Sscanf(line, "%s %d", &name, &count); err != nil {
			tb.Fatalf("%s: %q: %v", budgetFile, line, err)
		}
		recorded[name] = count
	}
	return recorded
}
