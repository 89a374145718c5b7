package keeper

import (
	"sync"
	"time"
)

// An echo passes on what an engine says: each text at once, and then at most once a minute with how
// often it came.
type echo struct {
	pass func(text string, times int)

	mu   sync.Mutex
	said map[string]*saying
}

type saying struct {
	at    time.Time // when it was passed on last
	times int       // since then
}

// Pauses of an echo, and how many texts it knows before it forgets old ones.
const (
	echoPause = time.Minute
	mostSaid  = 256
)

func (e *echo) say(text string, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.said[text]
	if s == nil {
		e.forget(now)
		s = &saying{}
		e.said[text] = s
	}
	s.times++
	if now.Sub(s.at) < echoPause {
		return
	}
	e.pass(text, s.times)
	s.at, s.times = now, 0
}

// forget makes room for another text.
func (e *echo) forget(now time.Time) {
	if e.said == nil {
		e.said = map[string]*saying{}
	}
	if len(e.said) < mostSaid {
		return
	}
	for text, s := range e.said {
		if now.Sub(s.at) >= echoPause {
			delete(e.said, text)
		}
	}
}
