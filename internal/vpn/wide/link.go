package wide

import (
	"crypto/rand"
	"encoding/binary"
	"slices"
	"time"

	"weir/internal/vpn/key"
)

// When offers are sent, and how long lanes stay.
const (
	leastPause   = 200 * time.Millisecond // between two offers, whatever comes
	askPause     = time.Second            // before an offer is sent again that was not answered; it doubles
	mostPause    = time.Hour
	strangerAsks = 12               // to who has never answered and may be no weir: within 68 minutes, and then none
	revoked      = 30 * time.Second // for which lanes stay whose first tunnel has other keys
	farewells    = 8                // that the link is wide no more
	silence      = 4                // offers without an answer: the other end has lost its keys, or is another program
	grace        = 10 * time.Second // for which lanes stay that nobody sends by any more
	settling     = 15 * time.Second // within which all lanes should work; those that do not are left out after that
	proving      = time.Minute      // within which one of a new set should
	oddPause     = 5 * time.Second  // for which the ends may disagree on keys
	pairPause    = time.Second      // between two agreements, whatever the other end says
	mostSets     = 4                // whatever happens
	mostOver     = 16               // processes of the other end that are remembered
)

// Late is for how long an offer may be under way: no keys of a session are good for longer.
const Late = 3 * time.Minute

// Rotation is how long the keys of lanes are used.
const Rotation = time.Hour

// A Link is one end of a link. Whoever has it sends what Offer returns, has Hear get what comes, and has the lanes of
// Sets. It is not safe for use by several goroutines.
type Link struct {
	Rotation time.Duration // how long keys are used

	boot, number uint64
	port         uint16
	others       []uint16 // this end's ports beside the first; none: the link is not to be wide

	mine    uint64 // the generation of this end's keys; 0: none
	secrets []key.Secret
	made    time.Time
	with    uint64 // the generation of the other end's that they are used with; 0: none yet
	sets    []*Set // the newest first, one before it that still works, and those that nothing is sent by
	failed  int    // sets that did not work, one after the other

	far    Offer  // what the other end said last; no Boot: nothing
	over   []over // its processes of before
	paired time.Time
	waits  bool   // what it said is too early after that
	answer bool   // it asks
	asking uint64 // the generation that was last asked with
	told   uint64 // the last that something came after
	asked  int    // offers since it was last heard
	next   time.Time
	sent   time.Time
	odd    time.Time // since when the ends disagree; zero: they do not
}

// over is a process of the other end that another one has taken the place of.
type over struct {
	boot   uint64
	since  time.Time
	number uint64    // of the last offer that has come from it since
	again  time.Time // when the first did
}

// A Set is the lanes for one generation of keys of each end.
type Set struct {
	Mine, Theirs uint64
	Lanes        []Lane

	made   time.Time
	proven bool      // a lane of it has worked
	moved  bool      // this end sends with it, and with none of before
	ends   time.Time // zero: it is in use
	last   time.Time // when it goes even if it is in use; zero: it may stay
}

// A Lane is a tunnel beside the first one.
type Lane struct {
	Place   uint8 // of its port, among this end's; the first is 0
	Private key.Secret
	Peer    key.Public
	Port    uint16 // of the other end, as that knows it
}

// Ended reports whether nothing may be sent by the set any more.
func (s *Set) Ended() bool { return !s.ends.IsZero() }

// Moved reports whether nothing may be sent by a set of before it.
func (s *Set) Moved() bool { return s.moved }

// New returns an end of a link that is not wide yet.
func New() *Link { return &Link{boot: random(), Rotation: Rotation} }

// random returns a number that is not zero.
func random() uint64 {
	var b [8]byte
	for {
		rand.Read(b[:]) //nolint:errcheck // it never fails
		if n := binary.BigEndian.Uint64(b[:]); n != 0 {
			return n
		}
	}
}

// Be has this end have these ports. With no others the link is wide no more. Other ports need other keys.
func (l *Link) Be(first uint16, others []uint16, now time.Time) {
	if l.port == first && slices.Equal(l.others, others) {
		return
	}
	l.port, l.others = first, slices.Clone(others)
	l.Rotate(now)
}

// Rotate has this end have other keys, and asks the other end for the same. Those of before are used until both ends
// have moved.
func (l *Link) Rotate(now time.Time) {
	l.mine, l.secrets, l.with, l.made = 0, nil, 0, now
	if len(l.others) > 0 {
		l.mine = random()
		for range l.others {
			l.secrets = append(l.secrets, key.NewPrivate())
		}
	} else {
		l.end(now)
	}
	l.changed(now)
}

// Revoke does the same as the first tunnel has other keys. Those of before end soon, whether others work or not.
func (l *Link) Revoke(now time.Time) {
	for _, s := range l.sets {
		if s.last.IsZero() {
			s.last = now.Add(revoked)
		}
	}
	l.Rotate(now)
}

// Drop has no lanes be there from now on, until the ends agree on others.
func (l *Link) Drop(now time.Time) {
	l.sets = nil
	l.Rotate(now)
}

// changed has the other end be told.
func (l *Link) changed(now time.Time) { l.next, l.asked = now, 0 }

// end has nothing be sent by lanes any more.
func (l *Link) end(now time.Time) {
	for _, s := range l.sets {
		if s.ends.IsZero() {
			s.ends = now.Add(grace)
		}
	}
}

// Known reports whether the other end is known to be a weir, and whether it has the link be wide.
func (l *Link) Known() (weir, wide bool) { return l.far.Boot != 0, l.far.Generation != 0 }

// FarPort returns the first port of the other end as that knows it; 0: it has not said so.
func (l *Link) FarPort() uint16 { return l.far.Port }

// Hear takes an offer of the other end.
func (l *Link) Hear(o *Offer, now time.Time) {
	if o.Boot == l.far.Boot && o.Number <= l.far.Number || l.isOver(o, now) {
		return // it is older than what is known
	}
	restarted := l.far.Boot != 0 && o.Boot != l.far.Boot
	if restarted {
		if len(l.over) == mostOver {
			l.over = slices.Delete(l.over, 0, 1)
		}
		l.over = append(l.over, over{boot: l.far.Boot, since: now})
	}
	l.far, l.asked = *o, 0
	l.answer, l.told = l.answer || o.Ask, l.asking
	if l.next = now.Add(askPause); restarted {
		l.sets = nil // it has lost its keys: nothing may be sent to it that it cannot read
		if l.with != 0 && o.With != l.mine {
			l.Rotate(now)
		}
	}
	l.judge(now)
}

// isOver reports whether an offer is of a process that another one has taken the place of. If it goes on, the offers of the
// two have come in another order.
func (l *Link) isOver(o *Offer, now time.Time) bool {
	l.over = slices.DeleteFunc(l.over, func(is over) bool { return now.Sub(is.since) >= Late })
	at := slices.IndexFunc(l.over, func(is over) bool { return is.boot == o.Boot })
	if at < 0 {
		return false
	}
	is := &l.over[at]
	if o.Number > is.number {
		if is.number = o.Number; is.again.IsZero() {
			is.again = now
		} else if now.Sub(is.again) >= oddPause {
			l.over = slices.Delete(l.over, at, at+1)
			return false
		}
	}
	return true
}

// judge does what the other end's last offer asks for.
func (l *Link) judge(now time.Time) {
	l.waits = false
	if l.mine == 0 {
		return // this end says so
	}
	o, odd := &l.far, false
	switch {
	case o.Generation == 0:
		if l.end(now); l.with != 0 {
			l.Rotate(now)
		}
	case l.with == o.Generation && (o.With == l.mine || o.With == 0): // it is so, or the other end will hear of it
	case l.with != 0 && o.With == l.mine: // no key is used with two others
		l.Rotate(now)
	case o.With == l.mine || o.With == 0:
		if l.waits = now.Sub(l.paired) < pairPause; l.waits {
			break
		}
		if l.with != 0 { // likewise
			l.Rotate(now)
		}
		l.pair(now)
	default: // it answers what was offered before, unless that goes on
		odd = true
	}
	if !odd {
		l.odd = time.Time{}
	} else if l.odd.IsZero() {
		l.odd = now
	} else if now.Sub(l.odd) >= oddPause {
		l.odd = time.Time{}
		l.Rotate(now)
	}
}

// pair has the keys of both ends be used with each other.
func (l *Link) pair(now time.Time) {
	l.with, l.paired = l.far.Generation, now
	s := &Set{Mine: l.mine, Theirs: l.with, made: now}
	for i := range min(len(l.secrets), len(l.far.Lanes)) {
		s.Lanes = append(s.Lanes, Lane{uint8(i + 1), l.secrets[i], l.far.Lanes[i].Key, l.far.Lanes[i].Port})
	}
	kept := false // one to send by until the new one works
	for _, was := range l.sets {
		switch {
		case !was.ends.IsZero():
		case !kept && was.proven:
			kept = true
		default:
			was.ends = now.Add(grace) // the other end may still send by it
		}
	}
	for len(l.sets) >= mostSets { // all but one have ended
		at := len(l.sets) - 1
		for at > 0 && !l.sets[at].Ended() {
			at--
		}
		l.sets = slices.Delete(l.sets, at, at+1)
	}
	l.sets = append([]*Set{s}, l.sets...)
	l.changed(now)
}

// current returns the set of the keys that were agreed on last, or nil.
func (l *Link) current() *Set {
	if len(l.sets) == 0 || l.with == 0 || l.sets[0].Mine != l.mine || l.sets[0].Theirs != l.with {
		return nil
	}
	return l.sets[0]
}

// agreed reports whether the other end uses the same keys.
func (l *Link) agreed() bool {
	return l.with != 0 && l.far.Generation == l.with && l.far.With == l.mine
}

// Agreed reports whether both ends know which keys they use.
func (l *Link) Agreed() bool { return l.agreed() }

// settled reports whether the other end knows what this one has to say.
func (l *Link) settled() bool {
	switch {
	case l.far.Boot == 0:
		return false
	case l.mine == 0:
		return l.far.With == 0
	case l.far.Generation == 0:
		return l.told == l.mine // then it begins if it wants to
	}
	s := l.current()
	return l.agreed() && s != nil && (!s.moved || l.far.Known)
}

// Offer returns what is to be sent to the other end now, or nil. working says whether any lane works.
func (l *Link) Offer(now time.Time, working bool) *Offer {
	if now.Sub(l.sent) < leastPause {
		return nil
	}
	ask := !l.settled() && !now.Before(l.next)
	switch {
	case l.far.Boot == 0 && l.asked >= strangerAsks, l.mine == 0 && l.asked >= farewells:
		ask = false
	case ask && l.far.Boot != 0 && l.asked >= silence && !working && len(l.sets) > 0:
		asked := l.asked
		l.sets = nil
		l.Rotate(now)
		l.asked = asked
	}
	if !ask && !l.answer {
		return nil
	}
	if ask {
		l.next = now.Add(min(askPause<<min(l.asked, 20), mostPause))
		l.asked++
		l.asking = l.mine
	}
	l.number++
	o := &Offer{Boot: l.boot, Number: l.number, Port: l.port, Generation: l.mine, With: l.with, Ask: ask}
	if s := l.current(); s != nil {
		o.Moved = s.moved
	}
	o.Known = l.agreed() && l.far.Moved
	for i, port := range l.others {
		o.Lanes = append(o.Lanes, Offered{port, l.secrets[i].Public()})
	}
	l.answer, l.sent = false, now
	return o
}

// Again has the other end be asked at once, if it was heard before: it may have lost its keys, or may be back.
func (l *Link) Again(now time.Time) {
	if l.mine == 0 || l.far.Generation == 0 || !l.settled() {
		return
	}
	l.far.With = 0 // not known any more
	l.changed(now)
}

// Works tells how many lanes of a set work.
func (l *Link) Works(s *Set, lanes int, now time.Time) {
	if lanes == 0 || s != l.current() {
		return
	}
	if s.proven, l.failed = true, 0; !s.moved && (lanes == len(s.Lanes) || now.Sub(s.made) >= settling) {
		s.moved = true
		l.changed(now)
	}
}

// spare reports whether a set of before the newest may be sent by.
func (l *Link) spare() bool {
	return slices.ContainsFunc(l.sets[1:], func(s *Set) bool { return !s.Ended() })
}

// Sets returns the lanes that there are to be, those with the newest keys first.
func (l *Link) Sets(now time.Time) []*Set {
	if l.waits && now.Sub(l.paired) >= pairPause {
		l.judge(now)
	}
	both := false
	if s := l.current(); s != nil {
		both = s.moved && l.agreed() && l.far.Moved
		switch {
		case both && now.Sub(l.made) >= l.Rotation:
			l.Rotate(now)
		case l.spare() && !s.proven && now.Sub(s.made) >= proving<<min(l.failed, 6):
			l.failed++
			l.Rotate(now)
		}
	}
	if both {
		for _, s := range l.sets[1:] {
			if s.ends.IsZero() {
				s.ends = now.Add(grace)
			}
		}
	}
	l.sets = slices.DeleteFunc(l.sets, func(s *Set) bool {
		return s.Ended() && !now.Before(s.ends) || !s.last.IsZero() && !now.Before(s.last)
	})
	return l.sets
}

// Done reports whether nothing is left to do for a link that is wide no more.
func (l *Link) Done() bool {
	return l.mine == 0 && len(l.sets) == 0 && (l.settled() || l.asked >= farewells || l.far.Boot == 0)
}
