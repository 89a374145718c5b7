package client

import (
	"time"

	"weir/internal/pppoe/ppp"
)

// Saved is an open session, for a process that goes on with it. It has no secret.
type Saved struct {
	Ref
	AC      string
	Payload uint16 // the largest packet that discovery has allowed, in bytes
	Link    ppp.Saved
}

// Save returns the open session; false: there is none that could be gone on with.
func (m *Machine) Save() (Saved, bool) {
	if m.phase != inSession || m.upSince.IsZero() {
		return Saved{}, false
	}
	link, ok := m.link.Save()
	return Saved{Ref: m.ref, AC: m.ac, Payload: m.payload, Link: link}, ok
}

// resume goes on with a session: Up is reported, or Held where the line has no carrier, and nothing is sent. The next echo
// request finds out whether the concentrator still has it.
func (m *Machine) resume(s Saved, now time.Time) {
	m.phase, m.ref, m.ac, m.payload, m.checking = inSession, s.Ref, s.AC, s.Payload, false
	m.upSince, m.last = time.Time{}, Session{}
	m.link = ppp.Resume(m.linkConfig(s.Payload), s.Link, now)
	m.report(now)
	if m.upSince.IsZero() {
		m.over(ppp.Clash, "the session that was left open carries nothing", true, now)
		return
	}
	if m.dark {
		m.held, m.darkSince = true, now
		m.events[len(m.events)-1].Kind = Held // not Up
	}
}
