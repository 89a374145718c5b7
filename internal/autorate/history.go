package autorate

import (
	"slices"
	"time"
)

// Baselines: the least delay of a host in the last periods. A longer way becomes the baseline
// when the periods of the shorter one are over.
const (
	period  = 10 * time.Second
	periods = 6
)

// A baseline is the least delay of a host in one direction.
type baseline struct {
	least [periods]time.Duration
	taken [periods]bool
	last  int64 // number of the newest period
}

// add returns by how much a delay is above the least.
func (b *baseline) add(at, delay time.Duration) time.Duration {
	for now := int64(at / period); b.last < now; b.last++ {
		if now-b.last > periods {
			*b = baseline{last: now}
			break
		}
		b.taken[(b.last+1)%periods] = false
	}
	i := b.last % periods
	if !b.taken[i] || delay < b.least[i] {
		b.least[i], b.taken[i] = delay, true
	}
	lowest, _ := b.lowest()
	return delay - lowest
}

// lowest returns the least delay; false: there is none.
func (b *baseline) lowest() (lowest time.Duration, known bool) {
	for i := range b.least {
		if b.taken[i] && (!known || b.least[i] < lowest) {
			lowest, known = b.least[i], true
		}
	}
	return lowest, known
}

// A host's answers: what is known of one host. One that does not answer, or that says something
// else than the others, is not asked for a while.
type host struct {
	ways [3]baseline // by direction; the last is of round trips
	lost uint16      // a bit for each of the last probes
	late uint16      // likewise: delayed
	sent int         // how many that are; at most hostWindow
	off  time.Duration
}

const (
	hostWindow = 10
	hostPause  = time.Minute
)

// roundTrip is the index of host.ways.
const roundTrip = 2

func (h *host) note(p *Probe, late bool) {
	h.lost, h.late = h.lost<<1, h.late<<1
	if p.Lost {
		h.lost |= 1
	}
	if late {
		h.late |= 1
	}
	h.sent = min(h.sent+1, hostWindow)
}

// eachWay returns by how much each way of a probe is above the least. What waits in both directions adds up to
// what the round trip takes longer, but for slack. If it does not, the host has set its clock: its ways begin anew, and
// only the round trip counts, for both directions. The same holds while the new ways have begun on a busy line.
func (h *host) eachWay(at time.Duration, p *Probe, slack time.Duration) (excess [2]time.Duration, split bool) {
	longer := h.ways[roundTrip].add(at, p.RTT)
	for d := range excess {
		excess[d] = h.ways[d].add(at, p.Ways[d])
	}
	if odd := excess[Up] + excess[Down] - longer; odd.Abs() <= slack {
		return excess, true
	}
	for d := range excess {
		h.ways[d] = baseline{}
		h.ways[d].add(at, p.Ways[d])
		excess[d] = longer
	}
	return excess, false
}

func ones(bits uint16) (n int) {
	for bits &= 1<<hostWindow - 1; bits != 0; bits &= bits - 1 {
		n++
	}
	return n
}

// A result is what a probe says of one direction.
type result struct {
	sent   time.Duration
	excess time.Duration // above the baseline
	lost   bool
	split  bool // it is of this direction alone
}

// room is how many results are kept of a direction: two seconds and more of them.
const room = 48

// results are the last ones of a direction, in the order in which they came.
type results struct {
	all [room]result
	n   int // all that ever came
}

func (r *results) add(x result) {
	r.all[r.n%room] = x
	r.n++
}

// back returns the result that came i results before the last; false: none.
func (r *results) back(i int) (*result, bool) {
	if i >= min(r.n, room) {
		return nil, false
	}
	return &r.all[(r.n-1-i)%room], true
}

// split reports whether most of the last answers are of this direction alone.
func (r *results) split() bool {
	n := 0
	for _, x := range r.answers(few, 0) {
		if x.split {
			n++
		}
	}
	return 2*n > few
}

// answers returns up to n results that were not lost and were sent after a time, the last one
// first.
func (r *results) answers(n int, after time.Duration) (some []*result) {
	for i := 0; len(some) < n; i++ {
		x, ok := r.back(i)
		if !ok {
			break
		}
		if x.lost || x.sent <= after {
			continue
		}
		some = append(some, x)
	}
	return some
}

// middle returns the median of when results were sent, and that of their excess.
func middle(some []*result) (sent, excess time.Duration) {
	if len(some) == 0 {
		return 0, 0
	}
	var when, above []time.Duration
	for _, x := range some {
		when, above = append(when, x.sent), append(above, x.excess)
	}
	slices.Sort(when)
	slices.Sort(above)
	return when[len(when)/2], above[len(above)/2]
}
