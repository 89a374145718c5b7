package pppoe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/bench/cpu"
	"weir/internal/bench/paths"
	"weir/internal/bench/progress"
	"weir/internal/bench/report"
	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
	"weir/internal/host/hostinfo"
	"weir/internal/lab"
	"weir/internal/stats"
)

// What two cores have to forward with one receive queue, as a multiple of what one does, and what auto may lose.
const (
	spreadFloor = 1.3
	// busyFloor counts where a packet's work takes busyWork or more, in nanoseconds.
	busyFloor = 1.5
	busyWork  = 450
	autoFloor = 0.98
	// settleFor is how long shares may move before it counts.
	settleFor = 15 * time.Second
	// spreadBurst is how many frames the generator sends at a time: the most there are. It has as many pages for
	// those that other cores free; with fewer, each of these takes a new page, as no driver does.
	spreadBurst = 256
	// spreadDisturbance is the share of the cores' time that other programs may take.
	spreadDisturbance = 0.05
)

// spreadPaths are those that are measured. On the last one every packet meets the rules, as the first of a connection does.
var spreadPaths = []string{paths.WeirNAT, paths.WeirNATPPPoE, paths.WeirStateless}

// A way is one setting of set spread on a path.
type way struct {
	name, path, spread string
	mpps, lost         stats.Sample
	disordered         uint64
	foreign            float64
}

// Spread measures what one core forwards of frames that all come by one queue, and what two do.
func Spread(ctx context.Context, o Options) (d *report.Document, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	m, err := hostinfo.Describe()
	if err != nil {
		return nil, err
	}
	started := time.Now()
	b, err := testbed.Open(ctx, testbed.Options{Name: o.name, Program: o.Program, Offloads: lab.OffloadsOff})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if len(b.Cores) < 2 {
		return nil, errors.New("this machine has one core for it")
	}
	other := fmt.Sprintf("cores %d", b.Cores[1])
	var ways []*way
	for _, path := range spreadPaths {
		ways = append(ways, &way{name: path + ", one core", path: path, spread: "off"}, &way{name: path + ", two cores", path: path, spread: other},
			&way{name: path + ", auto", path: path, spread: "auto"}, &way{name: path + ", one core, again", path: path, spread: "off"})
	}
	p := progress.New(o.Progress, o.Runs*len(ways), o.SpreadEstimate())
	defer p.End()
	for round, w := range stats.Interleave(o.Runs, ways) {
		p.Step("%s, round %d of %d", w.name, round+1, o.Runs)
		if err := w.measure(ctx, b, &o); err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		p.Done(1)
	}
	return spreadDocument(&o, ways, m, started), nil
}

// SpreadEstimate returns about how long it takes.
func (o *Options) SpreadEstimate() time.Duration {
	n := time.Duration(len(spreadPaths))
	return time.Duration(o.Runs) * n * (4*(4*time.Second+o.Seconds) + 2*settleFor)
}

// measure measures once: frames come from the internet as fast as one core sends and forwards them.
func (y *way) measure(ctx context.Context, b *testbed.Testbed, o *Options) (err error) {
	p, err := paths.New(y.path, paths.WeirOptions{Hook: "xdp", Spread: y.spread})
	if err != nil {
		return err
	}
	w := &traffic.Setup{Testbed: b, Effect: p.Effect, Numbered: true, Case: traffic.Case{Frame: traffic.LeastFrame, Flows: o.Flows, Family: 4,
		Protocol: traffic.UDP, Cores: 1, Direction: traffic.Both, Sink: traffic.Far}}
	stop, err := p.Entries[0].Start(ctx, w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	base, err := w.MakeResults()
	if err != nil {
		return err
	}
	defer base.Close()
	w.Numbered = false // the checker knows no numbers
	send := func(f traffic.Frame) error {
		g, err := traffic.NewGenerator(w, f, w.AllFlows(), b.Cores[0], uint64(o.Flows))
		if err != nil {
			return err
		}
		return errors.Join(g.Run(uint32(o.Flows)), g.Close())
	}
	if _, err := w.Open(ctx, traffic.Opening{Passes: 3, All: true, Send: send}); err != nil {
		return err
	}
	w.Numbered = true
	sink, err := traffic.NewCountSink(w, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	g, err := traffic.NewPacedGenerator(w, w.Steady(true), w.SteadyFlows(1)[0], b.Cores[0], 0, traffic.Pacing{Burst: spreadBurst})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	return y.run(ctx, b, o, g, sink)
}

// run lets the shares settle, and counts.
func (y *way) run(ctx context.Context, b *testbed.Testbed, o *Options, g *traffic.Generator, sink *traffic.CountSink) error {
	const piece = 1 << 19
	longer := uint32(piece) // a second's: the core rests between two, while the kernel frees memory
	settle := settleFor
	if y.spread == "off" || o.quick {
		settle = time.Second / 2
	}
	rate := 0.0
	for begin := time.Now(); time.Since(begin) < settle; {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := time.Now()
		if err := g.Run(longer); err != nil {
			return err
		}
		rate = float64(longer) / time.Since(at).Seconds()
		longer = uint32(max(rate, piece))
	}
	sink.Settle()
	wrong := sink.Disordered()
	sink.Reset()
	before, err := cpu.Read(b.Cores[:2])
	if err != nil {
		return err
	}
	frames, at := uint32(max(rate*o.Seconds.Seconds(), piece)), time.Now()
	if err := g.Run(frames); err != nil {
		return err
	}
	took := time.Since(at).Seconds()
	after, err := cpu.Read(b.Cores[:2])
	if err != nil {
		return err
	}
	arrived, _, _ := sink.Read() // what has not arrived by now was not forwarded in this time
	sink.Settle()
	inTheEnd, _, _ := sink.Read()
	y.mpps = append(y.mpps, float64(arrived)/took/1e6)
	y.lost = append(y.lost, 1-float64(inTheEnd)/float64(frames))
	y.disordered += wrong + sink.Disordered()
	y.foreign = max(y.foreign, max(0, after.Foreign-before.Foreign)/(2*took))
	return nil
}

// spreadDocument is the report.
func spreadDocument(o *Options, ways []*way, m hostinfo.Machine, started time.Time) *report.Document {
	control := stats.NewControl()
	d := &report.Document{Kind: "pppoe-spread", Title: "What set spread is worth where all frames come by one queue", Command: o.Command, Version: o.Version, Started: started, Machine: m,
		Method: []string{
			"One core sends 64-byte frames from the internet as fast as it can, and receives them by one queue (veth on one core). So the generator's time is that core's, too. With two cores, set spread hands a part of the frames to the other one.",
			fmt.Sprintf("Before it counts, the same load has %v in which the daemon moves shares. Frames have numbers, and all that arrive are checked for their order, while shares move, too.", settleFor),
		}}
	t := report.Table{Columns: []report.Column{{Name: "path", Words: true}, {Name: "forwarded", Unit: "Mpps"}, {Name: "a packet's work on one core", Unit: "ns"}, {Name: "÷ one core"}, {Name: "floor"}, {Name: "lost", Unit: "%"}, {Name: "out of order"}, {Name: "verdict", Words: true, Concludes: true}}}
	one := map[string]*way{}
	for _, w := range ways {
		if w.spread == "off" && one[w.path] != nil {
			control.Add(w.path+" on one core", one[w.path].mpps, w.mpps)
		} else if w.spread == "off" {
			one[w.path] = w
		}
		if w.foreign > spreadDisturbance {
			control.Refuse(fmt.Sprintf("other programs took up to %.0f %% of the cores", 100*w.foreign))
		}
	}
	for _, w := range ways {
		alone := one[w.path].mpps.Median()
		ratio, work, floor := w.mpps.Median()/alone, 1000/alone, 0.0
		switch w.spread {
		case "auto":
			floor = autoFloor
		case "off":
		default:
			if floor = spreadFloor; work >= busyWork {
				floor = busyFloor
			}
		}
		wants, verdict := "–", "–"
		if floor > 0 {
			wants, verdict = fmt.Sprintf("≥ %.2f", floor), "holds"
			if ratio < floor {
				verdict = "missed"
			}
			d.Verdicts = append(d.Verdicts, fmt.Sprintf("%s: %.2f times what one core forwards (floor %.2f: %s), %d frames out of order. A packet's work is %s ns on one core, with what the generator takes.", w.name, ratio, floor, verdict, w.disordered, report.Figure(work)))
		}
		if w.disordered > 0 {
			verdict = "out of order"
		}
		t.Add(false, w.name, report.Figure(w.mpps.Median()), report.Figure(work), fmt.Sprintf("%.3f", ratio), wants, report.Figure(100*w.lost.Median()), fmt.Sprint(w.disordered), verdict)
		d.Measure(report.Higher, "Mpps", w.mpps, w.name)
	}
	d.Control = &control
	d.Sections = []report.Section{{Title: "Two cores, one queue", Tables: []report.Table{t}}}
	return d
}
