package autorate_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weir/internal/autorate"
)

// A line is simulated in steps of a millisecond: queues that are not ours hold what it cannot
// carry, at the far end for what comes down, and in the modem for what goes up.
type line struct {
	rate    [2]func(at time.Duration) float64 // bit/s
	offered [2]func(at time.Duration) float64 // what connections would send; ours let at most our rate pass
	depth   float64                           // seconds of its rate that its queues hold
	base    time.Duration                     // round trip
	jitter  time.Duration
	loss    float64                                        // of all packets
	split   bool                                           // hosts tell one-way delays
	clock   func(host int, at time.Duration) time.Duration // by how much a host's clock is set forward, besides
	dead    func(at time.Duration) bool
	foreign func(at time.Duration) time.Duration // what packets wait for others
	silent  func(at time.Duration) bool
	random  *rand.Rand
	backlog [2]float64 // bits
	lossy   [2]float64 // what part of packets finds no room
	sent    [2]float64 // bits since the last sample
	waiting []answer
}

type answer struct {
	probe autorate.Probe
	at    time.Duration
}

func constant(rate float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return rate }
}

const (
	tick  = time.Millisecond
	each  = 50 * time.Millisecond
	every = 200 * time.Millisecond
)

// A moment is what a test looks at: the end of a sample.
type moment struct {
	at      time.Duration
	rate    [2]float64
	delay   [2]time.Duration // that packets wait in the line
	reasons [2]autorate.Reason
}

// follow lets autorate follow a line.
func (l *line) follow(cfg *autorate.Config, length time.Duration) (all []moment) {
	l.random = rand.New(rand.NewPCG(1, 2))
	s := cfg.Begin(0, 0)
	var decisions [2]autorate.Decision
	for at := tick; at <= length; at += tick {
		l.pass(at, &s)
		if at%each == 0 {
			l.probe(at, int(at/each)%cfg.Hosts, &s)
		}
		if at%every != 0 {
			continue
		}
		in := autorate.Sample{At: at}
		for d := range l.sent {
			in.Sent[d] = l.sent[d] / every.Seconds()
			in.Offered[d] = in.Sent[d]
			l.sent[d] = 0
		}
		rest := l.waiting[:0]
		for _, a := range l.waiting {
			if a.at <= at {
				in.Probes = append(in.Probes, a.probe)
			} else {
				rest = append(rest, a)
				in.Waiting = append(in.Waiting, autorate.Probe{Host: a.probe.Host, Sent: a.probe.Sent})
			}
		}
		l.waiting = rest
		s, decisions = cfg.Step(s, &in)
		all = append(all, moment{at, [2]float64{s.Lines[0].Rate, s.Lines[1].Rate}, [2]time.Duration{l.waits(at, 0), l.waits(at, 1)},
			[2]autorate.Reason{decisions[0].Reason, decisions[1].Reason}})
	}
	return all
}

// pass lets a millisecond pass.
func (l *line) pass(at time.Duration, s *autorate.State) {
	for d := range l.rate {
		if l.dead != nil && l.dead(at) {
			continue
		}
		carries := l.rate[d](at) * tick.Seconds()
		comes := min(l.offered[d](at), s.Lines[d].Rate) * tick.Seconds()
		l.backlog[d] += comes
		goes := min(l.backlog[d], carries)
		l.backlog[d] -= goes
		over := max(0, l.backlog[d]-l.depth*l.rate[d](at))
		l.backlog[d] -= over
		l.lossy[d] = over / max(comes, 1)
		if d == autorate.Up { // counted in front of the line
			l.sent[d] += comes
		} else {
			l.sent[d] += goes
		}
	}
}

func (l *line) waits(at time.Duration, d int) time.Duration {
	return time.Duration(l.backlog[d] / l.rate[d](at) * float64(time.Second))
}

// probe sends one. What is lost is given up later.
func (l *line) probe(at time.Duration, host int, s *autorate.State) {
	if !s.Asks(host) {
		return
	}
	p := autorate.Probe{Host: host, Sent: at, Split: l.split}
	lost := l.random.Float64() < l.loss || l.dead != nil && l.dead(at) || l.silent != nil && l.silent(at)
	for d := range p.Ways {
		lost = lost || l.random.Float64() < l.lossy[d]
		p.Ways[d] = l.base/2 + l.waits(at, d) + time.Duration(l.random.Float64()*float64(l.jitter)/2)
		p.RTT += p.Ways[d]
	}
	if l.foreign != nil {
		p.RTT += l.foreign(at)
	}
	if l.split { // the host's clock is wrong, and drifts
		off := 3*time.Second + at/10_000 + time.Duration(host)*time.Minute
		if l.clock != nil {
			off += l.clock(host, at)
		}
		p.Ways[autorate.Up] += off
		p.Ways[autorate.Down] -= off
	}
	if lost {
		p.Lost = true
		l.waiting = append(l.waiting, answer{p, at + autorate.Patience})
		return
	}
	l.waiting = append(l.waiting, answer{p, at + p.RTT})
}

func config(lowest, base, highest float64) *autorate.Config {
	b := autorate.Bounds{Min: lowest, Base: base, Max: highest}
	return &autorate.Config{Bounds: [2]autorate.Bounds{b, b}, Hosts: 4, Delay: 30 * time.Millisecond}
}

func steps(rates ...float64) func(time.Duration) float64 {
	return func(at time.Duration) float64 {
		return rates[min(int(at/(30*time.Second)), len(rates)-1)]
	}
}

// between returns the moments of an interval.
func between(all []moment, from, to time.Duration) (some []moment) {
	for _, m := range all {
		if m.at > from && m.at <= to {
			some = append(some, m)
		}
	}
	return some
}

// limits are what a test expects of a line that is always busy, in parts of its rate.
type limits struct {
	least, most float64       // of the mean
	spread      float64       // between the lowest and the highest
	wait        time.Duration // that 95 of 100 packets have to wait at most
}

// A line whose rate changes every half minute: twelve seconds later the rate fits and stays where it
// is, and packets do not wait for long. This holds for either direction, and for lines of many kinds.
func TestFollows(t *testing.T) {
	usual := limits{0.85, 1.02, 0.45, 75 * time.Millisecond}
	for name, c := range map[string]struct {
		limits
		change func(*line)
	}{
		"up":            {usual, func(l *line) { l.quiet(autorate.Down) }},
		"down":          {usual, func(l *line) { l.quiet(autorate.Up) }},
		"both, one-way": {usual, func(l *line) { l.split = true }},
		"up, one-way":   {usual, func(l *line) { l.split = true; l.rate[autorate.Down] = constant(50e6) }},
		"down, one-way": {usual, func(l *line) { l.split = true; l.rate[autorate.Up] = constant(50e6) }},
		"jitter":        {usual, func(l *line) { l.jitter = 20 * time.Millisecond; l.quiet(autorate.Down) }},
		"1 % lost":      {usual, func(l *line) { l.loss = 0.01; l.quiet(autorate.Down) }},
		// Which direction it is nobody can say: both are reduced.
		"both": {limits{0.5, 1.02, 0.7, 60 * time.Millisecond}, func(*line) {}},
		// What it does is seen late.
		"long way": {limits{0.8, 1.02, 0.6, 150 * time.Millisecond}, func(l *line) { l.base = 300 * time.Millisecond; l.quiet(autorate.Down) }},
		// Losses alone say that it is full.
		"shallow queues": {limits{0.9, 1.2, 0.7, 30 * time.Millisecond}, func(l *line) { l.depth = 0.02; l.quiet(autorate.Down) }},
	} {
		t.Run(name, func(t *testing.T) {
			rates := []float64{20e6, 8e6, 20e6, 14e6, 5e6, 20e6}
			l := &line{depth: 0.5, base: 40 * time.Millisecond, jitter: 4 * time.Millisecond}
			for d := range l.rate {
				l.rate[d], l.offered[d] = steps(rates...), constant(1e9)
			}
			c.change(l)
			all := l.follow(config(2e6, 15e6, 30e6), time.Duration(len(rates))*30*time.Second)
			for d := range l.rate {
				for i := range rates {
					if l.offered[d](0) > 10e6 && l.rate[d](0) == rates[0] {
						c.fits(t, l, d, between(all, time.Duration(i*30+12)*time.Second, time.Duration(i*30+30)*time.Second))
					}
				}
			}
		})
	}
}

// quiet gives a direction a fast line and little to do.
func (l *line) quiet(d int) { l.rate[d], l.offered[d] = constant(50e6), constant(1e6) }

// fits checks the moments of one rate.
func (c *limits) fits(t *testing.T, l *line, d int, all []moment) {
	t.Helper()
	rate := l.rate[d](all[0].at)
	var parts []float64
	var waits []time.Duration
	mean := 0.0
	for _, m := range all {
		parts, waits = append(parts, m.rate[d]/rate), append(waits, m.delay[d])
		mean += m.rate[d] / rate / float64(len(all))
	}
	slices.Sort(parts)
	slices.Sort(waits)
	wait := waits[len(waits)*95/100]
	if mean < c.least || mean > c.most || parts[len(parts)-1]-parts[0] > c.spread || wait > c.wait {
		t.Errorf("%s, %.0fM from %v on: %.2f to %.2f of the line's rate, mean %.2f; 95 of 100 packets wait %v at most",
			autorate.Directions[d], rate/1e6, all[0].at, parts[0], parts[len(parts)-1], mean, wait)
	}
}

// While nothing says what the line carries the rate goes to base: nobody sends much, or nobody answers.
// It is never outside its bounds.
func TestBase(t *testing.T) {
	after := 40 * time.Second
	for name, c := range map[string]struct {
		change func(*line)
		want   float64 // of the rate at the end, up
		reason autorate.Reason
	}{
		"little to do": {func(l *line) {
			l.offered[autorate.Up] = func(at time.Duration) float64 { return map[bool]float64{true: 1e9, false: 1e6}[at < after] }
		}, 15e6, autorate.Enough},
		"no answers":  {func(l *line) { l.silent = func(at time.Duration) bool { return at > after } }, 15e6, autorate.Silent},
		"a dead line": {func(l *line) { l.dead = func(at time.Duration) bool { return at > after } }, 5.5e6, autorate.Dead},
		"too slow":    {func(l *line) { l.rate[autorate.Up] = constant(1e6) }, 2e6, autorate.Loss},
		"very fast":   {func(l *line) { l.rate[autorate.Up] = constant(1e9) }, 30e6, autorate.Load},
		"none comes":  {func(l *line) { l.silent = func(time.Duration) bool { return true } }, 15e6, autorate.Silent},
	} {
		t.Run(name, func(t *testing.T) {
			l := &line{depth: 0.5, base: 40 * time.Millisecond, jitter: 4 * time.Millisecond}
			l.rate = [2]func(time.Duration) float64{constant(5.5e6), constant(50e6)}
			l.offered = [2]func(time.Duration) float64{constant(1e9), constant(1e6)}
			c.change(l)
			all := l.follow(config(2e6, 15e6, 30e6), 2*time.Minute)
			for _, m := range all {
				if m.rate[autorate.Up] < 2e6 || m.rate[autorate.Up] > 30e6 {
					t.Fatalf("at %v the rate is %v", m.at, m.rate)
				}
			}
			last := all[len(all)-1]
			if rate := last.rate[autorate.Up]; math.Abs(rate-c.want) > 0.15*c.want {
				t.Errorf("the rate is %.3g in the end, want %.3g; %v", rate, c.want, last.reasons)
			}
			if !slices.ContainsFunc(all, func(m moment) bool { return m.reasons[autorate.Up] == c.reason }) {
				t.Errorf("the reason is never %s", c.reason)
			}
		})
	}
}

// A direction that sends nothing keeps its rate while the other makes packets wait, and so do both
// if others do.
func TestForeign(t *testing.T) {
	for _, offered := range [][2]float64{{1e9, 0.5e6}, {0.5e6, 0.5e6}} {
		l := &line{depth: 0.5, base: 40 * time.Millisecond, rate: [2]func(time.Duration) float64{constant(5e6), constant(50e6)}}
		l.offered = [2]func(time.Duration) float64{constant(offered[0]), constant(offered[1])}
		if offered[0] < 1e6 { // their packets are not ours
			l.base = 40 * time.Millisecond
			l.foreign = func(at time.Duration) time.Duration {
				return map[bool]time.Duration{true: 200 * time.Millisecond}[at > 20*time.Second]
			}
		}
		for _, m := range l.follow(config(2e6, 15e6, 30e6), time.Minute) {
			if m.rate[autorate.Down] != 15e6 || offered[0] < 1e6 && m.rate[autorate.Up] != 15e6 {
				t.Fatalf("%v: at %v the rates are %v: %v", offered, m.at, m.rate, m.reasons)
			}
		}
	}
}

// A host that says something else than the others, or nothing, is not asked for a while, and does no harm.
func TestOddHosts(t *testing.T) {
	for _, lost := range []bool{false, true} {
		cfg := config(2e6, 15e6, 30e6)
		s := cfg.Begin(0, 0)
		asked := 0
		for i := range 300 {
			at := time.Duration(i+1) * every
			in := autorate.Sample{At: at, Sent: [2]float64{14.9e6, 14.9e6}, Offered: [2]float64{14.9e6, 14.9e6}}
			for host := range cfg.Hosts {
				if !s.Asks(host) {
					continue
				}
				p := autorate.Probe{Host: host, Sent: at - every, RTT: 20 * time.Millisecond}
				if host == 2 && i > 20 {
					asked++
					p.RTT, p.Lost = 90*time.Millisecond, lost
				}
				in.Probes = append(in.Probes, p)
			}
			s, _ = cfg.Step(s, &in)
		}
		if asked > 25 {
			t.Errorf("lost: %v: it was asked %d times", lost, asked)
		}
		if s.Lines[autorate.Up].Rate < 19e6 {
			t.Errorf("lost: %v: the rate is %.3g", lost, s.Lines[autorate.Up].Rate)
		}
	}
}

// Step changes nothing that it was given.
func TestStepIsPure(t *testing.T) {
	cfg := config(2e6, 15e6, 30e6)
	before := cfg.Begin(0, 0)
	in := autorate.Sample{At: every, Sent: [2]float64{15e6, 1e6}, Offered: [2]float64{15e6, 1e6}}
	for host := range cfg.Hosts {
		in.Probes = append(in.Probes, autorate.Probe{Host: host, Sent: tick, RTT: time.Second})
	}
	one, first := cfg.Step(before, &in)
	two, second := cfg.Step(before, &in)
	if one != two || first != second || before != cfg.Begin(0, 0) {
		t.Error("the same state and sample give something else the second time")
	}
}
