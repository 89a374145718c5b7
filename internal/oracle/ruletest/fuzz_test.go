package ruletest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/oracle/ruletest"
	"weir/internal/testenv"
	"weir/pf/resolve"
)

// fuzzExpectations are packets of each kind, to the box and through it, by every
// interface of the host of the language's golden files.
const fuzzExpectations = `
{"in": "em0", "packet": "tcp 192.0.2.9:4000 > 198.51.100.7:80", "verdict": "pass"}
{"in": "em1", "packet": "tcp 10.0.0.5:4000 > 192.0.2.9:22 A", "verdict": "pass"}
{"in": "em1", "packet": "udp 10.1.1.5:53 > 10.1.1.6:4000", "verdict": "pass"}
{"in": "em0", "packet": "icmp 192.0.2.9 > 192.0.2.1 echoreq", "verdict": "pass"}
{"in": "em0", "packet": "icmp 192.0.2.9 > 192.0.2.1 unreach port-unr", "verdict": "pass"}
{"in": "em0", "packet": "udp [2001:db8::9]:4000 > [2001:db8:1::9]:53", "verdict": "pass"}
{"in": "em1", "packet": "icmp6 fe80::9 > ff02::1 neighbrsol", "verdict": "pass"}
{"in": "em0", "packet": "gre 192.0.2.9 > 10.0.0.7", "verdict": "pass"}
{"packet": "tcp 192.0.2.1:4000 > 192.0.2.99:80", "verdict": "pass"}
`

// FuzzRun evaluates any accepted rules for packets. There is a result, it is the same
// again, and optimized rules have the same result.
func FuzzRun(f *testing.F) {
	for _, text := range testenv.RuleFiles(f) {
		f.Add(text)
	}
	host, err := resolve.ReadHost("../../../pf/resolve/testdata/host.json")
	if err != nil {
		f.Fatal(err)
	}
	all, err := ruletest.Read("expect", []byte(fuzzExpectations))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		rules, _ := resolve.Load("rules", src, host)
		if rules == nil || len(rules.Rules) > 1000 {
			return
		}
		runner := ruletest.NewRunner(rules, host, ruletest.Described(host))
		first, err := runner.Run("expect", all)
		if err != nil {
			t.Fatal(err)
		}
		again, err := runner.Run("expect", all)
		if err != nil {
			t.Fatal(err)
		}
		sameOutcome(t, src, host, all, first)
		for i, r := range first.Results {
			if v := r.Outcome.Verdict; v != ruletest.Pass && v != ruletest.Block {
				t.Fatalf("%s: %+v", r.Expectation.Text, r.Outcome)
			}
			if diff := cmp.Diff(r.Outcome.String(), again.Results[i].Outcome.String()); diff != "" {
				t.Fatalf("%s under\n%s\n(-first +second)\n%s", r.Expectation.Text, src, diff)
			}
		}
	})
}

// sameOutcome checks that the optimized rules do the same with packets as the rules, and
// returns them.
func sameOutcome(t *testing.T, src []byte, host *resolve.Host, all []*ruletest.Expectation, plain *ruletest.Report) *resolve.Ruleset {
	t.Helper()
	rules, list := resolve.LoadWith("rules", src, host, resolve.Settings{Optimize: true})
	if rules == nil {
		t.Fatalf("optimized, the rules are refused: %v", list.Err())
	}
	optimized, err := ruletest.NewRunner(rules, host, ruletest.Described(host)).Run("expect", all)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range plain.Results {
		want, got := *r.Outcome, *optimized.Results[i].Outcome
		for _, o := range []*ruletest.Outcome{&want, &got} {
			o.Decided, o.In, o.OutRule, o.Translated = nil, nil, nil, nil // their places may change
		}
		if diff := cmp.Diff(want.String(), got.String()); diff != "" || want.Tag != got.Tag || want.State != got.State || want.Log != got.Log {
			t.Fatalf("%s under\n%s\nis %+v, and optimized %+v", r.Expectation.Text, src, want, got)
		}
	}
	return rules
}
