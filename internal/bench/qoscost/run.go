package qoscost

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/bench/forward"
	"weir/internal/bench/paths"
	"weir/internal/bench/progress"
	"weir/internal/bench/report"
	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
	"weir/internal/lab"
	"weir/internal/stats"
)

// shares are the rates that are offered, as parts of what weir forwards without queues.
var shares = []float64{0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1}

const (
	// lineShare is the line's rate in the story, as a part of what one core of the kernel
	// forwards without queues: it carries the line easily.
	lineShare = 0.8
	// lineBits are what the line and its queues count for a frame of 64 bytes: with
	// preamble and gap.
	lineBits = 84 * 8
)

// A story is what one path does on some cores.
type story struct {
	path  string
	cores int
	rates []rate
	line  stats.Sample // Mpps at the line's rate, with queues of that rate
	load  stats.Sample // busy share of the cores then
}

// A rate is what was measured at one of the offered rates.
type rate struct {
	offered   float64 // Mpps
	forwarded stats.Sample
	busy      stats.Sample
}

// Report is what queues cost.
type Report struct {
	Forward *forward.Report
	Line    float64 // Mpps
	stories []*story
	notes   []string
}

// Run measures what queues cost a frame, and tells the story.
func Run(ctx context.Context, o Options) (*report.Document, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	f, err := forward.Run(ctx, o.forward())
	if f == nil {
		return nil, err
	}
	r := &Report{Forward: f}
	if err == nil {
		err = r.tell(ctx, &o)
	}
	return r.document(), err
}

// median returns what forward measured; 0: nothing.
func (r *Report) median(path string, cores int) (mpps float64, entry string) {
	for _, row := range r.Forward.Rows {
		if row.Path == path && row.Cores == cores {
			return row.Mpps.Median(), row.Entry
		}
	}
	return 0, ""
}

// tell measures the story's paths in turn, several times.
func (r *Report) tell(ctx context.Context, o *Options) (err error) {
	kernel, _ := r.median(paths.Kernel, 1)
	if kernel == 0 {
		return errors.New("the kernel's path was not measured: there is no line to compare")
	}
	r.Line = stats.Round(kernel * lineShare)
	for _, cores := range o.Cores {
		if weir, _ := r.median(paths.Weir, cores); weir > 0 {
			r.stories = append(r.stories, r.plan(cores, weir)...)
		}
	}
	bed, err := testbed.Open(ctx, testbed.Options{Name: o.name, Program: o.Program, Offloads: lab.OffloadsOff})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	p := progress.New(o.Progress, o.Runs*len(r.stories), o.Estimate()/2)
	defer p.End()
	disturbed := stats.Sample{}
	for round, s := range stats.Interleave(o.Runs, r.stories) {
		p.Step("%s at rising rates, %d cores, round %d of %d", s.path, s.cores, round+1, o.Runs)
		lost, err := r.once(ctx, bed, s, o)
		if err != nil {
			return fmt.Errorf("%s at rising rates: %w", s.path, err)
		}
		disturbed = append(disturbed, lost)
		p.Done(1)
	}
	if most := disturbed.Median(); most > 0.02 {
		r.notes = append(r.notes, fmt.Sprintf("while rates rose, other programs took %.0f %% of the cores in half of the runs: CPU is too high by that", most*100))
	}
	return nil
}

// plan lists the paths on some cores with the rates that each is offered.
func (r *Report) plan(cores int, most float64) (all []*story) {
	for _, path := range told {
		limit := most
		if path != paths.Generator {
			limit, _ = r.median(path, cores)
		}
		if limit == 0 {
			continue // it cannot run here
		}
		s := &story{path: path, cores: cores}
		for _, share := range shares {
			s.rates = append(s.rates, rate{offered: most * share})
			if most*share > 1.3*limit {
				break // it is full
			}
		}
		all = append(all, s)
	}
	return all
}

// once offers all rates to a path with ample queues, and then the line's rate to queues of
// that rate. It returns what other programs took of the cores.
func (r *Report) once(ctx context.Context, bed *testbed.Testbed, s *story, o *Options) (disturbed float64, err error) {
	_, entry := r.median(s.path, s.cores)
	options := forward.LoadOptions{Hook: "xdp", Entry: entry, Frame: traffic.LeastFrame, Flows: o.Flows, Cores: s.cores, Back: true, Seconds: o.Seconds}
	offered := make([]float64, len(s.rates))
	for i := range s.rates {
		offered[i] = s.rates[i].offered * 1e6
	}
	line := []float64{r.Line * 1e6}
	queued := s.path == paths.KernelHTB || s.path == paths.WeirQoS
	if !queued { // the line is one more rate
		offered = append(offered, line...)
	}
	found, err := forward.Loads(ctx, bed, s.path, offered, options)
	if err != nil {
		return 0, err
	}
	for i := range s.rates {
		s.rates[i].forwarded = append(s.rates[i].forwarded, found[i].Forwarded/1e6)
		s.rates[i].busy = append(s.rates[i].busy, found[i].Busy)
		disturbed = max(disturbed, found[i].Disturbed)
	}
	if queued {
		options.LineRate = uint64(r.Line * 1e6 * lineBits)
		if found, err = forward.Loads(ctx, bed, s.path, line, options); err != nil {
			return 0, err
		}
	}
	at := found[len(found)-1]
	s.line, s.load = append(s.line, at.Forwarded/1e6), append(s.load, at.Busy)
	return disturbed, nil
}
