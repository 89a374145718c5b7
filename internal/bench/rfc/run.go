package rfc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"weir/internal/bench/progress"
	"weir/internal/bench/report"
	"weir/internal/bench/sample"
	"weir/internal/host/hostinfo"
	"weir/internal/stats"
)

// disturbance is the share of time that other programs may take from the cores of
// generator and firewall before a note names it.
const disturbance = 0.02

// outcome is the result of all runs of one path in one variant of a test.
type outcome struct {
	path string
	runs []finding // valid runs
	// invalid are the reasons of the runs that do not count.
	invalid []string
	record  *sample.Record // of the last run
	found   stats.Sample   // result of the first search of each run
}

// tested is one variant of a test with the outcomes of all paths.
type tested struct {
	test    *Test
	variant int
	paths   []*outcome
	again   *outcome // the last path, measured again
}

// Run tests all paths by a standard and makes the report. It stops with an error if
// something cannot be set up, or if a path treats frames wrongly. It always removes what
// it built. With an error it also returns the report so far, or nil if nothing was
// measured.
func Run(ctx context.Context, o Options) (d *report.Document, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	s, err := Named(o.Standard)
	if err != nil {
		return nil, err
	}
	m, err := hostinfo.Describe()
	if err != nil {
		return nil, err
	}
	started := time.Now()
	b, err := openBench(ctx, &o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	r := &runner{bench: b, o: &o}
	if failed := r.tests(ctx, s.chosen(&o)); failed != nil {
		err = failed
		if r.done = slices.DeleteFunc(r.done, func(t *tested) bool { return len(t.measured()) == 0 }); len(r.done) == 0 {
			return nil, err
		}
	}
	d = &report.Document{Kind: s.Name, Title: s.Title, Command: o.Command, Version: o.Version, Machine: m,
		Started: started.UTC().Truncate(time.Second), Sketch: !o.Full || o.Runs < report.LeastRuns, Skipped: r.skipped}
	r.describe(d, &s)
	return d, err
}

type runner struct {
	bench    *bench
	o        *Options
	progress *progress.Progress
	done     []*tested
	skipped  []report.Skip
	foreign  float64
	cost     sample.Cost // cost of sampling
}

// tests measures one test after the other.
func (r *runner) tests(ctx context.Context, tests []Test) error {
	steps := 0
	for i := range tests {
		steps += tests[i].measurements(r.o)
	}
	r.progress = progress.New(r.o.Progress, steps, r.o.Estimate())
	defer r.progress.End()
	for i := range tests {
		if err := r.test(ctx, &tests[i]); err != nil {
			return fmt.Errorf("%s: %w", tests[i].Name, err)
		}
	}
	return nil
}

// test runs one test in all of its variants.
func (r *runner) test(ctx context.Context, t *Test) error {
	if t.missing != nil {
		if why := t.missing(); why != "" {
			r.skip(t.Name, why)
			r.progress.Drop(t.measurements(r.o))
			return nil
		}
	}
	paths := r.testable(t)
	if len(paths) == 0 {
		r.progress.Drop(t.measurements(r.o))
		return nil
	}
	r.progress.Drop((len(t.suitable(r.o)) - len(paths)) * len(t.variantsOf(r.o)) * r.o.Runs)
	for _, variant := range t.variantsOf(r.o) {
		if err := r.variant(ctx, t, variant, paths); err != nil {
			return err
		}
	}
	return nil
}

// testable returns the paths that can be tested here.
func (r *runner) testable(t *Test) (paths []string) {
	for _, path := range r.o.Paths {
		why := r.bench.missing[path]
		if why == "" && t.unsuitable != nil {
			why = t.unsuitable(path)
		}
		if why != "" {
			r.skip(t.Name+" of "+path, why)
			continue
		}
		paths = append(paths, path)
	}
	return paths
}

func (r *runner) skip(what, why string) {
	r.skipped = append(r.skipped, report.Skip{What: what, Reason: why})
	r.progress.Say("skipped: %s: %s", what, why)
}

func (r *runner) variant(ctx context.Context, t *Test, variant int, paths []string) error {
	done := &tested{test: t, variant: variant}
	for _, path := range paths {
		done.paths = append(done.paths, &outcome{path: path})
	}
	done.again = &outcome{path: paths[len(paths)-1]}
	r.done = append(r.done, done)
	entries := append(append([]*outcome{}, done.paths...), done.again)
	for _, e := range stats.Interleave(r.o.Runs, entries) {
		r.progress.Step("%s, %s", t.title(variant), e.path)
		r.bench.record, r.bench.earlier = &sample.Record{}, &e.found
		f, err := t.measure(ctx, r.bench, e.path, variant)
		if err != nil {
			return fmt.Errorf("%s: %w", e.path, err)
		}
		e.record = r.bench.record
		r.cost.Add(e.record.Cost)
		r.foreign = max(r.foreign, f.foreign)
		if f.invalid == "" && !f.whole() {
			f.invalid = "too little was seen to say anything"
		}
		if f.invalid != "" {
			e.invalid = append(e.invalid, f.invalid)
		} else {
			e.runs = append(e.runs, f)
		}
		r.progress.Done(1)
	}
	return nil
}

// whole reports whether every figure is a number.
func (f *finding) whole() bool {
	return len(f.figures) > 0 && !slices.ContainsFunc(f.figures, func(v figure) bool { return math.IsNaN(v.value) || math.IsInf(v.value, 0) })
}

// sample returns the values of a figure in all runs.
func (o *outcome) sample(figure int) (s stats.Sample) {
	for _, f := range o.runs {
		s = append(s, f.figures[figure].value)
	}
	return s
}

// resolution returns the largest step in which a figure was found.
func (o *outcome) resolution(figure int) (step float64) {
	for _, f := range o.runs {
		step = max(step, f.figures[figure].step)
	}
	return step
}

// atLeast reports whether something other than the path limited a figure in any run.
func (o *outcome) atLeast(figure int) bool {
	return slices.ContainsFunc(o.runs, func(f finding) bool { return f.figures[figure].bound })
}

// limit returns the limit in most runs. "" means the path.
func (o *outcome) limit() string {
	limited, who := 0, ""
	for _, f := range o.runs {
		if f.limit != "" {
			limited, who = limited+1, f.limit
		}
	}
	if 2*limited <= len(o.runs) {
		return ""
	}
	return who
}
