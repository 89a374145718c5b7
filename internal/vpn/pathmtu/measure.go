package pathmtu

import (
	"context"
	"time"
)

// A Path leads to a peer.
type Path interface {
	// Targets is how many addresses may be asked.
	Targets() int
	// Ask sends an echo request of a size to one of them, which is not cut on its way, and waits for the answer. Nothing
	// may wait: then the request is sent alone.
	Ask(ctx context.Context, target, size int, wait time.Duration) (took time.Duration, answered bool)
	// Bytes tells how many bytes went to the peer, and how many came from it; false: nothing is known of it.
	Bytes() (sent, received uint64, ok bool)
}

// Bounds are between what sizes a path is measured.
type Bounds struct {
	Least, Most int
	Now         int  // what went before; 0: not known
	Raise       bool // a larger one is tried
}

// A Method is how a path was measured.
type Method string

// Methods.
const (
	Echo      Method = "echo"      // echo requests were answered
	Keepalive Method = "keepalive" // WireGuard's own answers to data were counted
	Assumed   Method = "assumed"   // nothing was found out
)

// Found is what was found out.
type Found struct {
	Size  int // of the largest packet; 0: nothing answers at all, or any more
	By    Method
	Below bool // packets of the least size are too large already
	Ended bool // nothing answers any more
}

// small is the size of a request that goes everywhere.
const small = 100

// How often a size is tried, and how long an answer may take: ten times as long as one to a small request. A request that
// is not answered counts if a small one behind it is answered. Otherwise nothing goes for the moment, or ends are too
// busy to answer.
const (
	tries      = 3
	silences   = 5 // in a row, after which nothing answers any more
	firstWait  = 2 * time.Second
	leastWait  = 300 * time.Millisecond
	waitFactor = 10
)

// safe is what is assumed of a path of which nothing can be found out: IPv6 needs as much.
const safe = 1280

// Measure measures a path. What it finds after ctx has ended means nothing.
func Measure(ctx context.Context, p Path, b Bounds) Found {
	m := measure{ctx: ctx, path: p}
	if m.choose() {
		f := m.search(b, m.echoes, 1)
		if m.unclear {
			return Found{Ended: true}
		}
		return f
	}
	if p.Targets() == 0 {
		return m.unknown(b)
	}
	m.target = 0
	switch m.kept(small) {
	case no:
		return Found{}
	case unsure:
		return m.unknown(b)
	}
	f := m.search(b, m.keeps, keepStep)
	if f.By = Keepalive; m.unclear {
		return m.unknown(b)
	}
	return f
}

// unknown is what is said of a path that cannot be measured. What was found before is kept.
func (m *measure) unknown(b Bounds) Found {
	if b.Now != 0 {
		return Found{Size: b.Now, By: Assumed}
	}
	return Found{Size: min(max(b.Least, safe), b.Most), By: Assumed}
}

// A measure is one that goes on.
type measure struct {
	ctx     context.Context
	path    Path
	target  int
	wait    time.Duration
	unclear bool
}

// choose finds an address that answers.
func (m *measure) choose() bool {
	for range tries {
		for m.target = range m.path.Targets() {
			if took, ok := m.path.Ask(m.ctx, m.target, small, firstWait); ok {
				m.patience(took)
				return true
			}
			if m.ctx.Err() != nil {
				return false
			}
		}
	}
	return false
}

// patience says how long answers may take from now on, by how long a small one took: never less than before.
func (m *measure) patience(took time.Duration) {
	m.wait = max(m.wait, min(max(waitFactor*took, leastWait), firstWait))
}

// echoes reports whether requests of a size are answered.
func (m *measure) echoes(size int) bool {
	for missed, silent := 0, 0; missed < tries && silent < silences && m.ctx.Err() == nil && !m.unclear; {
		if _, ok := m.path.Ask(m.ctx, m.target, size, m.wait); ok {
			return true
		}
		took, ok := m.path.Ask(m.ctx, m.target, small, firstWait)
		if !ok {
			silent++
			m.unclear = silent == silences
			continue
		}
		m.patience(took)
		missed, silent = missed+1, 0
	}
	return false
}

// search finds the largest size that goes, to a step. What it has found is what went.
func (m *measure) search(b Bounds, goes func(size int) bool, step int) Found {
	now := b.Now
	if now < b.Least || now > b.Most {
		now = 0
	}
	if now != 0 && !b.Raise && goes(now) {
		return Found{Size: now, By: Echo}
	}
	low, high := b.Least, b.Most
	switch {
	case now != 0 && !b.Raise:
		high = now
	case goes(b.Most):
		return Found{Size: b.Most, By: Echo}
	case now != 0 && now < b.Most && goes(now):
		low = now
	}
	if low == b.Least && !goes(low) {
		return m.below(b, goes)
	}
	for high-low > step {
		if middle := (high + low) / 2; goes(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return Found{Size: low, By: Echo}
}

// below tells a path for smaller packets from one that nothing goes through any more.
func (m *measure) below(b Bounds, goes func(size int) bool) Found {
	if goes(small) {
		return Found{Size: b.Least, By: Echo, Below: true}
	}
	return Found{}
}
