package failover

import (
	"fmt"
	"time"
)

// Times of the way in use.
const (
	silence = time.Second      // after which it is probed if something was sent
	idle    = 10 * time.Second // after which it is probed if nothing was
	verify  = 30 * time.Second // after which it is probed whatever comes: what was sent may be lost all the same
)

// Times of the other ways.
const (
	returnPause = 5 * time.Second  // between probes of a way that is preferred
	returnHold  = 30 * time.Second // for which it has to answer them all, before it is used again
	sparePause  = time.Minute      // between probes of the others
)

// Limits of how long the answer to a probe may take.
const (
	leastPatience = 700 * time.Millisecond
	mostPatience  = 5 * time.Second
	roundTrips    = 3 // as many as the last answer took
)

// tries is how many probes in a row have to be lost before a way is left.
const tries = 2

// Facts are what is known now.
type Facts struct {
	Now      time.Time
	Up       []bool // the ways that something can be sent by
	Sent     uint64 // bytes to the peer, except for probes
	Received uint64 // bytes from it
	Stray    time.Time
	Answered bool // the probe that was sent last
	Took     time.Duration
}

// A Step is what is to be done now.
type Step struct {
	Move   bool // the way in use is another
	First  bool // it answered until now
	Why    string
	Probe  bool // send a probe
	Way    int  // by this way
	Recall bool // send something by the way in use: a probe that was lost may have taken the peer along
}

// A Way is what is known of a way.
type Way struct {
	Probed   time.Time     // when that was last tried
	Answered time.Time     // when it last answered
	Missed   time.Time     // when it last did not
	Good     time.Time     // since when it answers every time; zero: it does not
	Took     time.Duration // the last answer
}

// A Link is a peer that several ways lead to.
type Link struct {
	Ways []Way // the preferred one first
	At   int   // the way in use
	Sure bool  // it has answered since it is in use

	heard    time.Time // when something came last
	received uint64
	sent     uint64 // when something came last
	probing  bool   // a probe is under way
	probed   int    // by this way
	lost     int    // probes in a row by the way in use
	failures int    // of ways in a row
}

// New returns a peer with as many ways, of which the first is in use.
func New(ways int, now time.Time) *Link { return &Link{Ways: make([]Way, ways), heard: now} }

// Next decides what is to be done.
func (l *Link) Next(f *Facts) (s Step) {
	if f.Received != l.received {
		l.heard, l.received, l.sent = f.Now, f.Received, f.Sent
	}
	s.Recall = l.settle(f)
	switch {
	case !f.Up[l.At]:
		l.leave(f, &s, "nothing can be sent by it")
	case l.lost >= tries:
		l.leave(f, &s, fmt.Sprintf("%d probes were lost, and nothing has come for %v", l.lost, f.Now.Sub(l.heard).Round(10*time.Millisecond)))
	default:
		l.comeBack(f, &s)
	}
	if way, due := l.due(f); due && !l.probing {
		s.Probe, s.Way = true, way
	}
	return s
}

// Begun notes that a probe was sent.
func (l *Link) Begun(way int, now time.Time) {
	l.probing, l.probed = true, way
	l.Ways[way].Probed = now
}

// settle looks what has become of a probe. It reports whether one that went another way was lost.
func (l *Link) settle(f *Facts) (recall bool) {
	if !l.probing {
		return false
	}
	w := &l.Ways[l.probed]
	switch {
	case f.Answered:
		w.Answered, w.Took = f.Now, f.Took
		if w.Good.IsZero() {
			w.Good = f.Now
		}
		if l.probed == l.At {
			l.Sure, l.lost, l.failures = true, 0, 0
		}
	case f.Now.Sub(w.Probed) < l.patience(w):
		return false
	default:
		w.Missed, w.Good = f.Now, time.Time{}
		if l.probed == l.At {
			l.lost++
		}
		recall = l.probed != l.At
	}
	l.probing = false
	return recall
}

// patience is how long the answer to a probe may take. It grows while no way answers.
func (l *Link) patience(w *Way) time.Duration {
	p := min(max(leastPatience, roundTrips*w.Took), mostPatience)
	for range l.failures / len(l.Ways) {
		p = min(2*p, mostPatience)
	}
	return p
}

// leave goes to the next way, if there is another that something can be sent by.
func (l *Link) leave(f *Facts, s *Step, why string) {
	to := -1
	for i := range l.Ways {
		if i != l.At && f.Up[i] && (to < 0 || l.better(i, to)) {
			to = i
		}
	}
	l.lost = 0
	if to < 0 {
		if f.Up[l.At] {
			l.failures++
			l.Sure = false
		}
		return
	}
	l.Ways[l.At].Missed, l.Ways[l.At].Good = f.Now, time.Time{}
	s.First = l.Sure
	l.failures++
	l.move(to, s, why)
}

// better reports whether a way is to be tried before another that comes first in the list.
func (l *Link) better(way, than int) bool {
	a, b := &l.Ways[way], &l.Ways[than]
	if a.Good.IsZero() != b.Good.IsZero() {
		return !a.Good.IsZero()
	}
	return a.Good.IsZero() && a.Missed.Before(b.Missed)
}

// comeBack goes to a way that is preferred, when it has answered long enough.
func (l *Link) comeBack(f *Facts, s *Step) {
	for i := range l.At {
		if w := &l.Ways[i]; l.Sure && f.Up[i] && !w.Good.IsZero() && f.Now.Sub(w.Good) >= returnHold && w.Answered.Equal(f.Now) {
			s.First = true
			l.move(i, s, fmt.Sprintf("it has answered every probe for %v", f.Now.Sub(w.Good).Round(time.Second)))
			return
		}
	}
}

func (l *Link) move(to int, s *Step, why string) {
	l.At, l.Sure, l.lost, l.probing = to, false, 0, false
	s.Move, s.Why = true, why
}

// due returns the way that is to be probed now.
func (l *Link) due(f *Facts) (way int, due bool) {
	w := &l.Ways[l.At]
	quiet := f.Now.Sub(l.heard)
	if f.Up[l.At] && (!l.Sure || l.lost > 0 || quiet >= idle || quiet >= silence && f.Sent != l.sent ||
		f.Now.Sub(w.Answered) >= verify || f.Stray.After(w.Probed)) {
		return l.At, true
	}
	for i := range l.Ways {
		pause := sparePause
		if i < l.At {
			pause = returnPause
		}
		if l.Sure && i != l.At && f.Up[i] && f.Now.Sub(l.Ways[i].Probed) >= pause {
			return i, true
		}
	}
	return 0, false
}
