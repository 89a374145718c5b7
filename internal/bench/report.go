package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Report is what a benchmark found.
type Report struct {
	Command string            `json:"command"`
	Started time.Time         `json:"started"`
	Machine Machine           `json:"machine"`
	Rules   map[string]string `json:"rules"` // text of the rule files, by name
	Rows    []Row             `json:"rows"`
	Ratios  []Ratio           `json:"ratios"`
	Control Control           `json:"control"`
	Skipped []Skip            `json:"skipped,omitempty"`
	Notes   []string          `json:"notes,omitempty"`

	sections []section
}

// section are the rows of one case.
type section struct {
	c        Case
	from, to int
}

// add adds the rows of one case, and their ratios.
func (r *Report) add(c Case, found []Row) {
	r.sections = append(r.sections, section{c, len(r.Rows), len(r.Rows) + len(found)})
	r.Rows = append(r.Rows, found...)
	r.Ratios = append(r.Ratios, ratios(c, found)...)
}

// Row is what one path did in one case.
type Row struct {
	Path    string `json:"path"`
	Hook    string `json:"hook"` // xdp, tcx or stack
	Flavour string `json:"flavour,omitempty"`
	Case
	Mpps    Sample   `json:"mpps"`   // million frames per second, of all cores together
	NS      float64  `json:"ns"`     // of one core, per frame
	NetNS   *float64 `json:"net_ns"` // without what the generator path costs; null: not measured
	NewPerS *float64 `json:"new_per_s"`
}

// Ratio compares two paths of one case: the first divided by the second.
type Ratio struct {
	Of string `json:"of"`
	To string `json:"to"`
	Case
	Mpps    float64  `json:"mpps"`
	NetNS   *float64 `json:"net_ns"`
	NewPerS *float64 `json:"new_per_s"`
}

// Control is the same path measured twice, as if it were two: the difference
// is what this run cannot tell from nothing.
type Control struct {
	Path       string  `json:"path"`
	Difference float64 `json:"difference"` // share; the largest of all cases
	OK         bool    `json:"ok"`
	Why        string  `json:"why,omitempty"` // why not
}

// Skip is a path that was not measured.
type Skip struct {
	Path   string `json:"path"`
	Case   *Case  `json:"case,omitempty"` // nil: in no case
	Reason string `json:"reason"`
}

// maxControl is the difference of the control beyond which a run says nothing
// about smaller ones.
const maxControl = 0.05

// compared are the pairs that a report gives the ratios of.
var compared = [...]struct{ of, to string }{
	{PathWeir, PathRedirect}, {PathWeirNAT, PathRedirect},
	{PathWeir, PathKernel}, {PathWeir, PathNft}, {PathWeirNAT, PathNftNAT},
}

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// samples are what was measured of one path in one case.
type samples struct {
	path    *path
	flavour string
	mpps    Sample
	newPerS Sample
}

// rows turns the samples of one case into rows; the generator's gives what is
// net.
func rows(c Case, all []*samples) []Row {
	base := 0.0
	for _, s := range all {
		if s.path.name == PathGenerator {
			base = nanoseconds(c, s.mpps)
		}
	}
	var out []Row
	for _, s := range all {
		row := Row{Path: s.path.name, Hook: s.path.hook, Flavour: s.flavour, Case: c, Mpps: s.mpps,
			NS: round(nanoseconds(c, s.mpps))}
		if !s.path.hasEgress {
			row.Sink = Far
		}
		if base > 0 && s.path.name != PathGenerator {
			row.NetNS = number(nanoseconds(c, s.mpps) - base)
		}
		if len(s.newPerS) > 0 {
			row.NewPerS = number(s.newPerS.Median())
		}
		out = append(out, row)
	}
	return out
}

// nanoseconds are what one core spends on a frame.
func nanoseconds(c Case, mpps Sample) float64 { return float64(c.Cores) * 1000 / mpps.Median() }

// ratios compares the rows of one case.
func ratios(c Case, rows []Row) []Ratio {
	byPath := map[string]*Row{}
	for i := range rows {
		byPath[rows[i].Path] = &rows[i]
	}
	var out []Ratio
	for _, pair := range compared {
		of, to := byPath[pair.of], byPath[pair.to]
		if of == nil || to == nil {
			continue
		}
		out = append(out, Ratio{Of: pair.of, To: pair.to, Case: c, Mpps: round(of.Mpps.Median() / to.Mpps.Median()),
			NetNS: quotient(of.NetNS, to.NetNS), NewPerS: quotient(of.NewPerS, to.NewPerS)})
	}
	return out
}

func number(v float64) *float64 {
	v = round(v)
	return &v
}

func quotient(a, b *float64) *float64 {
	if a == nil || b == nil || *b <= 0 {
		return nil
	}
	return number(*a / *b)
}
