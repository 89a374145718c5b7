package stages

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"weir/internal/bench/forward"
	"weir/internal/bench/option"
	"weir/internal/bench/paths"
	"weir/internal/bench/profile"
	"weir/internal/stats"
)

// Options choose the cases in which the stages are measured.
type Options struct {
	Paths    []string // of weir
	Flows    []int
	Runs     int
	Seconds  time.Duration // steady traffic in each run
	Command  string
	Program  string // the weir to measure; "": the running one
	Progress io.Writer

	name  string
	quick bool
}

// Defaults take two minutes.
func Defaults() Options {
	return Options{Paths: []string{paths.Weir, paths.WeirNAT}, Flows: []int{1000}, Runs: 5, Seconds: time.Second}
}

func (o *Options) forward() forward.Options {
	f := forward.Defaults()
	f.Paths = append([]string{paths.Generator}, o.Paths...)
	f.Flows, f.Runs, f.Seconds = o.Flows, o.Runs, o.Seconds
	f.Command, f.Program, f.Progress, f.Name, f.Quick, f.Split = o.Command, o.Program, o.Progress, o.name, o.quick, true
	return f
}

// Check returns the first error in the options.
func (o *Options) Check() error {
	f := o.forward()
	return cmp.Or(option.Each("--paths", o.Paths, func(p string) bool { return strings.HasPrefix(p, paths.Weir) }, "paths of weir"), f.Check())
}

// Estimate returns about how long it takes.
func (o *Options) Estimate() time.Duration { f := o.forward(); return f.Estimate() }

// Report is the cost of each stage of a packet's way.
type Report struct {
	report *forward.Report
	Paths  []PathStages
}

// PathStages are the stages of one path in one case.
type PathStages struct {
	Path   string
	Flows  int
	Total  stats.Sample            // ns of a frame, including the benchmark's own part
	Stages map[string]stats.Sample // ns of a frame for each of profile.Stages and profile.Harness
	Net    float64                 // ns, the total without the generator path
}

// Run measures the cost of each stage of the packet path. It samples the unchanged
// program while frames are forwarded.
func Run(ctx context.Context, o Options) (*Report, error) {
	r, err := forward.Run(ctx, o.forward())
	if err != nil {
		return nil, err
	}
	s := &Report{report: r}
	for _, row := range r.Rows {
		if row.Path == paths.Generator || row.NetNS == nil {
			continue
		}
		p := PathStages{Path: row.Path, Flows: row.Flows, Stages: map[string]stats.Sample{}, Net: *row.NetNS}
		for i, split := range row.Splits {
			p.Total = append(p.Total, 1000/row.Mpps[i])
			for _, stage := range everyStage() {
				p.Stages[stage] = append(p.Stages[stage], split[stage])
			}
		}
		s.Paths = append(s.Paths, p)
	}
	if len(s.Paths) == 0 {
		return nil, errors.New("no path of weir was measured")
	}
	return s, nil
}

func everyStage() []string {
	return append(append([]string(nil), profile.Stages...), profile.Harness...)
}

// own returns the sum of weir's stages in each run.
func (p *PathStages) own() stats.Sample {
	sum := make(stats.Sample, len(p.Total))
	for _, stage := range profile.Stages {
		for i, ns := range p.Stages[stage] {
			sum[i] += ns
		}
	}
	return sum
}
