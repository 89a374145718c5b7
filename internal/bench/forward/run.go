package forward

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"weir/internal/bench/cpu"
	"weir/internal/bench/paths"
	"weir/internal/bench/profile"
	"weir/internal/bench/sample"
	"weir/internal/bench/traffic"
	"weir/internal/units"
)

const (
	// firstFrames is what a generator sends to find the speed of a path.
	firstFrames = 1 << 16
	// From manyFlows on, a path may change how it works. weir decides that once a
	// second by the number of its connections: a run waits for the decision.
	manyFlows = 32 << 10
	decision  = 1200 * time.Millisecond
	// judgement is how long weir's --prefetch auto looks at traffic until it knows whether
	// prefetching pays: ten seconds until there are hints, the second after, and one in
	// reserve. With a pattern a run sends for so long before it measures.
	judgement = 12 * time.Second
	// disturbance is the share of a run's time that its cores may be idle or work for
	// other programs. Above it the run does not count.
	disturbance = 0.02
	// quietElsewhere is the busy share of other cores that the report does not
	// mention.
	quietElsewhere = 0.1
	// passes is how often lost openings are repeated, because a router may lose the
	// first frame of a connection.
	passes = 3
	// attempts is how often a disturbed run is repeated. All repetitions together are
	// limited to half of the number of runs.
	attempts = 4
)

// run measures one path once: open connections, steady traffic, new ones.
type run struct {
	setup   *traffic.Setup
	cores   []int // cores of the case
	others  []int // the machine's other cores
	seconds float64
	retries *int                        // repetitions left, for all runs together
	sinks   map[bool]*traffic.CountSink // by direction: back or not
	sampler *profile.Sampler            // on the first core; nil: not sampled
	record  *sample.Record              // records each stretch of steady traffic; nil: not recorded
	judged  bool                        // the path judges its traffic before it settles on how it works
	sent    uint64                      // frames so far
	least   float64                     // frames that are sent at least while it is measured
}

// result is the result of a run.
type result struct {
	mpps      float64
	newPerS   float64 // 0: the path has no connections
	disturbed float64 // share of the cores' time that others took
	elsewhere float64 // share of their time that the other cores were busy
	stacks    []profile.Stack
	split     map[string]float64 // ns of a frame by stage; nil: not sampled
	calls     [][]string         // functions of each sample, the outermost first
}

// measure runs everything on a path that is in place.
func (r *run) measure(ctx context.Context) (res result, err error) {
	var undo paths.UndoList
	defer func() { err = errors.Join(err, undo.Run()) }()
	gs, err := r.begin(ctx, &undo)
	if err != nil {
		return res, err
	}
	return r.count(ctx, gs)
}

// begin opens the connections of a path that is in place, and sends until it forwards as
// it will.
func (r *run) begin(ctx context.Context, undo *paths.UndoList) ([]*traffic.Generator, error) {
	base, err := r.setup.MakeResults()
	if err != nil {
		return nil, err
	}
	undo.Add(base.Close)
	send := func(s traffic.Frame) error { return r.sendOnce(s, r.setup.AllFlows()) }
	if _, err := r.setup.Open(ctx, traffic.Opening{Passes: passes, All: true, Send: send}); err != nil {
		return nil, err
	}
	if r.setup.Case.Flows >= manyFlows {
		time.Sleep(decision)
	}
	undo.Add(r.detachSinks)
	if err := r.attachSinks(); err != nil {
		return nil, err
	}
	gs, err := r.generators()
	if err != nil {
		return nil, err
	}
	undo.Add(func() error { traffic.CloseAll(gs); return nil })
	frames := make([]uint32, len(gs))
	for i, g := range gs {
		frames[i] = max(firstFrames, g.Flows) // each connection is used once before the clock starts
	}
	if _, err := r.send(gs, frames); err != nil {
		return nil, err
	}
	return gs, r.settle(ctx, gs, frames)
}

func (r *run) directions() []bool {
	if r.setup.Case.Both() {
		return []bool{false, true}
	}
	return []bool{false}
}

func (r *run) attachSinks() error {
	r.sinks = map[bool]*traffic.CountSink{}
	for _, back := range r.directions() {
		sink, err := traffic.NewCountSink(r.setup, back)
		if err != nil {
			return err
		}
		r.sinks[back] = sink
	}
	return nil
}

func (r *run) detachSinks() error {
	var errs []error
	for _, sink := range r.sinks {
		errs = append(errs, sink.Close())
	}
	return errors.Join(errs...)
}

// count measures steady traffic and then new connections.
func (r *run) count(ctx context.Context, gs []*traffic.Generator) (res result, err error) {
	if res, err = r.steady(ctx, gs); err != nil {
		return res, err
	}
	if r.sampler != nil {
		if err := r.nameSamples(&res); err != nil {
			return res, err
		}
	}
	if r.setup.Connects {
		res.newPerS, err = r.connect()
	}
	return res, err
}

// generators loads the generators of the case. With both directions on several cores,
// half of the cores send each direction. On one core two threads take turns.
func (r *run) generators() ([]*traffic.Generator, error) {
	var gs []*traffic.Generator
	for _, back := range r.directions() {
		cores := r.coresOf(back)
		for i, part := range r.setup.SteadyFlows(len(cores)) {
			s := r.setup.Steady(back)
			g, err := traffic.NewGenerator(r.setup, s, part, cores[i], 0)
			if err != nil {
				traffic.CloseAll(gs)
				return nil, err
			}
			gs = append(gs, g)
		}
	}
	return gs, nil
}

func (r *run) coresOf(back bool) []int {
	half := len(r.cores) / 2
	switch {
	case !r.setup.Case.Both() || half == 0:
		return r.cores
	case back:
		return r.cores[half:]
	}
	return r.cores[:half]
}

// steady sends frames for the wanted time and returns their rate.
func (r *run) steady(ctx context.Context, gs []*traffic.Generator) (best result, err error) {
	attempt := 0
	frames := make([]uint32, len(gs))
	if r.record != nil {
		r.record.Drop()
	}
	best.disturbed = math.Inf(1)
	for {
		if err := ctx.Err(); err != nil {
			return best, err
		}
		for i, g := range gs {
			frames[i] = r.framesFor(g, r.seconds)
		}
		res, err := r.send(gs, frames)
		if err != nil {
			return best, err
		}
		if r.record != nil {
			r.record.Note(res.mpps)
		}
		// A run that ended early was faster than the one before it. Its result is
		// right, but the next run gets the right length.
		early := traffic.Shortest(r.sinks) < 0.9*r.seconds
		if res.disturbed <= best.disturbed {
			best = res
		}
		if attempt++; attempt == attempts || *r.retries == 0 || best.disturbed <= disturbance && !early {
			return best, nil
		}
		*r.retries--
	}
}

// settle sends until a path that judges its traffic has done so.
func (r *run) settle(ctx context.Context, gs []*traffic.Generator, frames []uint32) error {
	if !r.judged {
		return nil
	}
	for end := time.Now().Add(judgement); time.Now().Before(end); {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, g := range gs { // a second each time: the rate changes meanwhile
			frames[i] = r.framesFor(g, 1)
		}
		if _, err := r.send(gs, frames); err != nil {
			return err
		}
	}
	return nil
}

// framesFor returns what a generator can send in a bit more than these seconds.
func (r *run) framesFor(g *traffic.Generator, seconds float64) uint32 {
	const reserve = 1.05
	n := r.sinks[g.Back].RateOn(g.Core) * seconds * reserve
	return uint32(min(max(n, r.least), math.MaxUint32/2))
}

// send runs the generators and evaluates what the sinks counted.
func (r *run) send(gs []*traffic.Generator, frames []uint32) (res result, err error) {
	for _, sink := range r.sinks {
		sink.Reset()
	}
	before, othersBefore, err := r.readCores()
	if err != nil {
		return res, err
	}
	begin := time.Now()
	if res.stacks, err = r.runWatched(gs, frames); err != nil {
		return res, err
	}
	took := time.Since(begin).Seconds()
	after, othersAfter, err := r.readCores()
	if err != nil {
		return res, err
	}
	time.Sleep(2 * time.Millisecond) // for frames that still wait in a queue
	total := uint64(0)
	for i := range frames {
		total += uint64(frames[i])
	}
	r.sent += total
	if err := r.allArrived(total); err != nil {
		return res, err
	}
	rate, seconds := traffic.Rate(r.sinks, r.cores)
	res.mpps = rate / 1e6
	res.disturbed = cpu.Disturbed(before, after, took, seconds, len(r.cores))
	res.elsewhere = cpu.Busy(othersBefore, othersAfter, took, len(r.others))
	return res, nil
}

// runWatched runs the generators. The record reads the cores before and after.
func (r *run) runWatched(gs []*traffic.Generator, frames []uint32) (stacks []profile.Stack, err error) {
	if r.record == nil {
		return r.runSampled(gs, frames)
	}
	err = r.record.During(func() error {
		stacks, err = r.runSampled(gs, frames)
		return err
	})
	return stacks, err
}

func (r *run) readCores() (own, others cpu.Time, err error) {
	if own, err = cpu.Read(r.cores); err != nil {
		return own, others, err
	}
	others, err = cpu.Read(r.others)
	return own, others, err
}

// allArrived rejects a run in which frames were lost: dropping a frame costs the path
// less than forwarding it.
func (r *run) allArrived(sent uint64) error {
	const most = 0.01
	if seen := traffic.Arrived(r.sinks); float64(seen) < (1-most)*float64(sent) {
		return fmt.Errorf("%s of %s frames arrived: more than %.0f %% were lost", units.Thousands(int(seen)), units.Thousands(int(sent)), most*100)
	}
	return nil
}

// connect opens connections that are not known yet, and returns how many it opened per
// second.
func (r *run) connect() (perSecond float64, err error) {
	for _, sink := range r.sinks {
		sink.Reset()
	}
	if err := r.sendOnce(r.setup.FirstFrames()[0], traffic.FreshFlows(uint32(r.setup.Case.Flows), traffic.NewFlows)); err != nil {
		return 0, err
	}
	time.Sleep(2 * time.Millisecond)
	if err := r.allArrived(traffic.NewFlows); err != nil {
		return 0, fmt.Errorf("open %s connections: %w", units.Thousands(traffic.NewFlows), err)
	}
	perSecond, _ = traffic.Rate(r.sinks, r.cores)
	return perSecond, nil
}

// sendOnce sends one frame of each flow.
func (r *run) sendOnce(s traffic.Frame, flows traffic.FlowRange) error {
	parts := flows.Split(len(r.cores))
	gs := make([]*traffic.Generator, 0, len(parts))
	defer func() { traffic.CloseAll(gs) }()
	frames := make([]uint32, len(parts))
	for i, part := range parts {
		g, err := traffic.NewGenerator(r.setup, s, part, r.cores[i], uint64(part.Count))
		if err != nil {
			return err
		}
		gs = append(gs, g)
		frames[i] = part.Count
		r.sent += uint64(part.Count)
	}
	return traffic.RunAll(gs, frames)
}
