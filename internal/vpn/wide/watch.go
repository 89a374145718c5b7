package wide

import "time"

// When a tunnel of a link is probed. One that carries data both ways is not. It is looked at every 0.25 s, sometimes a
// little earlier: the first two times are 0.5 s and 2 s, less that.
const (
	quietPause = 400 * time.Millisecond  // without an answer to what was sent, and between probes then
	quietMost  = 1900 * time.Millisecond // then it does not work
	quietTries = 3                       // and so many probes
	tryPause   = time.Second             // between probes of one that does not work
	slowPause  = 5 * time.Second         // likewise, after fastTries
	fastTries  = 10
	lateProbes = 16 // answers to older probes do not count
)

// A Watch tells whether a tunnel carries packets both ways: a probe as large as packets may be was answered, and since
// then something has come soon after what was sent.
type Watch struct {
	up             bool
	dead           bool      // it was given up, or never worked though it was tried
	deaf           bool      // it was given up, and nothing has come since
	number         uint64    // of the last probe
	asked          time.Time // when that was sent
	tries          int       // probes since something came, or since it works no more
	sent, received uint64    // bytes, when Look was last called
	quiet          time.Time // since when an answer to what was sent is due; zero: it is not
}

// Up reports whether the tunnel works.
func (w *Watch) Up() bool { return w.up }

// Dead reports whether the tunnel does not work although it had time to show that it does.
func (w *Watch) Dead() bool { return w.dead }

// Deaf reports whether nothing comes by the tunnel, so that it was given up. The other end is to be told: perhaps it does
// not notice, as what this end has sent did come.
func (w *Watch) Deaf() bool { return w.deaf }

// Look takes the bytes that have left and come so far, without notes, and whether there are keys. A probe of the other end
// does not tell that anything arrives there.
// It returns the number of the probe that is to be sent now; 0: none.
func (w *Watch) Look(now time.Time, sent, received uint64, keys bool) (probe uint64) {
	if received != w.received {
		w.quiet, w.deaf = time.Time{}, false
		if w.up {
			w.tries = 0
		}
	} else if sent != w.sent && w.quiet.IsZero() {
		w.quiet = now
	}
	w.sent, w.received = sent, received
	if !keys {
		w.up, w.deaf, w.tries, w.asked = false, false, 0, time.Time{}
		return 0
	}
	if w.up && !w.quiet.IsZero() && w.tries >= quietTries && now.Sub(w.quiet) >= quietMost {
		w.up, w.dead, w.deaf, w.tries, w.asked = false, true, true, 0, time.Time{}
	}
	pause := tryPause
	switch {
	case w.up && (w.quiet.IsZero() || now.Sub(w.quiet) < quietPause):
		return 0
	case w.up:
		pause = quietPause
	case w.tries >= fastTries:
		pause = slowPause
	}
	if now.Sub(w.asked) < pause {
		return 0
	}
	if !w.up && w.tries >= quietTries {
		w.dead = true
	}
	w.asked, w.number, w.tries = now, w.number+1, w.tries+1
	return w.number
}

// Answered takes the answer to a probe.
func (w *Watch) Answered(number uint64) {
	if number > w.number || w.number-number >= lateProbes || number == 0 {
		return
	}
	w.up, w.dead, w.deaf, w.tries, w.quiet = true, false, false, 0, time.Time{}
}

// Asked takes a probe of the other end, which may be deaf. Then the tunnel carries nothing to it, whatever comes from it.
func (w *Watch) Asked(deaf bool) {
	if w.deaf = false; deaf && w.up {
		w.up, w.dead, w.tries, w.asked = false, true, 0, time.Time{}
	}
}
