package forward

import (
	"fmt"
	"io"
	"time"

	"weir/internal/bench/paths"
	"weir/internal/bench/report"
	"weir/internal/bench/sample"
	"weir/internal/bench/traffic"
	"weir/internal/host/hostinfo"
	"weir/internal/stats"
	"weir/internal/units"
)

// Report is the result of a benchmark.
type Report struct {
	Command string            `json:"command"`
	Version string            `json:"version,omitempty"` // version of the weir that measured
	Started time.Time         `json:"started"`
	Machine hostinfo.Machine  `json:"machine"`
	Rules   map[string]string `json:"rules"` // texts of the rule files, by name
	Rows    []Row             `json:"rows"`
	Ratios  []Ratio           `json:"ratios"`
	Scaling []Scaling         `json:"scaling,omitempty"` // more cores than one, if the cases differ in them
	Turns   int               `json:"turns,omitempty"`   // parts of each run in which the paths took turns
	Against string            `json:"against,omitempty"` // the other weir, which the paths that end in -against are of
	Control stats.Control     `json:"control"`
	Skipped []Skip            `json:"skipped,omitempty"`
	Notes   []string          `json:"notes,omitempty"`
	Profile *Profile          `json:"profile,omitempty"` // where a path's time went, if requested

	sections []section
}

// section has the rows of one case.
type section struct {
	c        traffic.Case
	from, to int
}

// add adds the rows of one case, and their ratios.
func (r *Report) add(c traffic.Case, found []Row) {
	r.sections = append(r.sections, section{c, len(r.Rows), len(r.Rows) + len(found)})
	r.Rows = append(r.Rows, found...)
	r.Ratios = append(r.Ratios, ratios(c, found)...)
}

// Row is the result of one path in one case.
type Row struct {
	Path  string `json:"path"`
	Hook  string `json:"hook"` // xdp, tcx or stack
	Entry string `json:"flavour,omitempty"`
	traffic.Case
	Mpps    stats.Sample `json:"mpps"`   // million frames per second, all cores together
	NS      float64      `json:"ns"`     // time of one core per frame
	NetNS   *float64     `json:"net_ns"` // without the cost of the generator path; null: not measured
	NewPerS *float64     `json:"new_per_s"`
	NewRuns stats.Sample `json:"new_per_s_runs,omitempty"` // runs of which NewPerS is the median

	Splits []map[string]float64 `json:"-"` // for each run, ns of a frame by stage; nil: not requested
	record *sample.Record       // each run with the load of the cores
}

// Ratio compares two paths of one case: the first divided by the second.
type Ratio struct {
	Of string `json:"of"`
	To string `json:"to"`
	traffic.Case
	Mpps    float64  `json:"mpps"`
	NetNS   *float64 `json:"net_ns"`
	NewPerS *float64 `json:"new_per_s"`
	// MoreNS is what the first takes of a core for a frame beyond what the second does,
	// if the first is the second with something added.
	MoreNS *float64 `json:"more_ns,omitempty"`
	// Floor is what the ratio in frames has to reach, NewFloor the ratio in new connections.
	// nil: anything will do.
	Floor    *float64 `json:"floor,omitempty"`
	NewFloor *float64 `json:"new_floor,omitempty"`
	// Test and NewTest say whether the runs of the two paths differ, in frames and in
	// new connections. nil means not measured.
	Test    *stats.Comparison `json:"test,omitempty"`
	NewTest *stats.Comparison `json:"new_test,omitempty"`
}

// Profile shows where the time of one core went while a path had steady traffic.
type Profile struct {
	Path   string         `json:"path"`
	Case   traffic.Case   `json:"case"`
	Stacks []report.Stack `json:"stacks"`
}

// Skip is a path that was not measured.
type Skip struct {
	Path   string        `json:"path"`
	Case   *traffic.Case `json:"case,omitempty"` // nil: all cases
	Reason string        `json:"reason"`
}

// pair is two paths whose ratio a report has.
type pair struct {
	of, to   string
	adds     bool    // the first is the second with something added
	floor    float64 // what the ratio in frames has to reach; 0: anything will do
	newFloor float64 // likewise in new connections
}

// compared are the pairs of every report.
var compared = [...]pair{
	{of: paths.Weir, to: paths.Redirect}, {of: paths.WeirNAT, to: paths.Redirect},
	{of: paths.WeirQoS, to: paths.Weir, adds: true}, {of: paths.WeirNATQoS, to: paths.WeirNAT, adds: true},
	{of: paths.KernelHTB, to: paths.Kernel, adds: true},
	{of: paths.WeirVLAN, to: paths.Weir, adds: true}, {of: paths.WeirNATVLAN, to: paths.WeirNAT, adds: true},
	{of: paths.WeirAfTo, to: paths.WeirNAT, adds: true, floor: 0.8},
	{of: paths.RedirectPPPoE, to: paths.Redirect, adds: true},
	{of: paths.WeirPPPoE, to: paths.Weir, adds: true}, {of: paths.WeirNATPPPoE, to: paths.WeirNAT, adds: true},
	{of: paths.WeirScrub, to: paths.WeirNAT, adds: true, floor: 0.95},
	{of: paths.WeirRouteTo, to: paths.WeirNAT, adds: true, floor: 0.97},
	{of: paths.Weir, to: paths.WeirOnce, floor: 0.98},
	{of: paths.WeirLimits, to: paths.WeirNAT, adds: true, newFloor: 0.9},
	{of: paths.Weir, to: paths.Kernel}, {of: paths.WeirQoS, to: paths.KernelHTB},
	{of: paths.Weir, to: paths.Nft}, {of: paths.WeirNAT, to: paths.NftNAT},
}

// otherName is behind the name of a path that another weir runs on (--against).
const otherName = "-against"

// WriteJSON writes the report as JSON for programs.
func (r *Report) WriteJSON(w io.Writer) error { return report.EncodeJSON(w, r) }

// samples are the measurements of one path in one case.
type samples struct {
	path    *paths.Path
	entry   string
	program string // the weir that is measured; "": the testbed's
	mpps    stats.Sample
	newPerS stats.Sample
	splits  []map[string]float64 // for each run, if it was sampled
	record  sample.Record        // each run with the load of the cores
}

// by returns the same path with another weir.
func (s *samples) by(program string) *samples {
	p := *s.path
	p.Name += otherName
	return &samples{path: &p, entry: s.entry, program: program}
}

// rows turns the samples of one case into rows. Net times need the generator's samples.
func rows(c traffic.Case, all []*samples) []Row {
	base := 0.0
	for _, s := range all {
		if s.path.Name == paths.Generator {
			base = nanoseconds(c, s.mpps)
		}
	}
	var out []Row
	for _, s := range all {
		row := Row{Path: s.path.Name, Hook: s.path.Hook, Entry: s.entry, Case: c, Mpps: s.mpps, Splits: s.splits, record: &s.record,
			NS: stats.Round(nanoseconds(c, s.mpps))}
		if !s.path.HasEgress {
			row.Sink = traffic.Far
		}
		if base > 0 && s.path.Name != paths.Generator {
			row.NetNS = number(nanoseconds(c, s.mpps) - base)
		}
		if len(s.newPerS) > 0 {
			row.NewPerS, row.NewRuns = number(s.newPerS.Median()), s.newPerS
		}
		out = append(out, row)
	}
	return out
}

// nanoseconds returns the time that one core spends on a frame.
func nanoseconds(c traffic.Case, mpps stats.Sample) float64 {
	return float64(c.Cores) * 1000 / mpps.Median()
}

// ratios compares the rows of one case.
func ratios(c traffic.Case, rows []Row) []Ratio {
	byPath := map[string]*Row{}
	for i := range rows {
		byPath[rows[i].Path] = &rows[i]
	}
	pairs := compared[:]
	for _, row := range rows {
		pairs = append(pairs, pair{of: row.Path, to: row.Path + otherName, adds: true})
	}
	var out []Ratio
	for _, pair := range pairs {
		of, to := byPath[pair.of], byPath[pair.to]
		if of == nil || to == nil {
			continue
		}
		found := Ratio{Of: pair.of, To: pair.to, Case: c, Mpps: stats.Round(of.Mpps.Median() / to.Mpps.Median()),
			NetNS: quotient(of.NetNS, to.NetNS), NewPerS: quotient(of.NewPerS, to.NewPerS),
			Test: tested(to.Mpps, of.Mpps), NewTest: tested(to.NewRuns, of.NewRuns), Floor: least(pair.floor), NewFloor: least(pair.newFloor)}
		if pair.adds {
			found.MoreNS = number(nanoseconds(c, of.Mpps) - nanoseconds(c, to.Mpps))
		}
		out = append(out, found)
	}
	return out
}

// least returns a floor, or nil if there is none.
func least(floor float64) *float64 {
	if floor == 0 {
		return nil
	}
	return &floor
}

func tested(a, b stats.Sample) *stats.Comparison {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	c := stats.Compare(a, b)
	return &c
}

// doubt returns why a ratio is not a finding, or "".
func doubt(c *stats.Comparison) string {
	switch {
	case c == nil || c.Proven:
		return ""
	case c.Test == stats.TooFew:
		return "not proven: too few runs"
	}
	return fmt.Sprintf("not proven: this run would have shown a difference of %s %%", units.Digits(c.Detectable*100, 2))
}

func number(v float64) *float64 {
	v = stats.Round(v)
	return &v
}

func quotient(a, b *float64) *float64 {
	if a == nil || b == nil || *b <= 0 {
		return nil
	}
	return number(*a / *b)
}
