package ruleset_test

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"weir/internal/fw/ruleset"
	"weir/internal/fw/ruleset/rulestest"
)

// For every packet, the compiled tables agree with evaluating the rules one by one.
func TestRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rs, host := rulestest.DrawRuleset(t), rulestest.DrawSnapshot(t)
		program, err := ruleset.Compile(rs, host)
		if err != nil {
			t.Fatal(err)
		}
		read := &reader{Program: program, turns: map[uint32]uint64{}, kept: map[keeper]netip.Addr{}}
		slow := rulestest.NewEvaluator(rs, host)
		for range 20 {
			p := rulestest.DrawPacket(t)
			want, got := slow.Evaluate(p), read.evaluate(p)
			if diff := rulestest.Diff(want, got); diff != "" {
				t.Fatalf("%+v (-asked one by one +compiled):\n%s", p, diff)
			}
		}
	})
}
