package ruletest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/oracle/ruletest"
	"weir/internal/testenv"
)

// TestGateway evaluates a gateway's rules as pfSense writes them, if they are available:
// every expectation holds, and none of their opposites.
func TestGateway(t *testing.T) {
	folder := filepath.Join(testenv.Shared(t, "pf-cases"), "pfsense")
	var texts []string
	for _, name := range []string{"rules.debug", "host.json", "expect.json"} {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(data))
	}
	holds(t, texts[0], texts[1], texts[2])
}

// TestContrary expects the opposite for the packets of a file whose expectations all
// hold.
func TestContrary(t *testing.T) {
	g := testenv.ReadGolden(t, "testdata/opnsense.txtar")
	holds(t, g.Section("rules"), g.Section("host"), g.Section("expect"))
}

func holds(t *testing.T, rules, host, expectations string) {
	t.Helper()
	r := evaluate(t, rules, host, expectations)
	if r.Failed() > 0 {
		var b strings.Builder
		_ = r.Fprint(&b) // a Builder does not fail
		t.Error(b.String())
	}
	swap := strings.NewReplacer(`"verdict": "pass"`, `"verdict": "block"`, `"verdict": "block"`, `"verdict": "pass"`)
	swapped := evaluate(t, rules, host, swap.Replace(expectations))
	if len(swapped.Results) < 20 || swapped.Failed() != len(r.Results) {
		t.Errorf("of %d expectations of the contrary %d fail", len(r.Results), swapped.Failed())
	}
	labels := evaluate(t, rules, host, strings.ReplaceAll(expectations, `"label": "`, `"label": "no `))
	if n := strings.Count(expectations, `"label"`); labels.Failed() != n {
		t.Errorf("%d of %d labels that no rule has fail", labels.Failed(), n)
	}
}

func evaluate(t *testing.T, rules, host, expectations string) *ruletest.Report {
	t.Helper()
	r, err := run(t, rules, host, expectations)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
