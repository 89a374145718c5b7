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

// TestPublic judges files that people published, and prints how many lines get the
// verdict that they deserve. forms.yaml has files of our own, in forms that the reader did
// not know when they were written. later.yaml, third.yaml, fourth.yaml and fifth.yaml were chosen after the checks were written.
func TestPublic(t *testing.T) {
	for name, least := range map[string]int{"public": 114, "forms": 49, "later": 144, "third": 159, "fourth": 20, "fifth": 114} {
		t.Run(name, func(t *testing.T) { judgeAll(t, "testdata/"+name+".yaml", least) })
	}
}

// judgeAll judges the files in a list. least is how many lines have to get their verdict.
func judgeAll(t *testing.T, list string, least int) {
	text, err := os.ReadFile(list)
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
	if right < least {
		t.Errorf("%d of %d lines right, want at least %d", right, lines, least)
	}
}
