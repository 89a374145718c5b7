package db

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// An Entry is a record as it appears in a JSON list: the fields that name its row first,
// then how it is applied and undone.
type Entry struct {
	*Record
	OS          string // where it is set; for a record outside the guides, system and place
	Advised     string // the guide's value, or weir's
	Grade       Grade
	FormulaText string
	Place       Place
}

// Entry returns the record as it appears in a list.
func (d *DB) Entry(r *Record) *Entry {
	e := &Entry{Record: r, OS: r.System + " " + r.Place, Advised: r.Value, Grade: r.Grade(), FormulaText: formulas[r.Formula], Place: d.Place(r)}
	if r.Row != nil {
		e.OS, e.Advised = r.Row.OS, r.Row.Value
	}
	for _, text := range []*string{&e.Place.Apply, &e.Place.ReadBack, &e.Place.Revert} {
		*text = strings.ReplaceAll(*text, "KEY", r.Key)
	}
	return e
}

// MarshalJSON puts key, os and value first, because they name the row of the table.
func (e *Entry) MarshalJSON() ([]byte, error) {
	record := *e.Record
	record.Row = nil
	type fields struct {
		Key     string `json:"key"`
		OS      string `json:"os"`
		Value   string `json:"value"`
		Guide   string `json:"guide,omitempty"`
		Sets    string `json:"sets,omitempty"`
		Grade   Grade  `json:"grade,omitempty"`
		Formula string `json:"formula,omitempty"`
		*plain
		Apply       string `json:"apply,omitempty"`
		ReadBack    string `json:"readback,omitempty"`
		Revert      string `json:"revert,omitempty"`
		Persistence string `json:"persistence,omitempty"`
	}
	f := fields{Key: e.Key, OS: e.OS, Value: e.Advised, Grade: e.Grade, Formula: e.FormulaText, plain: (*plain)(&record)}
	if e.Row != nil {
		f.Guide, f.Sets = e.Row.Guide, e.Record.Value
	}
	if e.Account != Elsewhere {
		f.Apply, f.ReadBack, f.Revert, f.Persistence = e.Place.Apply, e.Place.ReadBack, e.Place.Revert, e.Place.Persistence
	}
	return json.Marshal(f)
}

// plain is a record without methods, so an entry embeds its members unchanged.
type plain Record

// WriteList prints one line for each entry: key, place, account, role, grade and
// the guide's value.
func WriteList(w io.Writer, entries []*Entry) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tWHERE\tACCOUNT\tROLE\tGRADE\tVALUE")
	for _, e := range entries {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", e.Key, e.OS, e.Account, e.Role, cmp.Or(e.Grade, "–"), shorten(e.Advised, 40))
	}
	return t.Flush()
}

// shorten cuts a text that is longer than n characters.
func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// WriteWhole prints everything known about an entry.
func (e *Entry) WriteWhole(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)\n", e.Key, e.OS)
	field := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %-12s %s\n", name, text)
		}
	}
	field("account", e.account())
	field("role", string(e.Role))
	field("default", e.Default)
	if e.Row != nil {
		field("guide "+e.Row.Guide, e.Row.Value)
	}
	field(e.valueName(), e.Record.Value)
	field("formula", e.FormulaText)
	field("inputs", strings.Join(e.Inputs, ", "))
	field("why", e.Rationale)
	field("risk", e.Risk)
	for _, value := range slices.Sorted(maps.Keys(e.Values)) {
		field("value "+value, e.Values[value].Says)
	}
	field("versions", e.Versions)
	if e.Since != "" && e.Versions == "" {
		field("versions", e.Since+" and newer")
	}
	field("driver", e.Driver)
	field("conflicts", strings.Join(e.Conflicts, ", "))
	for _, v := range e.Evidence {
		field("evidence", v.String())
	}
	if e.Account != Elsewhere {
		field("apply", e.Place.Apply)
		field("read back", e.Place.ReadBack)
		field("revert", e.Place.Revert)
		field("persistence", e.Place.Persistence)
	}
	field("on Linux", e.Linux)
	field("in weir", e.Weir)
	_, err := io.WriteString(w, b.String())
	return err
}

// valueName says what a record's own value is: what weir sets, or what the text is about.
func (e *Entry) valueName() string {
	switch {
	case e.Account == Refused:
		return "refused for"
	case e.System == "linux" && e.Record.Place != "etc-sysctl":
		return "weir sets"
	}
	return "said of"
}

// account returns the account in a sentence, with its reason.
func (e *Entry) account() string {
	switch e.Account {
	case Obsolete:
		text := fmt.Sprintf("obsolete: in %s and older. %s", e.Until, e.Reason)
		if e.Renamed != "" {
			text += " it was replaced by " + e.Renamed + "."
		}
		return text
	case Refused:
		return "refused: " + e.Reason
	case Elsewhere:
		return e.Reason
	}
	return string(e.Account)
}

// String returns the evidence in one line, with its grade in words.
func (v Evidence) String() string {
	text := fmt.Sprintf("%s (%s): %s", v.Grade, gradeWords[v.Grade], v.Source)
	if v.Says != "" {
		text += ": " + v.Says
	}
	return text
}

var gradeWords = map[Grade]string{
	Measured: "measured here", Published: "published measurement", Vendor: "vendor or standard", Folklore: "folklore",
}
