package doctor

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestAdvisedOnce checks that no command stands twice in a report, also as data, and that
// a finding whose remedies stand above names the finding that has them.
func TestAdvisedOnce(t *testing.T) {
	reports := map[string]*Report{}
	for i := range machines {
		r, err := Examine(machines[i].build().s, nil)
		if err != nil {
			t.Fatal(err)
		}
		reports[machines[i].name] = r
	}
	for _, c := range readPublic(t) {
		reports[c.name], _ = c.judge(t)
	}
	referring := 0
	for name, r := range reports {
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Findings {
			f := &r.Findings[i]
			for _, m := range f.Remedies {
				quoted, err := json.Marshal(m.Command)
				if err != nil {
					t.Fatal(err)
				}
				if m.Command != "" && strings.Count(string(data), `"command":`+string(quoted)) != 1 {
					t.Errorf("%s: %s stands more than once", name, m.Command)
				}
			}
			for _, other := range f.See {
				referring++
				found := false
				for k := range i {
					found = found || r.called(k) == other && len(r.Findings[k].Remedies) > 0
				}
				if !found {
					t.Errorf("%s: %s sees %s, which does not stand above it with a remedy", name, f.Check, other)
				}
			}
			if f.Because == "" && len(f.Remedies)+len(f.See) == 0 {
				t.Errorf("%s: %s has no remedy", name, f.Check)
			}
		}
	}
	if referring < 5 {
		t.Errorf("%d findings name others", referring)
	}
}
