package forward

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/examples"
	"weir/internal/bench/paths"
	"weir/internal/bench/profile"
	"weir/internal/bench/progress"
	"weir/internal/bench/sample"
	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
	"weir/internal/host/hostinfo"
	"weir/internal/lab"
	"weir/internal/missing"
	"weir/internal/stats"
	"weir/internal/units"
)

// benchmark is what all cases share.
type benchmark struct {
	options  *Options
	testbed  *testbed.Testbed
	report   *Report
	missing  map[string]string // why a path cannot run on this machine
	progress *progress.Progress
	sampled  bool // the next run samples its first core
	retries  int  // see run
	// disturbed are the shares of lost time in invalid runs that no further attempt
	// replaced.
	disturbed []float64
	elsewhere float64 // largest busy share of the other cores' time
	taken     float64 // largest share of all cores' time that other programs had while paths took turns
	done      int     // finished runs
}

// Run measures forwarding: each path in each case, several times, in random order. It
// stops with an error if something cannot be set up, or if a path does not do to frames
// what it should. It always removes what it built. With an error it also returns the
// report so far, or nil if nothing was measured. Only one benchmark runs at a time on a
// machine.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	machine, err := hostinfo.Describe()
	if err != nil {
		return nil, err
	}
	b := &benchmark{options: &o,
		report: &Report{Command: o.Command, Version: o.Version, Started: time.Now().UTC().Truncate(time.Second), Machine: machine,
			Rules: map[string]string{"gateway.conf": examples.GatewayConf, "gateway.nft": examples.GatewayNft}}}
	if b.uses(paths.Queued...) {
		b.report.Rules["qos.conf"], b.report.Rules["htb.sh"] = paths.QueuesConf, paths.HTBScript
	}
	if b.uses(paths.PPPoE...) {
		b.report.Rules["pppoe.conf"] = paths.SessionConf()
	}
	if o.Turns > 1 {
		b.report.Turns, b.report.Against = o.Turns, o.Against
	}
	if b.testbed, err = testbed.Open(ctx, testbed.Options{Name: o.Name, Program: o.Program, Offloads: lab.OffloadsOff}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.testbed.Close()) }()
	err = b.measure(ctx)
	if err != nil && len(b.report.Rows) == 0 {
		return nil, err
	}
	return b.report, err
}

// measure measures all cases.
func (b *benchmark) measure(ctx context.Context) (err error) {
	cases := b.options.Cases()
	b.missing = paths.Missing(ctx, b.testbed, b.options.Paths)
	if b.options.RaiseConntrack && b.missing[paths.Nft] == "" && b.uses(paths.Nft, paths.NftNAT) {
		connections, buckets := 0, 0
		for _, c := range cases {
			connections, buckets = max(connections, 2*c.Flows, c.Needed()), max(buckets, 2*c.Flows)
		}
		restore, err := b.testbed.Conntrack.Raise(b.testbed.Folder, connections, buckets)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, restore()) }()
	}
	planned := b.options.Runs * (b.options.places() + 1) * len(cases)
	if !b.options.Quick {
		b.retries = planned / 2
	}
	b.progress = progress.New(b.options.Progress, planned, b.options.Estimate())
	defer b.progress.End()
	for _, name := range paths.Known {
		if why := b.missing[name]; why != "" && b.uses(name) {
			b.skip(name, nil, why)
			b.progress.Drop(b.options.Runs * len(cases))
		}
	}
	b.report.Control = stats.NewControl()
	defer b.checkDisturbance()
	if err := b.measureAll(ctx, cases); err != nil {
		return err
	}
	b.report.Scaling = b.report.scaling()
	if len(b.report.Rows) == 0 {
		return b.nothingMeasured()
	}
	return nil
}

// measureAll measures the cases one after the other, or, in turns, those together that
// differ in their cores alone.
func (b *benchmark) measureAll(ctx context.Context, cases []traffic.Case) error {
	if b.options.Turns > 1 {
		return b.measureTurns(ctx, cases)
	}
	for i, c := range cases {
		b.progress.Say("case %d of %d: %s", i+1, len(cases), c)
		if err := b.measureCase(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
	}
	return nil
}

// nothingMeasured returns why there is no report.
func (b *benchmark) nothingMeasured() error {
	var why []string
	for _, skip := range b.report.Skipped {
		why = append(why, skip.Path+": "+skip.Reason)
	}
	return missing.Errorf("no path could be measured: %s", strings.Join(why, "; "))
}

// measureCase measures all paths in one case.
func (b *benchmark) measureCase(ctx context.Context, c traffic.Case) error {
	all, err := b.prepare(ctx, c)
	if err != nil || len(all) == 0 {
		return err
	}
	control := b.control(all)
	entries := append(slices.Clone(all), control)
	for round, e := range stats.Interleave(b.options.Runs, entries) {
		b.progress.Step("%s, round %d of %d", e.path.Name, round+1, b.options.Runs)
		if err := b.measureOnce(ctx, c, e); err != nil {
			b.concludeEarly(c, all, control)
			return fmt.Errorf("%s: %w", e.path.Name, err)
		}
		b.progress.Done(1)
	}
	b.conclude(c, all, control)
	if b.options.Flame && b.report.Profile == nil {
		return b.profile(ctx, c, all[len(all)-1])
	}
	return nil
}

// prepare finds the paths that can run in a case, and the faster entry of those that have
// several.
func (b *benchmark) prepare(ctx context.Context, c traffic.Case) ([]*samples, error) {
	if c.Cores > len(b.testbed.Cores) {
		b.skip("all", &c, fmt.Sprintf("this machine has %s for it", units.Plural(len(b.testbed.Cores), "core")))
		b.progress.Drop(b.options.Runs * (b.options.places() + 1))
		return nil, nil
	}
	var all []*samples
	for _, name := range paths.Known {
		if !b.uses(name) || b.missing[name] != "" {
			continue
		}
		p, err := paths.New(name, paths.WeirOptions{Hook: b.options.Hook, Prefetch: b.options.Prefetch})
		if err != nil {
			return nil, err
		}
		if why := b.unfit(p, c); why != "" {
			b.skip(name, &c, why)
			b.progress.Drop(b.options.Runs)
			continue
		}
		e := &samples{path: p}
		if e.entry, err = b.chooseEntry(ctx, c, p); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, e)
		if b.options.Against != "" && ours(name) {
			all = append(all, e.by(b.options.Against))
		}
	}
	return all, nil
}

// unfit returns why a path cannot be measured in a case.
func (b *benchmark) unfit(p *paths.Path, c traffic.Case) string {
	if p.FromIPv6 && c.IPv6() {
		return "its frames are IPv4 at the far end: --family 4"
	}
	if p.InSession && c.IPv6() {
		return "the session has no IPv6 but link-local addresses: --family 4"
	}
	if p.Name != paths.Nft && p.Name != paths.NftNAT {
		return ""
	}
	limit, err := b.testbed.Conntrack.Read()
	if err != nil {
		return err.Error()
	}
	b.report.Machine.Conntrack = &limit
	if limit.Max < c.Needed() {
		return fmt.Sprintf("conntrack holds %s connections, this case has %s: --raise-conntrack makes room",
			units.Thousands(limit.Max), units.Thousands(c.Needed()))
	}
	return ""
}

// chooseEntry tries each entry of a path for a moment.
func (b *benchmark) chooseEntry(ctx context.Context, c traffic.Case, p *paths.Path) (string, error) {
	if len(p.Entries) == 1 {
		return p.Entries[0].Name, nil
	}
	const seconds = 0.25
	best, bestRate := "", 0.0
	for _, f := range p.Entries {
		res, err := b.runPath(ctx, c, p, f.Name, seconds, nil)
		if err != nil {
			return "", fmt.Errorf("by %s: %w", f.Name, err)
		}
		if res.mpps > bestRate {
			best, bestRate = f.Name, res.mpps
		}
	}
	return best, nil
}

// control returns the last path once more, under the same name.
func (b *benchmark) control(all []*samples) *samples {
	last := all[len(all)-1]
	return &samples{path: last.path, entry: last.entry, program: last.program}
}

func (b *benchmark) measureOnce(ctx context.Context, c traffic.Case, e *samples) error {
	res, err := b.runPath(ctx, c, e.path, e.entry, b.options.Seconds.Seconds(), &e.record)
	if err != nil {
		return err
	}
	b.done++
	e.mpps = append(e.mpps, res.mpps)
	if res.newPerS > 0 {
		e.newPerS = append(e.newPerS, res.newPerS)
	}
	if res.split != nil {
		e.splits = append(e.splits, res.split)
	}
	b.elsewhere = max(b.elsewhere, res.elsewhere)
	if res.disturbed > disturbance {
		b.disturbed = append(b.disturbed, res.disturbed)
	}
	return nil
}

// runPath builds a path, measures it and takes it down.
func (b *benchmark) runPath(ctx context.Context, c traffic.Case, p *paths.Path, name string, seconds float64, record *sample.Record) (res result, err error) {
	if err := ctx.Err(); err != nil {
		return res, err
	}
	f, err := p.Entry(name)
	if err != nil {
		return res, err
	}
	r := b.newRun(b.testbed, c, p)
	r.seconds, r.record = seconds, record
	stop, err := f.Start(ctx, r.setup)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if b.options.Split || b.sampled {
		if r.sampler, err = profile.NewSampler(r.cores[0]); err != nil {
			return res, err
		}
		defer func() { err = errors.Join(err, r.sampler.Close()) }()
	}
	if res, err = r.measure(ctx); err != nil || p.Counts == nil {
		return res, err
	}
	return res, counted(ctx, r.setup, p, r.sent, countedWithin)
}

// newRun returns a run of a path in a lab.
func (b *benchmark) newRun(bed *testbed.Testbed, c traffic.Case, p *paths.Path) *run {
	return &run{setup: &traffic.Setup{Testbed: bed, Case: c, Effect: p.Effect, Grows: b.options.Grows},
		cores: bed.Cores[:c.Cores], others: bed.Cores[c.Cores:], retries: &b.retries, judged: b.options.judges(strings.TrimSuffix(p.Name, otherName), c), least: firstFrames}
}

// conclude turns the measurements of a case into rows.
func (b *benchmark) conclude(c traffic.Case, all []*samples, control *samples) {
	b.report.add(c, rows(c, all))
	b.report.Control.Add(control.path.Name, all[len(all)-1].mpps, control.mpps)
}

// concludeEarly keeps the measurements of a case that did not finish.
func (b *benchmark) concludeEarly(c traffic.Case, all []*samples, control *samples) {
	all = slices.DeleteFunc(slices.Clone(all), func(e *samples) bool { return len(e.mpps) == 0 })
	if len(all) > 0 {
		b.conclude(c, all, control)
	}
}

func (b *benchmark) uses(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(b.options.Paths, n) })
}

func (b *benchmark) skip(name string, c *traffic.Case, why string) {
	b.report.Skipped = append(b.report.Skipped, Skip{name, c, why})
	b.progress.Say("skipped: %s: %s", name, why)
}

// checkDisturbance refuses a verdict if it had to use invalid runs.
func (b *benchmark) checkDisturbance() {
	if b.elsewhere > quietElsewhere {
		b.report.Notes = append(b.report.Notes, fmt.Sprintf("the cores that were not measured were busy for up to %.0f %% of a run; "+
			"where two share one core's units, as threads or as a virtual machine's cores, that slows the other", b.elsewhere*100))
	}
	if b.taken > disturbance {
		b.report.Notes = append(b.report.Notes, fmt.Sprintf("other programs, with weir's own daemons, had up to %.0f %% of the cores' time: rates may be too low by that; "+
			"ratios hold, as all paths took turns meanwhile", b.taken*100))
	}
	if len(b.disturbed) == 0 {
		return
	}
	b.report.Control.Refuse(fmt.Sprintf("in %d of %s the cores were idle or worked for other programs, for up to %.0f %% of the time",
		len(b.disturbed), units.Plural(b.done, "run"), slices.Max(b.disturbed)*100))
}
