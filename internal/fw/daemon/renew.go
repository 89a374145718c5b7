package daemon

import (
	"math/rand/v2"
	"time"

	"weir/internal/fw/control"
	"weir/internal/pppoe/client"
)

const (
	// renewSpread is the time within which sessions of many boxes are renewed that say the same time of
	// day.
	renewSpread = time.Minute
	// renewLate is how late a session is still renewed, after the machine has slept.
	renewLate = 10 * time.Minute
	// renewYoung is how long a session has to have been up.
	renewYoung = 10 * time.Minute
)

// nextRenewal is when a session is renewed next at a time of day, of the zone of now.
func nextRenewal(at string, now time.Time) time.Time {
	t, err := time.Parse("15:04", at)
	if err != nil {
		return time.Time{} // the parser has checked it
	}
	next := time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), 0, 0, now.Location())
	if !next.After(now) {
		next = time.Date(now.Year(), now.Month(), now.Day()+1, t.Hour(), t.Minute(), 0, 0, now.Location())
	}
	return next.Add(rand.N(renewSpread))
}

// renew makes the session anew if its time of day has come.
func (s *dial) renew(now time.Time) {
	if s.of.Renew == "" {
		return
	}
	due := s.renewAt
	if !due.IsZero() && now.Before(due) {
		return
	}
	s.renewAt = nextRenewal(s.of.Renew, now)
	if due.IsZero() || now.Sub(due) > renewLate || !s.isUp() || s.running == nil {
		return
	}
	s.mu.Lock()
	young := now.Sub(s.since) < renewYoung
	s.mu.Unlock()
	if young {
		return
	}
	select {
	case s.running.commands <- client.Command{Do: client.Renew}:
		s.say("reconnect at " + s.of.Renew)
	default:
		s.renewAt = due // it has another command to obey first: the next look asks again
	}
}

func (s *dial) isUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == control.PPPoEUp && !s.held
}
