package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
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
	// Version is the version of the weir that measured.
	Version string           `json:"version,omitempty"`
	Machine hostinfo.Machine `json:"machine"`
	// Sketch marks a run that was too short to rely on.
	Sketch bool `json:"sketch,omitempty"`
	// Verdicts are sentences, the most important first. They are shown only if
	// the control holds.
	Verdicts []string `json:"verdicts"`
	// Method describes in sentences how it was measured.
	Method   []string  `json:"method"`
	Sections []Section `json:"sections"`
	// Measurements are the values that "weir bench compare" pairs with those of
	// another document.
	Measurements []Measurement `json:"measurements"`
	// Control is nil if nothing is compared.
	Control *stats.Control `json:"control,omitempty"`
	Skipped []Skip         `json:"skipped,omitempty"`
	// Notes are caveats, shown below everything.
	Notes []string `json:"notes,omitempty"`
	// Attachments are inputs of the measurement, such as rule files.
	Attachments []Attachment `json:"attachments,omitempty"`
}

// Attachment is a text that belongs to a report.
type Attachment struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Section is a part of a document: a headline, then paragraphs, charts and tables.
type Section struct {
	Title  string   `json:"title"`
	Text   []string `json:"text,omitempty"` // paragraphs
	Charts []Chart  `json:"charts,omitempty"`
	Tables []Table  `json:"tables,omitempty"`
}

// Table is rows of text. Cells are printed as they are; the column's name has the unit.
type Table struct {
	Title   string     `json:"title,omitempty"`
	Columns []Column   `json:"columns"`
	Rows    [][]string `json:"rows"`
	// Marked are the indexes of the rows that the table is about.
	Marked []int `json:"marked,omitempty"`
}

// Column is the head of a table's column.
type Column struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	// Words marks cells with words, which are aligned left. Numbers are aligned
	// right.
	Words bool `json:"words,omitempty"`
	// Concludes marks cells that draw a conclusion from the measurements.
	Concludes bool `json:"concludes,omitempty"`
}

// Which direction of a measurement is better.
const (
	Higher = "higher"
	Lower  = "lower"
)

// Measurement is one thing that was measured several times. Its name is unique in a
// document and stays the same across versions of weir.
type Measurement struct {
	Name   string       `json:"name"`
	Unit   string       `json:"unit"`
	Better string       `json:"better"` // Higher or Lower
	Runs   stats.Sample `json:"runs"`
	// Resolution is the step of the search that found the values, in their unit. It
	// is 0 if they were measured directly.
	Resolution float64 `json:"resolution,omitempty"`
	// AtLeast says that in some run the measuring program was the limit. The true
	// value is at least this.
	AtLeast bool `json:"at_least,omitempty"`
	// Untrusted says that the control of its test failed. Nothing may be concluded
	// from it, even if the document draws conclusions from others.
	Untrusted bool `json:"untrusted,omitempty"`
}

// Skip is something that was not measured, and why.
type Skip struct {
	What   string `json:"what"`
	Reason string `json:"reason"`
}

// Conclusive reports whether the document may draw conclusions: its control holds, or it
// has none.
func (d *Document) Conclusive() bool { return d.Control == nil || d.Control.OK }

// EndEarly marks the document of a run that did not finish. It keeps the measurements and
// draws no conclusions.
func (d *Document) EndEarly(why string) {
	if d.Control == nil {
		d.Control = &stats.Control{}
	}
	d.Control.Refuse("the run ended before everything was measured: " + why)
}

// withheld replaces conclusions in tables if the run may not draw them.
const withheld = "no verdict"

// Withhold removes the conclusions from the tables unless the document is
// [Document.Conclusive]. The measurements stay.
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

// WriteJSON writes the document as JSON for programs.
func (d *Document) WriteJSON(w io.Writer) error {
	if err := d.Check(); err != nil {
		return err
	}
	return EncodeJSON(w, d)
}

// EncodeJSON writes any value that a benchmark reports as JSON.
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

// Check finds errors of the program that made the document. Every writer calls it first
// and relies on it.
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

// finite reports whether all values can be drawn.
func finite(values ...float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// LeastRuns is the number of runs below which a report calls itself a sketch.
const LeastRuns = 5

// Measure adds a measurement, unless it has no runs. The parts of its name are joined by
// slashes.
func (d *Document) Measure(better, unit string, runs stats.Sample, name ...string) {
	if len(runs) > 0 {
		d.Measurements = append(d.Measurements, Measurement{Name: strings.Join(name, "/"), Unit: unit, Better: better, Runs: runs})
	}
}

// Add adds the sections that have a chart or a table.
func (d *Document) Add(sections ...Section) {
	for _, s := range sections {
		if len(s.Charts)+len(s.Tables) > 0 {
			d.Sections = append(d.Sections, s)
		}
	}
}

// Add adds a row, marked if it is ours.
func (t *Table) Add(ours bool, cells ...string) {
	if ours {
		t.Marked = append(t.Marked, len(t.Rows))
	}
	t.Rows = append(t.Rows, cells)
}
