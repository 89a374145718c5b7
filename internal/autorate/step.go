package autorate

import (
	"slices"
	"time"
)

// The directions of a line.
const (
	Up = iota
	Down
)

// Directions are their names.
var Directions = [2]string{"up", "down"}

// Patience is how long an answer may take. Interval is the time from one sample to the next.
const (
	Patience = 3 * time.Second
	Interval = 200 * time.Millisecond
)

// MaxHosts is how many hosts are asked.
const MaxHosts = 16

// Bounds are the rates of a direction, in bit/s: it never has less than Min or more than Max,
// and returns to Base when nothing says what the line carries. Max 0: it has no queues.
type Bounds struct{ Min, Base, Max float64 }

// A Config is what does not change.
type Config struct {
	Bounds [2]Bounds
	Hosts  int           // how many there are; at most MaxHosts
	Delay  time.Duration // a probe that takes this much longer than the least is delayed
}

// A Probe is what became of one. Times are on one clock, which begins anywhere.
type Probe struct {
	Host int
	Sent time.Duration
	Lost bool // there was no answer in time
	RTT  time.Duration
	// Ways are the delays by direction, if Split: each with an unknown constant.
	Split bool
	Ways  [2]time.Duration
}

// A Sample is what has happened since the one before.
type Sample struct {
	At      time.Duration
	Probes  []Probe    // those that were answered or given up
	Waiting []Probe    // those that were sent and are not answered yet
	Sent    [2]float64 // bit/s that the queues have let pass
	Offered [2]float64 // with what they have dropped
}

// A State is what is known. Its zero value knows nothing; Begin makes one.
type State struct {
	At    time.Duration
	Lines [2]Line
	hosts [MaxHosts]host
	heard time.Duration // when the last answer came
	asked int           // probes that were given up since then
}

// A Line is a direction.
type Line struct {
	Rate float64 // bit/s that its queues should have
	// seen is the rate at which packets waited behind the queues the last time: the next
	// steps up are careful there. 0: unknown.
	seen    float64
	seenAt  time.Duration
	reduced time.Duration // when the rate was reduced
	drained time.Duration // when what waited then should be gone
	begun   bool          // it has been
	loads   [loads]float64
	offered [loads]float64
	results results
}

// loads is for how many samples loads are kept.
const loads = 5

// A Reason says why a rate is what it is.
type Reason string

// The reasons.
const (
	Delay    Reason = "delay"    // packets wait behind the queues: reduced
	Loss     Reason = "loss"     // packets are lost behind the queues: reduced
	Draining Reason = "draining" // they wait, but less and less: held
	Foreign  Reason = "foreign"  // they wait, but not for what this direction sends: held
	Settling Reason = "settling" // a reduction has not shown its effect: held
	Load     Reason = "load"     // all that the queues let pass is used, without delay: raised
	Enough   Reason = "enough"   // the line has what it needs: held
	Idle     Reason = "idle"     // little is sent, so nothing is known: towards the base rate
	Silent   Reason = "silent"   // no host answers, but the line carries packets: towards the base rate
	Dead     Reason = "dead"     // no host answers, and nothing comes in: held
	Waiting  Reason = "waiting"  // no answer has come yet: held
)

// A Decision is what one direction should do.
type Decision struct {
	Rate   float64
	Reason Reason
	Excess time.Duration // median delay above the least, of the last probes
	Load   float64       // of the rate, 0 to 1 and more
}

// What probes say.
const (
	few       = 6  // the last probes decide
	delayed   = 3  // of them
	many      = 60 // for loss: those that were sent in lossTime
	lossy     = 4  // of them
	lossTime  = 3 * time.Second
	silence   = 2 * time.Second
	leastLost = 5                      // probes that are lost in a silence
	quiet     = 600 * time.Millisecond // without answers
	missed    = time.Second            // a probe that waits longer counts as lost
)

// How rates move. One step is one sample, of which there are five a second.
const (
	busy      = 0.75 // of the rate: it is used
	idle      = 0.5
	ours      = 0.1  // of the rate: less does not make packets wait
	ourPart   = 0.2  // of the part that the other direction uses of its rate: likewise, if only round trips are known
	leastCut  = 0.05 // a reduction takes this much
	mostCut   = 0.35 // and at most this, besides what the line has too little
	lossCut   = 0.05
	deepest   = 0.5 // of the rate: no estimate is lower
	raise     = 0.03
	back      = 0.06            // up to near the rate at which packets had to wait
	careful   = 0.004           // near the rate at which packets had to wait
	homewards = 0.01            // a step towards base
	settle    = time.Second     // after a reduction
	forget    = 2 * time.Minute // at which rate packets had to wait
	falls     = -0.03           // seconds of delay per second
	rises     = 0.05
	alive     = 20_000 // bit/s that come in on a line that is not dead
)

// Begin returns a state with the rates in force; 0: base.
func (c *Config) Begin(up, down float64) State {
	var s State
	for d, rate := range [2]float64{up, down} {
		if rate == 0 {
			rate = c.Bounds[d].Base
		}
		s.Lines[d].Rate = c.Bounds[d].within(rate)
	}
	return s
}

func (b *Bounds) within(rate float64) float64 { return max(b.Min, min(rate, b.Max)) }

// Step decides about both directions.
func (c *Config) Step(s State, in *Sample) (State, [2]Decision) {
	s.At = in.At
	for d := range s.Lines {
		l := &s.Lines[d]
		copy(l.loads[1:], l.loads[:])
		copy(l.offered[1:], l.offered[:])
		l.loads[0], l.offered[0] = in.Sent[d], in.Offered[d]
	}
	for i := range in.Probes {
		c.note(&s, &in.Probes[i])
	}
	var decisions [2]Decision
	parts := [2]float64{s.Lines[Up].peak(), s.Lines[Down].peak()}
	for d := range s.Lines {
		if c.Bounds[d].Max > 0 {
			decisions[d] = c.decide(&s, d, parts, in.Waiting)
		}
	}
	return s, decisions
}

// note enters what became of a probe.
func (c *Config) note(s *State, p *Probe) {
	h := &s.hosts[p.Host]
	s.asked++
	if !p.Lost {
		s.heard, s.asked = s.At, 0
	}
	var excess [2]time.Duration
	split := p.Split
	switch {
	case p.Lost:
	case p.Split:
		excess, split = h.eachWay(s.At, p, c.Delay)
	default:
		excess[Up] = h.ways[roundTrip].add(s.At, p.RTT)
		excess[Down] = excess[Up]
	}
	h.note(p, max(excess[Up], excess[Down]) > c.Delay)
	if c.odd(s, p.Host) {
		h.off = s.At + hostPause
		h.sent = 0
	}
	if h.off > s.At {
		return
	}
	for d := range s.Lines {
		s.Lines[d].results.add(result{sent: p.Sent, excess: excess[d], lost: p.Lost, split: split})
	}
}

// odd reports whether a host loses or delays most of its probes while most others do not.
func (c *Config) odd(s *State, number int) bool {
	h := &s.hosts[number]
	if h.sent < hostWindow || ones(h.lost|h.late) <= hostWindow/2 {
		return false
	}
	good, others := 0, 0
	for i := range c.Hosts {
		if x := &s.hosts[i]; i != number && x.sent == hostWindow && x.off <= s.At {
			others++
			if ones(x.lost|x.late) < hostWindow/4 {
				good++
			}
		}
	}
	return good > 0 && 2*good > others
}

// Asks reports whether a host should be asked now.
func (s *State) Asks(host int) bool { return s.hosts[host].off <= s.At }

// peak is the part of the rate that was used at most in the last samples.
func (l *Line) peak() float64 {
	if l.Rate == 0 {
		return 0
	}
	peak := 0.0
	for _, load := range l.loads[:3] {
		peak = max(peak, load)
	}
	return peak / l.Rate
}

// load is the part of the rate that is used.
func (l *Line) load() float64 { return (l.loads[0] + l.loads[1]) / 2 / l.Rate }

// decide decides about a direction.
func (c *Config) decide(s *State, d int, parts [2]float64, waiting []Probe) Decision {
	l, b := &s.Lines[d], &c.Bounds[d]
	now := l.results.answers(few, l.reduced)
	if !l.results.split() { // else nobody knows which direction they wait in
		now = append(now, c.overdue(s, waiting, l.reduced)...)
	}
	slices.SortFunc(now, func(x, y *result) int { return int(y.sent - x.sent) })
	now = now[:min(few, len(now))]
	_, excess := middle(now)
	late := 0
	for _, x := range now {
		if x.excess > c.Delay {
			late++
		}
	}
	lost := l.losses(s.At, waiting)
	reason := c.look(s, d, parts, late, lost)
	switch reason {
	case Delay:
		l.reduce(s.At, l.estimate(d), max(leastCut, min(excess.Seconds(), mostCut)), excess)
	case Loss:
		l.reduce(s.At, l.estimate(d)*(1-min(0.5, float64(lost)/many)), lossCut, 0)
	case Load:
		l.raise(s.At)
	case Idle, Silent:
		l.goHome(b)
	}
	l.Rate = b.within(l.Rate)
	return Decision{Rate: l.Rate, Reason: reason, Excess: excess, Load: l.load()}
}

// overdue returns the probes that will have been late when they are answered. If no answers come
// at all, that is something else.
func (c *Config) overdue(s *State, waiting []Probe, after time.Duration) (some []*result) {
	if s.At-s.heard > quiet {
		return nil
	}
	for i := range waiting {
		p := &waiting[i]
		usual, known := s.hosts[p.Host].ways[roundTrip].lowest()
		if excess := s.At - p.Sent - usual; known && p.Sent > after && excess > c.Delay && s.At-p.Sent < missed {
			some = append(some, &result{sent: p.Sent, excess: excess})
		}
	}
	return some
}

// look says what the samples mean for a direction.
func (c *Config) look(s *State, d int, parts [2]float64, late, lost int) Reason {
	l := &s.Lines[d]
	other := parts[1-d]
	guilty := parts[d] >= ours && (l.results.split() || parts[d] >= ourPart*other)
	switch {
	case s.asked >= leastLost && s.At-s.heard > silence:
		if s.Lines[Down].offered[0] < alive {
			return Dead
		}
		return Silent
	case l.results.n == 0:
		return Waiting
	case late >= delayed && !guilty:
		return Foreign
	case late >= delayed && (l.slope() < falls || s.At < l.drained && l.slope() < rises):
		return Draining
	case late >= delayed:
		return Delay
	case parts[d] >= busy && lost >= lossy:
		return Loss
	case l.begun && s.At-l.reduced < settle:
		return Settling
	case late > 1:
		return Enough
	case l.load() >= busy:
		return Load
	case l.load() < idle && l.Rate != c.Bounds[d].Base:
		return Idle
	}
	return Enough
}

// losses is how many probes were lost of those that were sent before their time was up, lately
// and since the last reduction.
func (l *Line) losses(at time.Duration, waiting []Probe) (n int) {
	lately := func(sent time.Duration) bool {
		return sent > l.reduced && at-sent > missed && at-sent <= missed+lossTime
	}
	for i := range room {
		if x, ok := l.results.back(i); ok && x.lost && lately(x.sent) {
			n++
		}
	}
	for i := range waiting {
		if lately(waiting[i].Sent) {
			n++
		}
	}
	return n
}

// slope is by how many seconds the delay grows in a second, by what was sent since the last
// reduction: the later half of the last answers against the earlier one. 0: unknown.
func (l *Line) slope() float64 {
	some := l.results.answers(2*few, l.reduced)
	if len(some) < few {
		return 0
	}
	slices.SortFunc(some, func(x, y *result) int { return int(y.sent - x.sent) })
	sent, excess := middle(some[:len(some)/2])
	before, was := middle(some[len(some)/2:])
	if sent-before < 20*time.Millisecond {
		return 0
	}
	return (excess - was).Seconds() / (sent - before).Seconds()
}

// estimate returns what the line carries, if packets wait behind the queues. What comes in at
// the far end of the line is what it carries. In front of it, the delay tells: it grows by a
// second in a second if twice as much is sent as the line carries.
func (l *Line) estimate(d int) float64 {
	used, arrived := 0.0, 0.0
	for i := range 3 {
		used, arrived = max(used, l.loads[i]), max(arrived, l.offered[i])
	}
	rate := min(l.Rate, used)
	if d == Down {
		rate = min(l.Rate, arrived)
	} else {
		rate /= 1 + max(0, l.slope())
	}
	return max(rate, deepest*l.Rate)
}

// reduce notes what the line carries, and sets a rate below that, so that what waits can drain.
func (l *Line) reduce(at time.Duration, carries, cut float64, excess time.Duration) {
	l.seen, l.seenAt = min(carries, l.Rate), at
	l.Rate, l.reduced, l.begun = l.seen*(1-cut), at, true
	l.drained = at + time.Duration(excess.Seconds()/cut*float64(time.Second))
}

// raise takes a step up: a small one near the rate at which packets had to wait.
func (l *Line) raise(at time.Duration) {
	if at-l.seenAt > forget {
		l.seen = 0
	}
	step := raise
	if l.Rate < 0.9*l.seen {
		step = back
	} else if l.Rate > 0.96*l.seen && l.Rate < 1.04*l.seen {
		step = careful
	}
	l.Rate *= 1 + step
}

// goHome takes a step towards the base rate.
func (l *Line) goHome(b *Bounds) {
	if l.Rate < b.Base {
		l.Rate = min(l.Rate*(1+homewards), b.Base)
	} else {
		l.Rate = max(l.Rate*(1-homewards), b.Base)
	}
}
