package db

import (
	"strings"
	"testing"
)

const whole = `- key: net.x
  account: record
  role: endpoint
  system: freebsd
  place: sysctl.conf
  value: '1'
  rationale: 'It helps.'
  risk: 'None.'
  evidence: [{grade: C, source: 'tcp(4)'}]
`

// TestSchema checks what the schema refuses, and the messages.
func TestSchema(t *testing.T) {
	d, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	read := func(text string) error {
		records, err := parse([]byte(text))
		if err != nil {
			return err
		}
		for _, r := range records {
			if err := d.check(r); err != nil {
				return err
			}
		}
		return nil
	}
	if err := read(whole); err != nil {
		t.Fatalf("a whole record: %v", err)
	}
	for _, c := range []struct{ old, new, says string }{
		{"value: '1'", "vaule: '1'", "field vaule not found"},
		{"account: record", "account: kept", `account: "kept" is none of`},
		{"role: endpoint", "role: router", `role: "router" is none of`},
		{"system: freebsd", "system: plan9", `system: "plan9"`},
		{"place: sysctl.conf", "place: win.ini", `places.yaml has no "win.ini"`},
		{"grade: C", "grade: E", `grade: "E"`},
		{"source: 'tcp(4)'", "source: 'tcp(4)', unproven: true", "none that proves anything"},
		{"source: 'tcp(4)'", "source: ''", "a source is missing"},
		{"  value: '1'\n", "", "needs a value or a formula"},
		{"  value: '1'\n", "  formula: guess\n", `formulas.go has no "guess"`},
		{"  risk: 'None.'\n", "", "risk"},
		{"  risk: 'None.'\n", "  risk: 'None.'\n  reason: 'Why.'\n", "reason"},
		{"account: record", "account: obsolete", "until: what is obsolete names"},
		{"  value: '1'\n", "  value: '1'\n  inputs: [weather]\n", `inputs: "weather"`},
		{"  value: '1'\n", "  value: '1'\n  since: 'twelve'\n", `since: "twelve" is no major version`},
		{"key: net.x", "key: ''", "key: missing"},
		{"risk: 'None.'", "risk: 'None.'\n---\n- key: second", "more than one document"},
		{"  evidence: [{grade: C, source: 'tcp(4)'}]\n", "", "evidence: missing"},
	} {
		text := strings.Replace(whole, c.old, c.new, 1)
		if text == whole {
			t.Fatalf("%q is not in the record", c.old)
		}
		if err := read(text); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.new, err, c.says)
		}
	}
}

// TestFormulas checks that each formula has a text, and that a record uses each text's
// formula.
func TestFormulas(t *testing.T) {
	d, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, r := range d.Records {
		used[r.Formula] = true
	}
	for name, text := range formulas {
		if !used[name] || text == "" {
			t.Errorf("formula %s: used %v, text %q", name, used[name], text)
		}
	}
}
