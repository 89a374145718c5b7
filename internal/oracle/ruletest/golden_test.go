package ruletest_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"weir/internal/oracle/ruletest"
	"weir/internal/testenv"
	"weir/pf/resolve"
)

// TestGolden evaluates the expectations of the files in testdata, and compares the report
// or the faults with those in the files.
func TestGolden(t *testing.T) {
	testenv.EachGolden(t, "testdata/*.txtar", func(t *testing.T, g *testenv.Golden) {
		g.Check(t, "report", report(t, g.Section("rules"), g.Section("host"), g.Section("expect")))
	})
}

func report(t *testing.T, rules, description, expectations string) string {
	t.Helper()
	r, err := run(t, rules, description, expectations)
	var faults ruletest.Faults
	if errors.As(err, &faults) {
		return err.Error() + "\n"
	}
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.Fprint(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func run(t *testing.T, rules, description, expectations string) (*ruletest.Report, error) {
	t.Helper()
	host := &resolve.Host{}
	if err := json.Unmarshal([]byte(description), host); err != nil {
		t.Fatal(err)
	}
	set, list := resolve.Load("rules", []byte(rules), host)
	if set == nil {
		t.Fatalf("the rules are refused: %v", list.Err())
	}
	all, err := ruletest.Read("expect", []byte(expectations))
	if err != nil {
		return nil, err
	}
	return ruletest.NewRunner(set, host, ruletest.Described(host)).Run("expect", all)
}
