package ladder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/bench/forward"
	"weir/internal/bench/iperf"
	"weir/internal/bench/paths"
	"weir/internal/bench/progress"
	"weir/internal/bench/report"
	"weir/internal/bench/sample"
	"weir/internal/bench/testbed"
	"weir/internal/host/hostinfo"
	"weir/internal/lab"
	"weir/internal/stats"
)

// ladder is one run of the benchmark.
type ladder struct {
	options  *Options
	testbed  *testbed.Testbed
	missing  map[string]string // why paths cannot run on this machine
	tool     *iperf.Tool
	progress *progress.Progress
	boxes    []*box
	figures  figures
	skipped  []report.Skip
	frames   *forward.Report // nil: not measured
	records  map[scene]*sample.Record
	cost     sample.Cost // cost of sampling
}

// Run climbs the ladder: every task several times in random order. It stops with an error
// if something cannot be set up or measured. It always removes what it built. With an
// error it also returns the report so far, or nil if nothing was measured.
func Run(ctx context.Context, o Options) (*report.Document, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	l := &ladder{options: &o, figures: newFigures(), records: map[scene]*sample.Record{}}
	started := time.Now().UTC().Truncate(time.Second)
	about, err := hostinfo.Describe()
	if err != nil {
		return nil, err
	}
	if l.tool, err = iperf.Find(ctx); err != nil {
		return nil, err
	}
	if o.has(PartFrames) {
		if l.frames, err = forward.Run(ctx, o.frames()); err != nil {
			err = fmt.Errorf("frames: %w", err)
		}
	}
	if err == nil {
		err = l.climb(ctx)
	}
	d := l.document()
	d.Started, d.Machine = started, about
	if err != nil && len(d.Measurements) == 0 {
		return nil, err
	}
	return d, err
}

// frames returns the options of the part that "weir bench forward" does.
func (o *Options) frames() forward.Options {
	f := forward.Defaults()
	f.Frames, f.Runs, f.Program, f.Progress = []int{64, 1518}, o.Runs, o.Program, o.Progress
	f.Paths = []string{paths.Generator, paths.Redirect}
	for _, r := range rungs {
		if r.path != "" && slices.Contains(o.Firewalls, r.firewall) {
			f.Paths = append(f.Paths, r.path)
		}
	}
	return f
}

func (l *ladder) climb(ctx context.Context) (err error) {
	l.testbed, err = testbed.Open(ctx, testbed.Options{Name: l.options.name, Topology: topology(), Offloads: lab.OffloadsOn,
		Program: l.options.Program})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.testbed.Close()) }()
	l.missing = paths.Missing(ctx, l.testbed, paths.All)
	l.plan()
	l.leaveOut()
	l.progress = progress.New(l.options.Progress, len(l.tasks())*l.options.Runs, l.options.Estimate())
	defer l.progress.End()
	for round, b := range stats.Interleave(l.options.Runs, l.boxes) {
		if err := l.in(ctx, b, round); err != nil {
			return err
		}
	}
	return nil
}

// leaveOut removes what this machine cannot do, and notes the reason.
func (l *ladder) leaveOut() {
	onePair := false
	if l.options.has(PartPairs) {
		if err := addSecondPair(l.testbed.Lab); err != nil {
			onePair = true
			l.skip("two pairs of hosts", err.Error())
		}
	}
	l.drop(func(t *task) bool { return t.pairs && onePair || l.missing[t.spot.rung.path] != "" })
	for _, r := range l.options.chosen() {
		if reason := l.missing[r.path]; reason != "" {
			l.skip(r.name, reason)
		}
	}
	for _, other := range elsewhere {
		l.skip(other.step, other.command+" measures it")
	}
}

func (l *ladder) skip(what, why string) {
	l.skipped = append(l.skipped, report.Skip{What: what, Reason: why})
}
