package report

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestSentencesInTables: a sentence at the end of a row stays within the terminal, beside
// the other cells or below.
func TestSentencesInTables(t *testing.T) {
	const width, sentence = 70, "not decided: the runs spread too much to tell it from the direct wire; iperf3 has its core full"
	for _, first := range []string{"nat, weir", "a name that takes so much of the terminal that little is left"} {
		d := &Document{Kind: "test", Title: "a test", Sections: []Section{{Title: "s", Tables: []Table{{
			Columns: []Column{{Name: "rung", Words: true}, {Name: "limit", Words: true}}, Rows: [][]string{{first, sentence}, {"x", "this step"}}}}}}}
		var text bytes.Buffer
		if err := d.WriteText(&text, width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns: %q", n, line)
			}
		}
		if got := strings.Join(strings.Fields(text.String()), " "); !strings.Contains(got, first) || !strings.Contains(strings.ReplaceAll(got, "x this step", ""), sentence) {
			t.Errorf("%q is not whole in\n%s", sentence, &text)
		}
	}
}
