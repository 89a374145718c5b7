package ruletest_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"weir/internal/oracle/ruletest"
	"weir/pf/resolve"
)

// TestOptimizedRandom evaluates random rules for random packets, plain and optimized. The
// rules use few different words. So some are equal, include each other, or differ in one
// address only, also across barriers.
func TestOptimizedRandom(t *testing.T) {
	host, err := resolve.ReadHost("../../../pf/resolve/testdata/host.json")
	if err != nil {
		t.Fatal(err)
	}
	verdicts, fewer := map[string]int{}, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 9))
		var rules, packets strings.Builder
		for range 1 + r.IntN(8) {
			head, tail := randomRule(r)
			for range 1 + r.IntN(10) {
				fmt.Fprintln(&rules, head, randomTo(r), tail)
			}
		}
		for range 20 {
			fmt.Fprintln(&packets, randomPacket(r))
		}
		all, err := ruletest.Read("expect", []byte(packets.String()))
		if err != nil {
			t.Fatalf("%v\n%s", err, packets.String())
		}
		set, list := resolve.Load("rules", []byte(rules.String()), host)
		if set == nil {
			t.Fatalf("%v\n%s", list.Err(), rules.String())
		}
		plain, err := ruletest.NewRunner(set, host, ruletest.Described(host)).Run("expect", all)
		if err != nil {
			t.Fatal(err)
		}
		if optimized := sameOutcome(t, []byte(rules.String()), host, all, plain); len(optimized.Rules) < len(set.Rules) {
			fewer++
		}
		for _, result := range plain.Results {
			verdicts[result.Outcome.Verdict]++
		}
	}
	if verdicts[ruletest.Pass] < 1000 || verdicts[ruletest.Block] < 1000 || fewer < 100 {
		t.Errorf("%v, %d rulesets with fewer rules: too few to tell", verdicts, fewer)
	}
}

func pick(r *rand.Rand, words ...string) string { return words[r.IntN(len(words))] }

// randomTo returns the part in which the rules of one head differ.
func randomTo(r *rand.Rand) string {
	return pick(r, "any", "10.1.1.4", "10.1.1.5", "10.1.1.6", "10.1.1.7", "10.1.1.8", "10.1.1.9", "10.1.1.0/24", "10.1.1.6/31")
}

// randomRule returns the head and the tail of rules, to be put around randomTo.
func randomRule(r *rand.Rand) (head, tail string) {
	words := []string{
		pick(r, "pass", "pass", "block", "block return", "match"), pick(r, "", "in", "in", "out"),
		pick(r, "", "", "", "log"), pick(r, "", "", "quick"), pick(r, "", "", "on em0", "on em1", "on ! em0"), "inet",
		pick(r, "", "", "proto tcp", "proto udp"),
		"from", pick(r, "any", "any", "192.0.2.9", "192.0.2.8", "192.0.2.0/24", "192.0.2.8/31", "! 192.0.2.9"),
		"to",
	}
	port := ""
	if strings.HasPrefix(words[6], "proto") {
		port = pick(r, "", "", "port 80", "port 81", "port 80:90")
	}
	return strings.Join(words, " "), port + " " + pick(r, "", "", "", "", "", `label "l"`, "tag A", "tag B", "tagged A")
}

func randomPacket(r *rand.Rand) string {
	return fmt.Sprintf(`{"in": "em0", "verdict": "pass", "packet": "%s 192.0.2.%s:4000 > 10.1.1.%s:%s"}`,
		pick(r, "tcp", "udp"), pick(r, "7", "8", "9"), pick(r, "4", "5", "6", "7", "8", "9"), pick(r, "79", "80", "81", "85"))
}
