package bench

import (
	"strings"
	"testing"

	"weir/pf/resolve"
)

// TestLanguageFiles checks that the files that are measured expand to as many
// rules as is said.
func TestLanguageFiles(t *testing.T) {
	for _, kind := range languageKinds {
		rules, list := resolve.Load("bench.conf", kind.file(3000), nil)
		if rules == nil {
			t.Fatalf("%s: %v", kind.name, list.Err())
		}
		if n := len(rules.Rules); n != 3000 {
			t.Errorf("%s: %d rules, want 3000", kind.name, n)
		}
	}
}

func TestLanguageReport(t *testing.T) {
	for _, test := range []struct {
		growth float64
		bytes  int
		ok     bool
	}{{13, 3000, true}, {13.1, 3000, false}, {13, 3001, false}} {
		cost := LanguageCost{Kind: "some", Seconds: []float64{1, test.growth}, Growth: test.growth, Bytes: test.bytes}
		r := &LanguageReport{Rules: []LanguageCost{cost}}
		if r.OK() != test.ok {
			t.Errorf("%v times, %d bytes: OK is %t", test.growth, test.bytes, r.OK())
		}
		var b strings.Builder
		if err := r.WriteText(&b); err != nil || !strings.Contains(b.String(), "some   none") {
			t.Errorf("%v, prints %s", err, b.String())
		}
	}
}
