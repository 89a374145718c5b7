package compare

import (
	"fmt"
	"io"
	"strings"

	"weir/pf/resolve"
	"weir/pf/token"
)

// Kind says what kind of statement changes.
type Kind string

// Kinds of changes.
const (
	Option Kind = "option"
	Table  Kind = "table"
	Rule   Kind = "rule" // a rule, an anchor, a translation rule or a queue
)

// A Change is one difference.
type Change struct {
	Kind  Kind   `json:"kind"`
	Words string `json:"words"`         // what happens, such as "new rule" or "table <t> gains 10.0.0.1"
	Old   string `json:"old,omitempty"` // the value of an option, or the text of a rule; empty if there is none
	New   string `json:"new,omitempty"`
	Place string `json:"place"`         // file:line:column; for removed statements, in the old configuration; empty if unknown
	Was   string `json:"was,omitempty"` // the old place of a rule that moved or changed
}

// Rulesets returns what changes from one configuration to another: first options, then
// tables, then rules in order.
func Rulesets(before, after *resolve.Ruleset) []Change {
	changes := options(before, after)
	changes = append(changes, tables(before, after)...)
	return append(changes, rules(before, after)...)
}

// position returns the position of a statement as text.
func position(of *resolve.Ruleset, pos token.Pos) string {
	if p := of.Source.Files.Position(pos); p.Line > 0 {
		return p.String()
	}
	return ""
}

// Fprint prints each change as a paragraph, then their number.
func Fprint(w io.Writer, changes []Change) error {
	if len(changes) == 0 {
		_, err := fmt.Fprintln(w, "nothing changes")
		return err
	}
	count := map[Kind]int{}
	for i := range changes {
		c := &changes[i]
		count[c.Kind]++
		if _, err := io.WriteString(w, c.text()); err != nil {
			return err
		}
	}
	var parts []string
	for _, k := range []Kind{Option, Table, Rule} {
		if n := count[k]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, plural(n, string(k))))
		}
	}
	_, err := fmt.Fprintf(w, "%s\n", strings.Join(parts, ", "))
	return err
}

// text returns a change as it is printed.
func (c *Change) text() string {
	var b strings.Builder
	if c.Place != "" {
		b.WriteString(c.Place + ": ")
	}
	b.WriteString(c.Words)
	if c.Was != "" {
		b.WriteString(" (" + c.Was + ")")
	}
	b.WriteByte('\n')
	if c.Kind != Rule {
		return b.String()
	}
	switch {
	case c.Old != "" && c.New != "" && c.Old != c.New:
		b.WriteString("    was: " + c.Old + "\n    is:  " + c.New + "\n")
	case c.New != "":
		b.WriteString("    " + c.New + "\n")
	default:
		b.WriteString("    " + c.Old + "\n")
	}
	return b.String()
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
