package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/examples"
	"weir/internal/bench/profile"
	"weir/internal/bench/progress"
	"weir/internal/bench/sample"
	"weir/internal/host/hostinfo"
	"weir/internal/stats"
	"weir/internal/units"
)

// setting is what all cases have in common.
type setting struct {
	options   *Options
	program   string // the weir to measure
	dir       string // what a run needs to know of one that was killed
	net       *network
	cores     []int // that may be used, in the order of use
	random    *rand.Rand
	report    *Report
	missing   map[string]string // why a path cannot run here at all
	conntrack conntrackLimits
	progress  *progress.Progress
	profiler  *profiler // of the next run
	retries   int       // see run
	// disturbed are the shares of time that were lost in runs that are void, but
	// that no attempt brought a better one for.
	disturbed []float64
	elsewhere float64 // the largest share of time that the other cores were busy
	done      int     // runs
}

// Forward measures forwarding: each path in each case, several times, in random
// order. It ends with an error at the first thing that cannot be set up, or that
// does not do to frames what it is measured for; what it built is removed in any
// case. Beside an error the report has what was measured until then; nil: nothing
// was. Only one benchmark runs at a time on a machine.
func Forward(ctx context.Context, o Options) (report *Report, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.name == "" {
		o.name = defaultName
	}
	if unix.Geteuid() != 0 {
		return nil, &missingError{"a benchmark needs root: it builds network namespaces and loads BPF programs"}
	}
	s, err := newSetting(&o)
	if err != nil {
		return nil, err
	}
	unlock, err := lock(s.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := s.cleanUp(); err != nil {
		return nil, err
	}
	if s.net, err = newNetwork(ctx, o.name); s.net != nil {
		defer func() { err = errors.Join(err, s.net.lab.Close()) }()
	}
	if err != nil {
		return nil, fmt.Errorf("build the benchmark's network: %w", err)
	}
	err = s.measure(ctx)
	if err != nil && len(s.report.Rows) == 0 {
		return nil, err
	}
	return s.report, err
}

func newSetting(o *Options) (*setting, error) {
	machine, err := hostinfo.Describe()
	if err != nil {
		return nil, err
	}
	cores, err := availableCores()
	if err != nil {
		return nil, err
	}
	s := &setting{
		options: o, program: o.Program, dir: filepath.Join("/run", o.name), cores: cores, missing: map[string]string{}, conntrack: machineConntrack(),
		random: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)),
		report: &Report{Command: o.Command, Version: o.Version, Started: time.Now().UTC().Truncate(time.Second), Machine: machine,
			Rules: map[string]string{"gateway.conf": examples.GatewayConf, "gateway.nft": examples.GatewayNft}},
	}
	if s.program == "" {
		s.program = "/proc/self/exe"
	}
	return s, nil
}

// cleanUp removes what a killed benchmark left behind. The network is removed
// when it is built anew.
func (s *setting) cleanUp() error {
	if err := s.conntrack.restore(s.dir); err != nil {
		return err
	}
	return stopLeftover(s, s.options.name+"-fw")
}

// measure measures all cases.
func (s *setting) measure(ctx context.Context) (err error) {
	cases := s.options.Cases()
	if s.uses(PathNft, PathNftNAT) {
		if why := nftMissing(ctx, s.net); why != "" {
			s.missing[PathNft], s.missing[PathNftNAT] = why, why
		}
	}
	if s.options.RaiseConntrack && len(s.missing) == 0 && s.uses(PathNft, PathNftNAT) {
		restore, err := s.conntrack.raise(s.dir, cases)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, restore()) }()
	}
	planned := s.options.Runs * (len(s.options.Paths) + 1) * len(cases)
	if !s.options.quick {
		s.retries = planned / 2
	}
	s.progress = progress.New(s.options.Progress, planned, s.options.Estimate())
	defer s.progress.End()
	for _, name := range Paths {
		if why := s.missing[name]; why != "" && s.uses(name) {
			s.skip(name, nil, why)
			s.progress.Drop(s.options.Runs * len(cases))
		}
	}
	s.report.Control = stats.NewControl()
	defer s.judgeDisturbance()
	for i, c := range cases {
		s.progress.Say("case %d of %d: %s", i+1, len(cases), c)
		if err := s.measureCase(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
	}
	if len(s.report.Rows) == 0 {
		return s.nothingMeasured()
	}
	return nil
}

// nothingMeasured says why there is no report.
func (s *setting) nothingMeasured() error {
	var why []string
	for _, skip := range s.report.Skipped {
		why = append(why, skip.Path+": "+skip.Reason)
	}
	return &missingError{"no path could be measured: " + strings.Join(why, "; ")}
}

// measureCase measures all paths in one case.
func (s *setting) measureCase(ctx context.Context, c Case) error {
	if c.Cores > len(s.cores) {
		s.skip("all", &c, fmt.Sprintf("this machine has %s for it", units.Plural(len(s.cores), "core")))
		s.progress.Drop(s.options.Runs * (len(s.options.Paths) + 1))
		return nil
	}
	all, err := s.prepare(ctx, c)
	if err != nil || len(all) == 0 {
		return err
	}
	control := s.control(all)
	entries := append(slices.Clone(all), control)
	for round, e := range stats.Interleave(s.random, s.options.Runs, entries) {
		s.progress.Step("%s, round %d of %d", e.path.name, round+1, s.options.Runs)
		if err := s.measureOnce(ctx, c, e); err != nil {
			s.concludeEarly(c, all, control)
			return fmt.Errorf("%s: %w", e.path.name, err)
		}
		s.progress.Done(1)
	}
	s.conclude(c, all, control)
	if s.options.Flame && s.report.Profile == nil {
		return s.profile(ctx, c, all[len(all)-1])
	}
	return nil
}

// prepare finds the paths that can run in a case, and the better flavour of
// those that have several.
func (s *setting) prepare(ctx context.Context, c Case) ([]*samples, error) {
	var all []*samples
	for _, name := range Paths {
		if !s.uses(name) || s.missing[name] != "" {
			continue
		}
		p, err := newPath(name, s.options.Hook)
		if err != nil {
			return nil, err
		}
		if why := s.tooSmall(p, c); why != "" {
			s.skip(name, &c, why)
			s.progress.Drop(s.options.Runs)
			continue
		}
		e := &samples{path: p}
		if e.flavour, err = s.chooseFlavour(ctx, c, p); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, e)
	}
	return all, nil
}

// tooSmall says why a path cannot hold the connections of a case.
func (s *setting) tooSmall(p *path, c Case) string {
	if p.name != PathNft && p.name != PathNftNAT {
		return ""
	}
	limit, err := s.conntrack.read()
	if err != nil {
		return err.Error()
	}
	s.report.Machine.Conntrack = &limit
	if limit.Max < c.needed() {
		return fmt.Sprintf("conntrack holds %s connections, this case has %s: --raise-conntrack makes room",
			units.Thousands(limit.Max), units.Thousands(c.needed()))
	}
	return ""
}

// chooseFlavour tries each flavour for a moment.
func (s *setting) chooseFlavour(ctx context.Context, c Case, p *path) (string, error) {
	if len(p.flavours) == 1 {
		return p.flavours[0].name, nil
	}
	const seconds = 0.25
	best, bestRate := "", 0.0
	for _, f := range p.flavours {
		res, err := s.runPath(ctx, c, p, f.name, seconds, nil)
		if err != nil {
			return "", fmt.Errorf("by %s: %w", f.name, err)
		}
		if res.mpps > bestRate {
			best, bestRate = f.name, res.mpps
		}
	}
	return best, nil
}

// control is the last path once more, under the same name.
func (s *setting) control(all []*samples) *samples {
	last := all[len(all)-1]
	return &samples{path: last.path, flavour: last.flavour}
}

func (s *setting) measureOnce(ctx context.Context, c Case, e *samples) error {
	res, err := s.runPath(ctx, c, e.path, e.flavour, s.options.Seconds.Seconds(), &e.record)
	if err != nil {
		return err
	}
	s.done++
	e.mpps = append(e.mpps, res.mpps)
	if res.newPerS > 0 {
		e.newPerS = append(e.newPerS, res.newPerS)
	}
	if res.split != nil {
		e.splits = append(e.splits, res.split)
	}
	s.elsewhere = max(s.elsewhere, res.elsewhere)
	if res.disturbed > disturbance {
		s.disturbed = append(s.disturbed, res.disturbed)
	}
	return nil
}

// runPath builds a path, measures it and takes it down.
func (s *setting) runPath(ctx context.Context, c Case, p *path, name string, seconds float64, record *sample.Record) (res result, err error) {
	if err := ctx.Err(); err != nil {
		return res, err
	}
	i := slices.IndexFunc(p.flavours, func(f flavour) bool { return f.name == name })
	w := &way{net: s.net, c: c, path: p}
	stop, err := p.flavours[i].start(ctx, s, w)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	r := &run{way: w, cores: s.cores[:c.Cores], others: s.cores[c.Cores:], seconds: seconds, retries: &s.retries, profile: s.profiler, record: record}
	if s.options.sampled {
		if r.sampler, err = profile.NewSampler(r.cores[0]); err != nil {
			return res, err
		}
		defer func() { err = errors.Join(err, r.sampler.Close()) }()
	}
	return r.measure(ctx)
}

// conclude turns what was measured in a case into rows.
func (s *setting) conclude(c Case, all []*samples, control *samples) {
	s.report.add(c, rows(c, all))
	s.report.measured = append(s.report.measured, caseSamples{c, all})
	s.report.Control.Add(control.path.name, all[len(all)-1].mpps, control.mpps)
}

// concludeEarly keeps what was measured of a case that did not come to its end.
func (s *setting) concludeEarly(c Case, all []*samples, control *samples) {
	all = slices.DeleteFunc(slices.Clone(all), func(e *samples) bool { return len(e.mpps) == 0 })
	if len(all) > 0 {
		s.conclude(c, all, control)
	}
}

func (s *setting) uses(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(s.options.Paths, n) })
}

func (s *setting) skip(name string, c *Case, why string) {
	s.report.Skipped = append(s.report.Skipped, Skip{name, c, why})
	s.progress.Say("skipped: %s: %s", name, why)
}

// judgeDisturbance refuses a verdict where runs had to be taken that are void.
func (s *setting) judgeDisturbance() {
	if s.elsewhere > quietElsewhere {
		s.report.Notes = append(s.report.Notes, fmt.Sprintf("the cores that were not measured were busy for up to %.0f %% of a run; "+
			"where two share one core's units, as threads or as a virtual machine's cores, that slows the other", s.elsewhere*100))
	}
	if len(s.disturbed) == 0 {
		return
	}
	s.report.Control.Refuse(fmt.Sprintf("in %d of %s the cores were idle or worked for other programs, for up to %.0f %% of the time",
		len(s.disturbed), units.Plural(s.done, "run"), slices.Max(s.disturbed)*100))
}

// missingError names a capability that the machine lacks.
type missingError struct{ what string }

func (e *missingError) Error() string { return e.what }

// MissingCapability tells the command line which exit status this is.
func (e *missingError) MissingCapability() bool { return true }
