package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"weir/internal/bench/profile"
	"weir/internal/stats"
)

// StagesOptions say in which cases the stages are measured.
type StagesOptions struct {
	Flows    []int
	Runs     int
	Seconds  time.Duration // of steady traffic in each run
	Command  string
	Program  string // the weir to measure; "": the one that runs
	Progress io.Writer

	name  string
	quick bool
}

// StagesDefaults take two minutes.
func StagesDefaults() StagesOptions {
	return StagesOptions{Flows: []int{1000}, Runs: 5, Seconds: time.Second}
}

func (o *StagesOptions) forward() Options {
	f := Defaults()
	f.Paths = []string{PathGenerator, PathWeir, PathWeirNAT}
	f.Flows, f.Runs, f.Seconds = o.Flows, o.Runs, o.Seconds
	f.Command, f.Program, f.Progress, f.name, f.quick, f.sampled = o.Command, o.Program, o.Progress, o.name, o.quick, true
	return f
}

// Check tells the first thing that is wrong with the options.
func (o *StagesOptions) Check() error { f := o.forward(); return f.Check() }

// Estimate is about how long it takes.
func (o *StagesOptions) Estimate() time.Duration { f := o.forward(); return f.Estimate() }

// StagesReport is what each stage of a packet's way costs.
type StagesReport struct {
	report *Report
	Paths  []PathStages
}

// PathStages are the stages of one path in one case.
type PathStages struct {
	Path   string
	Flows  int
	Total  stats.Sample            // ns of a frame, the benchmark's own part as well
	Stages map[string]stats.Sample // ns of a frame by stage, of all of profile.Stages and profile.Harness
	Net    float64                 // ns, the total without the generator path's
}

// Stages measures what each stage of the packet path costs: the program that
// runs, as it is, sampled while frames are forwarded.
func Stages(ctx context.Context, o StagesOptions) (*StagesReport, error) {
	r, err := Forward(ctx, o.forward())
	if err != nil {
		return nil, err
	}
	s := &StagesReport{report: r}
	for _, m := range r.measured {
		base := 0.0
		for _, e := range m.all {
			if e.path.name == PathGenerator {
				base = nanoseconds(m.c, e.mpps)
				continue
			}
			p := PathStages{Path: e.path.name, Flows: m.c.Flows, Stages: map[string]stats.Sample{}, Net: nanoseconds(m.c, e.mpps) - base}
			for i, split := range e.splits {
				p.Total = append(p.Total, 1000/e.mpps[i])
				for _, stage := range everyStage() {
					p.Stages[stage] = append(p.Stages[stage], split[stage])
				}
			}
			s.Paths = append(s.Paths, p)
		}
	}
	if len(s.Paths) == 0 {
		return nil, errors.New("no path of weir was measured")
	}
	return s, nil
}

func everyStage() []string {
	return append(append([]string(nil), profile.Stages...), profile.Harness...)
}

// own is the sum of weir's stages in each run.
func (p *PathStages) own() stats.Sample {
	sum := make(stats.Sample, len(p.Total))
	for _, stage := range profile.Stages {
		for i, ns := range p.Stages[stage] {
			sum[i] += ns
		}
	}
	return sum
}

// leastSamples are those of a run below which shares are chance.
const leastSamples = 50

// splitFrame shares the time of a frame out to the stages, as the samples are.
func splitFrame(res result) (map[string]float64, error) {
	m, err := profile.NewMap()
	if err != nil {
		return nil, err
	}
	if len(res.stacks) < leastSamples {
		return nil, fmt.Errorf("only %d samples of the core were taken: the kernel's timer does not sample it", len(res.stacks))
	}
	split := map[string]float64{}
	for stage, n := range m.Split(res.stacks) {
		split[stage] = 1000 / res.mpps * float64(n) / float64(len(res.stacks))
	}
	return split, nil
}

// runSampled runs the generators while the core is sampled, if anybody wants it.
func (r *run) runSampled(gs []*generator, frames []uint32) ([]profile.Stack, error) {
	if r.sampler == nil {
		return nil, runAll(gs, frames)
	}
	if err := r.sampler.Start(); err != nil {
		return nil, err
	}
	err := runAll(gs, frames)
	stacks, lost, stopping := r.sampler.Stop()
	if err := errors.Join(err, stopping); err != nil {
		return nil, err
	}
	if lost > len(stacks)/100 {
		return nil, fmt.Errorf("sample the core: %d of %d samples were lost", lost, lost+len(stacks))
	}
	return stacks, nil
}
