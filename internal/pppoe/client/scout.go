package client

import (
	"time"

	"weir/internal/pppoe/discovery"
)

// A line that has a carrier again may carry nothing yet: a switch with spanning tree forwards only after 30 s or more.
const (
	// returnPatience is how long a session is kept that does not answer on such a line.
	returnPatience = time.Minute
	// scoutAfter is when it is asked whether any concentrator is there, and scoutAgain when the next search begins, with quick
	// requests at first.
	scoutAfter = 2 * time.Second
	scoutAgain = 10 * time.Second
)

// scout finds out whether a line carries anything while its session does not answer: if a concentrator offers sessions, the
// session is gone. It asks for none.
type scout struct {
	finder *discovery.Client
	begin  time.Time // of the next search; zero: there is no scout
}

// next is when something is due; zero: nothing is.
func (s *scout) next() time.Time {
	if s.finder != nil && s.finder.Next().Before(s.begin) {
		return s.finder.Next()
	}
	return s.begin
}

// tickScout does what is due.
func (m *Machine) tickScout(now time.Time) {
	switch s := &m.scout; {
	case s.begin.IsZero() || now.Before(s.next()):
		return
	case !now.Before(s.begin):
		s.finder, s.begin = discovery.Start(m.wanted(), now), now.Add(scoutAgain)
	default:
		s.finder.Tick(now)
	}
	m.afterScout(now)
}

// afterScout passes on what the scout has to send. After an offer the session has a last chance.
func (m *Machine) afterScout(now time.Time) {
	frames, _ := m.scout.finder.Take()
	if peer, found := m.scout.finder.Asked(); found {
		m.note("← an offer of %s: the line works", peer)
		m.scout = scout{}
		m.link.Hurry(now)
		m.drain(now)
		return
	}
	for _, f := range frames {
		m.note("→ is any concentrator there? The session does not answer")
		m.out = append(m.out, f.Append(nil))
	}
}
