package doctor

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/testenv"
)

// TestMachines examines the bundles of whole machines.
func TestMachines(t *testing.T) {
	for _, m := range machines {
		t.Run(m.name, func(t *testing.T) {
			s := m.read(t)
			r, err := Examine(s, nil)
			if err != nil {
				t.Fatal(err)
			}
			m.verify(t, r)
			m.verifyCause(t, r)
			var out strings.Builder
			if err := r.Print(&out, false); err != nil {
				t.Fatal(err)
			}
			testenv.GoldenFile(t, filepath.Join("testdata", m.name+".txt"), []byte(out.String()))
		})
	}
}

// read returns the machine from testdata, and checks that it equals what the builder
// makes.
func (m *machine) read(t *testing.T) *Snapshot {
	t.Helper()
	text, err := json.MarshalIndent(m.build().s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	testenv.GoldenFile(t, filepath.Join("testdata", m.name+".json"), append(text, '\n'))
	s, err := Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (m *machine) verify(t *testing.T, r *Report) {
	t.Helper()
	v := r.Verdict
	if v.Check != m.check || v.Limit != m.limit || v.Severity != m.severity {
		t.Errorf("check %q, limit %q, severity %s; want %q, %q, %s", v.Check, v.Limit, v.Severity, m.check, m.limit, m.severity)
	}
	for _, part := range m.says {
		if !strings.Contains(v.Sentence, part) {
			t.Errorf("%q does not say %q", v.Sentence, part)
		}
	}
	for _, f := range r.Findings {
		if f.Severity > Notice && !slices.Contains(m.also, f.Check) {
			t.Errorf("%s %s: %s", f.Severity, f.Check, f.Says)
		}
		if f.Severity > Notice && (len(f.Evidence) == 0 || len(f.Remedies)+len(f.See) == 0) {
			t.Errorf("%s lacks evidence or remedy: %+v", f.Check, f)
		}
	}
	for _, f := range r.Findings {
		if c := checkOf(f.Check); f.Severity > c.Worst {
			t.Errorf("%s found what is %s, and says that it finds no worse than %s", c.ID, f.Severity, c.Worst)
		}
	}
	for _, id := range m.also {
		if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Check == id && f.Severity > Notice }) {
			t.Errorf("no finding of %s", id)
		}
	}
}

func checkOf(id string) *Check {
	all := Checks()
	return &all[slices.IndexFunc(all, func(c Check) bool { return c.ID == id })]
}
