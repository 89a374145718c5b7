package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"weir/internal/bench/compare"
	"weir/internal/bench/forward"
	"weir/internal/bench/paths"
	"weir/internal/bench/report"
	"weir/internal/missing"
	"weir/internal/stats"
	"weir/internal/units"
)

const (
	// margin is the share by which a ratio may be below the recorded one.
	margin = 0.15
	// foreignMargin is the margin on a CPU without a record. Costs of calls and of
	// memory differ a lot between CPUs: weir : redirect was 0.69 on one and 0.82 on
	// another.
	foreignMargin = 0.30
	// needed is the number of runs below the margin that make a regression.
	needed = 3
	// attempts is the maximum number of runs. A run whose control fails does not
	// count.
	attempts = 4
)

// watched reports whether the gate records a ratio: weir's distance from the limit of the
// machine, and from what it replaces.
func watched(of, to string) bool {
	return of == paths.Weir && to == paths.Redirect || of == paths.WeirNAT && to == paths.NftNAT
}

// one makes one run of less than a minute.
type one func(context.Context) (*forward.Report, error)

func runs(progress io.Writer) one {
	o := forward.Defaults()
	o.Paths = []string{paths.Redirect, paths.NftNAT, paths.Weir, paths.WeirNAT}
	o.Flows, o.Runs, o.Seconds = []int{1000}, 5, 300*time.Millisecond
	o.Progress = progress
	return func(ctx context.Context) (*forward.Report, error) { return forward.Run(ctx, o) }
}

// Result is the result of the gate.
type Result struct {
	*compare.Result
	recorded Record
	margin   float64           // as a share
	runs     []*forward.Report // runs whose control holds
	first    *forward.Report
	notices  []string // why it could not judge, or not judge well
}

// OK reports whether no ratio is proven to be lower.
func (r *Result) OK() bool { return r.Regressions == 0 }

// Watch measures until the result is certain. One run is enough if nothing is slower.
func Watch(ctx context.Context, f *File, progress io.Writer) (*Result, error) {
	return watch(ctx, f, runs(progress))
}

func watch(ctx context.Context, f *File, run one) (*Result, error) {
	r := &Result{Result: &compare.Result{}}
	var failed []error
	for range attempts {
		found, err := run(ctx)
		switch {
		case err != nil && (ctx.Err() != nil || isMissing(err)):
			return nil, err
		case err != nil:
			failed = append(failed, err)
			r.notice("a run does not count: %v", err)
			continue
		case r.first == nil:
			r.begin(f, found)
		}
		if decided, err := r.take(found); err != nil || decided {
			return r, err
		}
	}
	if len(failed) == attempts {
		return nil, errors.Join(failed...)
	}
	r.notice("not judged: %s of %d runs had a control that holds, %d are needed", units.Thousands(len(r.runs)), attempts, needed)
	return r, nil
}

// isMissing reports whether the machine lacks something that every run needs.
func isMissing(err error) bool {
	var lacks *missing.Error
	return errors.As(err, &lacks)
}

func (r *Result) begin(f *File, first *forward.Report) {
	var same bool
	r.first, r.margin = first, margin
	if r.recorded, same = f.For(first.Machine.CPU); !same {
		r.margin = foreignMargin
		r.notice("this CPU (%s) has no record, so it is compared with the record of %s, with a margin of %.0f %%. weir bench gate --record makes one",
			first.Machine.CPU, r.recorded.CPU, foreignMargin*100)
	}
}

func (r *Result) notice(format string, args ...any) {
	r.notices = append(r.notices, fmt.Sprintf(format, args...))
}

// take adds a run if its control holds, and reports whether every ratio has a verdict. It
// rejects a run that lacks a ratio, because a gate that measures nothing stops nothing.
func (r *Result) take(found *forward.Report) (decided bool, err error) {
	for _, s := range found.Skipped {
		if slices.ContainsFunc(r.recorded.Ratios, func(v Ratio) bool { return s.Path == v.Of || s.Path == v.To }) {
			return false, fmt.Errorf("%s could not be measured: %s", s.Path, s.Reason)
		}
	}
	this, err := compare.Against(r.recorded.measurements(), measured(found), r.margin, needed)
	if err != nil {
		return false, err
	}
	for _, name := range this.OnlyA {
		return false, fmt.Errorf("%s is recorded, but no run measures it: record anew with weir bench gate --record", name)
	}
	if !found.Control.OK {
		r.notice("a run does not count: its control failed: %s", found.Control.Why)
	} else {
		r.runs = append(r.runs, found)
	}
	if r.Result, err = compare.Against(r.recorded.measurements(), measured(r.runs...), r.margin, needed); err != nil {
		return false, err
	}
	open := slices.ContainsFunc(r.Rows, func(row compare.Row) bool { return row.Verdict == compare.Unproven })
	return len(r.Rows) > 0 && !open, nil
}

// measured returns all ratios of some runs with their values.
func measured(runs ...*forward.Report) (all []report.Measurement) {
	for _, run := range runs {
		for _, found := range run.Ratios {
			m := Ratio{found.Of, found.To, found.Flows, found.Mpps}.measurement()
			if i := slices.IndexFunc(all, func(seen report.Measurement) bool { return seen.Name == m.Name }); i >= 0 {
				all[i].Runs = append(all[i].Runs, found.Mpps)
			} else {
				all = append(all, m)
			}
		}
	}
	return all
}

// Document returns the result as a document.
func (r *Result) Document(command string) *report.Document {
	d := &report.Document{Kind: "gate", Title: "Whether weir has become slower", Command: command, Started: r.first.Started,
		Machine: r.first.Machine, Notes: r.notices, Control: r.control(), Method: []string{
			fmt.Sprintf("weir bench forward measured these paths in runs of less than a minute. Only their ratios count. One run that is not more than %.0f %% under the recorded ratio is enough. A ratio has become slower if it is under that in %d runs.",
				100*r.margin, needed),
			"A run counts if its control holds: one path measured twice, as if it were two."}}
	table := report.Table{Columns: []report.Column{{Name: "ratio", Words: true}, {Name: "recorded"},
		{Name: "found"}, {Name: "verdict", Words: true, Concludes: true}}}
	for _, v := range r.recorded.Ratios {
		m, found, verdict := v.measurement(), "nothing", "not judged"
		if i := slices.IndexFunc(r.Rows, func(row compare.Row) bool { return row.Name == m.Name }); i >= 0 {
			row := r.Rows[i]
			found, verdict = list(row.B), r.sentence(&row)
			m.Runs = row.B
			d.Measurements = append(d.Measurements, m)
		}
		table.Rows = append(table.Rows, []string{v.name(), report.Figure(v.Mpps), found, verdict})
		d.Verdicts = append(d.Verdicts, fmt.Sprintf("%s: recorded %s, found %s: %s", v.name(), report.Figure(v.Mpps), found, verdict))
	}
	d.Sections = []report.Section{{Title: "Ratios",
		Text:   []string{fmt.Sprintf("Recorded on %s, Linux %s, %s.", r.recorded.CPU, r.recorded.Kernel, r.recorded.Recorded.Format(time.DateOnly))},
		Tables: []report.Table{table}}}
	return d
}

func (r *Result) sentence(row *compare.Row) string {
	switch row.Verdict {
	case compare.Held:
		return "fine"
	case compare.Regression:
		return fmt.Sprintf("SLOWER: %d runs, each over %.0f %% under it", len(row.B), r.margin*100)
	}
	return "not judged"
}

// control returns the worst control of the runs that count.
func (r *Result) control() *stats.Control {
	if len(r.runs) == 0 {
		c := stats.NewControl()
		c.Refuse("no run had a control that holds")
		return &c
	}
	worst := slices.MaxFunc(r.runs, func(a, b *forward.Report) int { return cmp.Compare(a.Control.Difference, b.Control.Difference) })
	return &worst.Control
}

// WriteText prints one line for each ratio, and the notices.
func (r *Result) WriteText(w io.Writer) error {
	lines := r.Document("").Verdicts
	for _, n := range r.notices {
		lines = append(lines, "notice: "+n)
	}
	if _, err := fmt.Fprintln(w, strings.Join(lines, "\n")); err != nil {
		return fmt.Errorf("print the gate's result: %w", err)
	}
	return nil
}

func list(values stats.Sample) string {
	var all []string
	for _, v := range values {
		all = append(all, report.Figure(v))
	}
	return strings.Join(all, ", ")
}
