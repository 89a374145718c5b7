package forward

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/bench/cpu"
	"weir/internal/bench/paths"
	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
	"weir/internal/stats"
	"weir/internal/units"
)

const (
	// turnStart is about what a turn takes besides its traffic.
	turnStart = 8 * time.Millisecond
	// warmFrames are what a path forwards at least before a turn counts, as the others had the
	// caches meanwhile, and at least in it.
	warmFrames = 1 << 13
)

// turnsMethod says in the report how turns work.
func turnsMethod(turns int) string {
	if turns == 0 {
		return ""
	}
	return fmt.Sprintf("All paths are in place at the same time, each in namespaces of its own, and a run has %d turns: every path sends for a moment, in random order. What all of them did faster or slower in a turn was the machine, and is taken out of the figures, the smallest and the largest run among them. Cases that differ in their cores alone take turns with each other, too.", turns)
}

// A seat is one path of one case that takes turns with others.
type seat struct {
	*samples
	c     traffic.Case
	bed   *testbed.Testbed
	run   *run
	gs    []*traffic.Generator
	undo  paths.UndoList // what this run has built
	turns stats.Sample   // Mpps of each turn, of all complete runs
}

// table is a group of cases whose paths take turns with each other.
type table struct {
	cases []seated
	seats []*seat
}

// seated are the paths of one case.
type seated struct {
	c       traffic.Case
	all     []*samples
	control *samples
}

// measureTurns measures all cases in turns.
func (b *benchmark) measureTurns(ctx context.Context, cases []traffic.Case) error {
	groups := alike(cases)
	for i, group := range groups {
		for _, c := range group {
			b.progress.Say("cases %d of %d: %s", i+1, len(groups), c)
		}
		if err := b.measureGroup(ctx, group); err != nil {
			return err
		}
	}
	return nil
}

// alike groups the cases that differ in their cores alone.
func alike(cases []traffic.Case) (groups [][]traffic.Case) {
	for _, c := range cases {
		same := func(g []traffic.Case) bool {
			other := g[0]
			other.Cores = c.Cores
			return other == c
		}
		if i := slices.IndexFunc(groups, same); i >= 0 {
			groups[i] = append(groups[i], c)
		} else {
			groups = append(groups, []traffic.Case{c})
		}
	}
	return groups
}

// measureGroup measures cases in turns with each other.
func (b *benchmark) measureGroup(ctx context.Context, cases []traffic.Case) (err error) {
	var t table
	for _, c := range cases {
		all, err := b.prepare(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
		if len(all) == 0 {
			continue
		}
		control := b.control(all)
		t.cases = append(t.cases, seated{c, all, control})
		for _, e := range append(slices.Clone(all), control) {
			t.seats = append(t.seats, &seat{samples: e, c: c})
		}
	}
	defer func() { err = errors.Join(err, t.leave()) }()
	for i, s := range t.seats {
		if s.bed, err = b.testbed.Beside(ctx, i+1); err != nil {
			return err
		}
		if s.program != "" {
			s.bed.Program = s.program
		}
	}
	defer func() { b.concludeTurns(&t) }()
	for round := range b.options.Runs {
		if err := b.round(ctx, &t, round); err != nil {
			return err
		}
	}
	return nil
}

// leave removes the labs.
func (t *table) leave() error {
	var errs []error
	for _, s := range t.seats {
		if s.bed != nil {
			errs = append(errs, s.bed.Close())
		}
	}
	return errors.Join(errs...)
}

// round measures one run of every seat. If it fails, the run counts for none.
func (b *benchmark) round(ctx context.Context, t *table, round int) (err error) {
	defer func() {
		for _, s := range t.seats {
			if failed := s.undo.Run(); failed != nil {
				err = errors.Join(err, fmt.Errorf("%s: %s: %w", s.c, s.path.Name, failed))
			}
		}
	}()
	for _, s := range t.seats {
		b.progress.Step("%s, round %d of %d", s.path.Name, round+1, b.options.Runs)
		if err := b.sit(ctx, s); err != nil {
			return fmt.Errorf("%s: %s: %w", s.c, s.path.Name, err)
		}
		b.progress.Done(1)
	}
	found, err := b.takeTurns(ctx, t)
	if err != nil {
		return err
	}
	opened := map[*seat]float64{}
	for _, s := range stats.Interleave(1, t.seats) {
		if opened[s], err = s.finish(ctx); err != nil {
			return fmt.Errorf("%s: %s: %w", s.c, s.path.Name, err)
		}
	}
	for _, s := range t.seats {
		s.turns = append(s.turns, found[s]...)
		if opened[s] > 0 {
			s.newPerS = append(s.newPerS, opened[s])
		}
		b.done++
	}
	return nil
}

// takeTurns returns the rates of all turns of a run.
func (b *benchmark) takeTurns(ctx context.Context, t *table) (map[*seat]stats.Sample, error) {
	found := map[*seat]stats.Sample{}
	cores := b.testbed.Cores
	own, begin := cpu.OwnTime(), time.Now()
	before, err := cpu.Read(cores)
	if err != nil {
		return nil, err
	}
	for _, s := range stats.Interleave(b.options.Turns, t.seats) {
		mpps, err := b.turn(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", s.c, s.path.Name, err)
		}
		found[s] = append(found[s], mpps)
	}
	after, err := cpu.Read(cores)
	if err != nil {
		return nil, err
	}
	taken := after.Foreign - before.Foreign - (cpu.OwnTime() - own)
	b.taken = max(b.taken, taken/(time.Since(begin).Seconds()*float64(len(cores))))
	return found, nil
}

// sit builds a seat's path and opens its connections.
func (b *benchmark) sit(ctx context.Context, s *seat) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := s.path.Entry(s.entry)
	if err != nil {
		return err
	}
	s.run = b.newRun(s.bed, s.c, s.path)
	s.run.seconds, s.run.least = b.options.Seconds.Seconds()/float64(b.options.Turns), warmFrames
	stop, err := f.Start(ctx, s.run.setup)
	if err != nil {
		return err
	}
	s.undo.Add(stop)
	s.gs, err = s.run.begin(ctx, &s.undo)
	return err
}

// turn returns the rate of one turn, in Mpps.
func (b *benchmark) turn(ctx context.Context, s *seat) (mpps float64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	frames, warm := make([]uint32, len(s.gs)), make([]uint32, len(s.gs))
	for i, g := range s.gs {
		// The sinks still know the rate of the turn before.
		frames[i], warm[i] = s.run.framesFor(g, s.run.seconds), max(g.Flows, warmFrames)
	}
	if _, err := s.run.send(s.gs, warm); err != nil {
		return 0, err
	}
	res, err := s.run.send(s.gs, frames)
	if err == nil && !(res.mpps > 0) {
		err = fmt.Errorf("no rate is seen in a turn of %s frames", units.Thousands(int(frames[0])))
	}
	return res.mpps, err
}

// finish opens new connections, and checks that queues have seen every frame.
func (s *seat) finish(ctx context.Context) (newPerS float64, err error) {
	if s.run.setup.Connects {
		if newPerS, err = s.run.connect(); err != nil {
			return 0, err
		}
	}
	if s.path.Counts == nil {
		return newPerS, nil
	}
	return newPerS, counted(ctx, s.run.setup, s.path, s.run.sent, countedWithin)
}

// concludeTurns takes out of all seats what they have in common, and turns what is left
// into rows: a run is the median of its turns.
func (b *benchmark) concludeTurns(t *table) {
	if len(t.seats) == 0 || len(t.seats[0].turns) == 0 {
		return
	}
	var all []stats.Sample
	for _, s := range t.seats {
		all = append(all, s.turns)
	}
	for i, levelled := range stats.Level(all) {
		for run := range slices.Chunk(levelled, b.options.Turns) {
			t.seats[i].mpps = append(t.seats[i].mpps, run.Median())
		}
	}
	for _, of := range t.cases {
		b.conclude(of.c, of.all, of.control)
	}
}
