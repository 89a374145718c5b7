package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"weir/internal/host/hostinfo"
	"weir/internal/stats"
)

// Document is the report of one benchmark.
type Document struct {
	// Kind is the subcommand that made it: "forward".
	Kind  string `json:"kind"`
	Title string `json:"title"`
	// Command repeats the benchmark.
	Command string    `json:"command"`
	Started time.Time `json:"started"`
	// Version is that of the weir that measured.
	Version string           `json:"version,omitempty"`
	Machine hostinfo.Machine `json:"machine"`
	// Sketch marks a run that was too short to rely on.
	Sketch bool `json:"sketch,omitempty"`
	// Verdicts are sentences, the most important first. They are shown only if
	// the control holds.
	Verdicts []string `json:"verdicts"`
	// Method are sentences that say how it was measured.
	Method   []string  `json:"method"`
	Sections []Section `json:"sections"`
	// Measurements are what "weir bench compare" pairs with those of another
	// document.
	Measurements []Measurement `json:"measurements"`
	// Control is nil where nothing is compared.
	Control *stats.Control `json:"control,omitempty"`
	Skipped []Skip         `json:"skipped,omitempty"`
	// Notes are caveats, shown below everything.
	Notes []string `json:"notes,omitempty"`
	// Attachments are what was measured with, such as files of rules.
	Attachments []Attachment `json:"attachments,omitempty"`
}

// Attachment is a text that belongs to a report.
type Attachment struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Section is a part of a document: a headline, paragraphs, then charts, then
// tables.
type Section struct {
	Title  string   `json:"title"`
	Text   []string `json:"text,omitempty"` // paragraphs
	Charts []Chart  `json:"charts,omitempty"`
	Tables []Table  `json:"tables,omitempty"`
}

// Table is rows of text; the cells are as they shall be read, with the unit in
// the column's name.
type Table struct {
	Title   string     `json:"title,omitempty"`
	Columns []Column   `json:"columns"`
	Rows    [][]string `json:"rows"`
	// Marked are the numbers of rows that the table is about.
	Marked []int `json:"marked,omitempty"`
}

// Column is the head of a table's column.
type Column struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	// Words: the cells are text and stand at the left; numbers stand at the right.
	Words bool `json:"words,omitempty"`
	// Concludes: the cells say what follows from what was measured.
	Concludes bool `json:"concludes,omitempty"`
}

// What is better of a measurement.
const (
	Higher = "higher"
	Lower  = "lower"
)

// Measurement is one thing that was measured several times. Names are unique in
// a document and stay the same over versions of weir.
type Measurement struct {
	Name   string       `json:"name"`
	Unit   string       `json:"unit"`
	Better string       `json:"better"` // Higher or Lower
	Runs   stats.Sample `json:"runs"`
	// Resolution is the step in which the values were found, in their unit; 0:
	// they were measured.
	Resolution float64 `json:"resolution,omitempty"`
	// AtLeast: in some run not what was measured was the limit, but who measured
	// it. The true value is no smaller.
	AtLeast bool `json:"at_least,omitempty"`
	// Untrusted: the control of its test failed. Nothing may be concluded from it,
	// though the document concludes something of others.
	Untrusted bool `json:"untrusted,omitempty"`
}

// Skip is what was not measured.
type Skip struct {
	What   string `json:"what"`
	Reason string `json:"reason"`
}

// Conclusive tells whether the document may conclude something: its control
// holds, or it has none.
func (d *Document) Conclusive() bool { return d.Control == nil || d.Control.OK }

// EndEarly marks a document of a run that did not come to its end: it keeps what
// was measured and concludes nothing.
func (d *Document) EndEarly(why string) {
	if d.Control == nil {
		d.Control = &stats.Control{}
	}
	d.Control.Refuse("the run ended before everything was measured: " + why)
}

// withheld stands in tables instead of what the run may not conclude.
const withheld = "no verdict"

// Withhold takes out of the tables what a document that is not [Document.Conclusive]
// must not conclude. What was measured stays.
func (d *Document) Withhold() {
	if d.Conclusive() {
		return
	}
	for _, s := range d.Sections {
		for _, t := range s.Tables {
			for i, c := range t.Columns {
				if !c.Concludes {
					continue
				}
				for _, row := range t.Rows {
					row[i] = withheld
				}
			}
		}
	}
}

// WriteJSON writes the document for programs.
func (d *Document) WriteJSON(w io.Writer) error {
	if err := d.Check(); err != nil {
		return err
	}
	return EncodeJSON(w, d)
}

// EncodeJSON writes anything that a benchmark reports for programs.
func EncodeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// Read reads a document that [Document.WriteJSON] wrote.
func Read(r io.Reader) (*Document, error) {
	var d Document
	if err := json.NewDecoder(r).Decode(&d); err != nil {
		return nil, fmt.Errorf("read a report: %w", err)
	}
	if err := d.Check(); err != nil {
		return nil, err
	}
	return &d, nil
}

// Check tells what a program that made the document did wrong: every writer
// calls it first, so that they may rely on it.
func (d *Document) Check() error {
	if d.Kind == "" || d.Title == "" {
		return fmt.Errorf("check a report: it has no kind or no title")
	}
	if err := d.checkMeasurements(); err != nil {
		return fmt.Errorf("check the report %q: %w", d.Title, err)
	}
	for _, s := range d.Sections {
		if err := s.check(); err != nil {
			return fmt.Errorf("check the report %q: section %q: %w", d.Title, s.Title, err)
		}
	}
	return nil
}

func (d *Document) checkMeasurements() error {
	seen := map[string]bool{}
	for _, m := range d.Measurements {
		switch {
		case m.Name == "" || seen[m.Name]:
			return fmt.Errorf("measurement %q: the name is missing or there already", m.Name)
		case m.Better != Higher && m.Better != Lower:
			return fmt.Errorf("measurement %q: better is %q, want %s or %s", m.Name, m.Better, Higher, Lower)
		case len(m.Runs) == 0:
			return fmt.Errorf("measurement %q: no runs", m.Name)
		}
		seen[m.Name] = true
	}
	return nil
}

func (s *Section) check() error {
	for _, t := range s.Tables {
		for i, row := range t.Rows {
			if len(row) != len(t.Columns) {
				return fmt.Errorf("table %q: row %d has %d cells for %d columns", t.Title, i+1, len(row), len(t.Columns))
			}
		}
	}
	for _, c := range s.Charts {
		if err := c.check(); err != nil {
			return fmt.Errorf("chart %q: %w", c.Title, err)
		}
	}
	return nil
}

// finite tells whether all of the values can be drawn.
func finite(values ...float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}
