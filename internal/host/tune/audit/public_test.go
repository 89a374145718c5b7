package audit_test

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"weir/internal/host/tune/audit"
)

// A publication is an excerpt of a file that somebody published, with the verdicts that
// its lines deserve.
type publication struct {
	Source string   `yaml:"source"`
	Target string   `yaml:"target"`
	File   string   `yaml:"file"`
	Text   string   `yaml:"text"`
	Want   []string `yaml:"want"`
}

// leastRight is how many lines of testdata/public.yaml have to get their verdict.
const leastRight = 114

// TestPublic judges files that people published, and prints how many lines get the
// verdict that they deserve.
func TestPublic(t *testing.T) {
	text, err := os.ReadFile("testdata/public.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []publication
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	right, lines := 0, 0
	for _, p := range all {
		j := judge(t, p.Target)
		found, _, err := audit.Read(strings.NewReader(p.Text), p.File, j.Known)
		if err != nil {
			t.Fatal(err)
		}
		said := map[string]string{}
		for _, l := range found {
			f := j.Check(l)
			said[l.Key+"="+strings.Join(strings.Fields(l.Value), " ")] = f.Says()
		}
		for _, w := range p.Want {
			lines++
			line, verdict, _ := strings.Cut(w, ": ")
			verdict, part, _ := strings.Cut(verdict, ": ")
			got, ok := said[line]
			switch {
			case !ok:
				t.Logf("%s: %s: not read, want %s", p.Source, line, verdict)
			case !strings.HasPrefix(got, verdict) || !strings.Contains(got, part):
				t.Logf("%s: %s: %s; want %s with %q", p.Source, line, got, verdict, part)
			default:
				right++
			}
		}
	}
	t.Logf("%d of %d lines right", right, lines)
	if right < leastRight {
		t.Errorf("%d of %d lines right, want at least %d", right, lines, leastRight)
	}
}
