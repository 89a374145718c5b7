package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"weir/internal/bench/forward"
	"weir/internal/bench/paths"
	"weir/internal/host/hostinfo"
	"weir/internal/stats"
	"weir/internal/units"
)

const (
	// margin is the share by which a ratio may lie under the recorded one.
	margin = 0.15
	// foreignMargin is that on a CPU without a record: prices of calls and of
	// memory differ so much between CPUs that weir : redirect was 0.69 on one
	// and 0.82 on another.
	foreignMargin = 0.30
	// needed runs, all under, make a regression.
	needed = 3
	// attempts are the runs that are made in all; one whose control fails counts
	// for nothing.
	attempts = 4
)

// watched tells which ratios the gate records: weir's distance from the limit of
// the machine, and from what it is to replace.
func watched(r Ratio) bool {
	return r.Of == paths.Weir && r.To == paths.Redirect || r.Of == paths.WeirNAT && r.To == paths.NftNAT
}

// Options of one run: under a minute.
func options(progress io.Writer) forward.Options {
	o := forward.Defaults()
	o.Paths = []string{paths.Redirect, paths.NftNAT, paths.Weir, paths.WeirNAT}
	o.Flows, o.Runs, o.Seconds = []int{1000}, 5, 300*time.Millisecond
	o.Progress = progress
	return o
}

// Result is what the gate says.
type Result struct {
	Started  time.Time
	Machine  hostinfo.Machine
	Recorded Record
	SameCPU  bool
	Margin   float64  // share
	Runs     []Run    // with a control that holds
	Notices  []string // what kept it from judging, or from judging well
	Verdicts []Verdict
	OK       bool // nothing is proven to be slower
}

// Run are the ratios of one run.
type Run struct {
	Ratios  []Ratio
	Control stats.Control
}

// Verdict is what is said of one ratio.
type Verdict struct {
	Ratio
	Found stats.Sample // in each run
	// State: Fine, Slower or Open.
	State string
}

// States of a ratio.
const (
	Fine   = "fine"   // a run was not under the margin
	Slower = "slower" // as many runs as are needed were
	Open   = "open"   // too few runs
)

// measure makes one run.
type measure func(context.Context) (*forward.Report, error)

// Watch measures until it is sure: one run is enough where nothing is slower.
func Watch(ctx context.Context, f *File, progress io.Writer) (*Result, error) {
	o := options(progress)
	return watch(ctx, f, func(ctx context.Context) (*forward.Report, error) { return forward.Run(ctx, o) })
}

func watch(ctx context.Context, f *File, one measure) (*Result, error) {
	r := &Result{OK: true}
	var failed []error
	for range attempts {
		report, err := one(ctx)
		if err != nil && (ctx.Err() != nil || isMissing(err)) {
			return nil, err
		}
		if err != nil {
			failed = append(failed, err)
			r.notice("a run does not count: %v", err)
			continue
		}
		if r.Started.IsZero() {
			r.begin(f, report)
		}
		if err := r.complete(report); err != nil {
			return nil, err
		}
		if !report.Control.OK {
			r.notice("a run does not count: its control failed: %s", report.Control.Why)
			continue
		}
		r.take(report)
		if r.judge() {
			return r, nil
		}
	}
	if len(failed) == attempts {
		return nil, errors.Join(failed...)
	}
	r.judge()
	r.notice("not judged: %s of %d runs had a control that holds, %d are needed", units.Thousands(len(r.Runs)), attempts, needed)
	return r, nil
}

// isMissing tells that the machine lacks what a run needs, and always will.
func isMissing(err error) bool {
	var missing interface{ MissingCapability() bool }
	return errors.As(err, &missing)
}

func (r *Result) begin(f *File, report *forward.Report) {
	r.Started, r.Machine = report.Started, report.Machine
	r.Recorded, r.SameCPU = f.For(r.Machine.CPU)
	r.Margin = margin
	if !r.SameCPU {
		r.Margin = foreignMargin
		r.notice("this CPU (%s) has no record; the one of %s is compared with, at %.0f %%. weir bench gate --record makes one",
			r.Machine.CPU, r.Recorded.CPU, foreignMargin*100)
	}
}

// complete refuses a run without one of the ratios that it shall be judged by:
// a gate that measures nothing would hold back nothing.
func (r *Result) complete(report *forward.Report) error {
	for _, s := range report.Skipped {
		if slices.ContainsFunc(r.Recorded.Ratios, func(v Ratio) bool { return s.Path == v.Of || s.Path == v.To }) {
			return fmt.Errorf("%s could not be measured: %s", s.Path, s.Reason)
		}
	}
	for _, v := range r.Recorded.Ratios {
		if !slices.ContainsFunc(report.Ratios, func(found forward.Ratio) bool { return v.is(found) }) {
			return fmt.Errorf("%s at %s flows is recorded, but no run measures it: record anew with weir bench gate --record",
				v.Name(), units.Thousands(v.Flows))
		}
	}
	return nil
}

func (r *Result) notice(format string, args ...any) {
	r.Notices = append(r.Notices, fmt.Sprintf(format, args...))
}

func (r *Result) take(report *forward.Report) {
	run := Run{Control: report.Control}
	for _, found := range report.Ratios {
		run.Ratios = append(run.Ratios, Ratio{Of: found.Of, To: found.To, Flows: found.Flows, Mpps: found.Mpps})
	}
	r.Runs = append(r.Runs, run)
}

// judge tells whether every ratio that was measured has a verdict.
func (r *Result) judge() (decided bool) {
	r.Verdicts, r.OK, decided = nil, true, true
	for _, recorded := range r.Recorded.Ratios {
		v := Verdict{Ratio: recorded, State: Open}
		for _, run := range r.Runs {
			for _, found := range run.Ratios {
				if found.Of == recorded.Of && found.To == recorded.To && found.Flows == recorded.Flows {
					v.Found = append(v.Found, found.Mpps)
				}
			}
		}
		v.judge(r.Margin)
		r.OK = r.OK && v.State != Slower
		decided = decided && v.State != Open
		r.Verdicts = append(r.Verdicts, v)
	}
	return decided
}

func (v *Verdict) judge(margin float64) {
	for _, found := range v.Found {
		if found >= v.Mpps*(1-margin) {
			v.State = Fine
			return
		}
	}
	if len(v.Found) >= needed {
		v.State = Slower
	}
}

// errNoisy says that a machine is too restless to record anything.
var errNoisy = errors.New("the control failed in too many runs: record on a quiet machine")

// Measure makes a record of this machine.
func Measure(ctx context.Context, progress io.Writer) (Record, error) {
	o := options(progress)
	return record(ctx, func(ctx context.Context) (*forward.Report, error) { return forward.Run(ctx, o) })
}

func record(ctx context.Context, one measure) (Record, error) {
	var runs []*forward.Report
	for range attempts {
		report, err := one(ctx)
		if err != nil {
			return Record{}, err
		}
		if report.Control.OK {
			runs = append(runs, report)
		}
		if len(runs) == needed {
			return complete(recordOf(runs))
		}
	}
	return Record{}, errNoisy
}

// complete refuses a record that lacks a ratio.
func complete(r Record) (Record, error) {
	if len(r.Ratios) != 2 {
		return r, fmt.Errorf("record: %d of 2 ratios could be measured: is nft here?", len(r.Ratios))
	}
	return r, nil
}
