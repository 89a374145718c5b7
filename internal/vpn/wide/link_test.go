package wide

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/internal/vpn/key"
)

var (
	begin  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	three  = []uint16{51821, 51822, 51823}
	single = []uint16{51821}
)

// A pairOfEnds are both ends of a link, and what is between them, in a time of their own.
type pairOfEnds struct {
	now    time.Time
	ends   [2]*Link
	lose   func() bool // whether the next offer is lost
	offers [2]int      // that were sent
	broken bool        // lanes carry nothing
	delay  func() int  // steps for which the next offer is under way; nil: none
	late   []underWay
}

// underWay is an offer that has yet to come.
type underWay struct {
	to, steps int
	note      []byte
}

func newPair(a, b []uint16) *pairOfEnds {
	p := &pairOfEnds{now: begin, ends: [2]*Link{New(), New()}, lose: func() bool { return false }}
	p.ends[0].Be(51820, a, p.now)
	p.ends[1].Be(51820, b, p.now)
	return p
}

// publics has the public keys of private ones, which take long to compute.
var publics = map[key.Secret]key.Public{}

func publicOf(s key.Secret) key.Public {
	k, ok := publics[s]
	if !ok {
		k = s.Public()
		publics[s] = k
	}
	return k
}

// same reports whether a lane of one end is that of the other.
func same(a, b *Lane) bool {
	return a.Place == b.Place && publicOf(a.Private) == b.Peer && publicOf(b.Private) == a.Peer
}

// working returns how many lanes of an end's set the other end has, too.
func (p *pairOfEnds) working(end int, s *Set) (n int) {
	if p.broken {
		return 0
	}
	for _, other := range p.ends[1-end].sets {
		if other.Theirs != s.Mine || other.Mine != s.Theirs {
			continue
		}
		for i := range min(len(s.Lanes), len(other.Lanes)) {
			if same(&s.Lanes[i], &other.Lanes[i]) {
				n++
			}
		}
	}
	return n
}

// step lets a quarter of a second pass. What is offered arrives at its end.
func (p *pairOfEnds) step() {
	p.now = p.now.Add(250 * time.Millisecond)
	var sent [2]*Offer
	for i, l := range p.ends {
		any := false
		for _, s := range l.Sets(p.now) {
			n := p.working(i, s)
			any = any || n > 0
			l.Works(s, n, p.now)
		}
		sent[i] = l.Offer(p.now, any)
	}
	for i, o := range sent {
		if o == nil {
			continue
		}
		p.offers[i]++
		if p.lose() {
			continue
		}
		steps := 0
		if p.delay != nil {
			steps = p.delay()
		}
		p.late = append(p.late, underWay{1 - i, steps, o.Append(nil)})
	}
	p.late = slices.DeleteFunc(p.late, func(u underWay) bool {
		if u.steps > 0 {
			return false
		}
		read, err := ParseOffer(u.note)
		if err != nil {
			panic(err)
		}
		p.ends[u.to].Hear(read, p.now)
		return true
	})
	for i := range p.late {
		p.late[i].steps--
	}
}

func (p *pairOfEnds) steps(d time.Duration) {
	for until := p.now.Add(d); p.now.Before(until); {
		p.step()
	}
}

// restart has a process take the place of an end's.
func (p *pairOfEnds) restart(end int) {
	was := p.ends[end]
	p.ends[end] = New()
	p.ends[end].Rotation = was.Rotation
	p.ends[end].Be(51820, was.others, p.now)
	p.late = slices.DeleteFunc(p.late, func(u underWay) bool { return u.to == end }) // it has no keys to read these with
}

// describe tells what an end knows, without its keys.
func (l *Link) describe(now time.Time) string {
	text := fmt.Sprintf("boot %x mine %x with %x, far boot %x %x with %x moved %v known %v, settled %v asked %d next %v:", l.boot, l.mine, l.with,
		l.far.Boot, l.far.Generation, l.far.With, l.far.Moved, l.far.Known, l.settled(), l.asked, l.next.Sub(now))
	for _, s := range l.sets {
		text += fmt.Sprintf(" [%x %x: %d lanes, proven %v, moved %v, ended %v, made %v ago]", s.Mine, s.Theirs, len(s.Lanes), s.proven, s.moved, s.Ended(), now.Sub(s.made))
	}
	return text
}

// wide reports whether both ends have the same lanes, as many as that, and nothing else.
func (p *pairOfEnds) wide(lanes int) bool {
	for i, l := range p.ends {
		if len(l.sets) != 1 || len(l.sets[0].Lanes) != lanes || p.working(i, l.sets[0]) != lanes || !l.settled() || l.sets[0].Ended() {
			return false
		}
	}
	return true
}

// Two ends agree at once on as many lanes as both have, and are silent then.
func TestAgree(t *testing.T) {
	p := newPair(three, append(three, 51824))
	if p.steps(2 * time.Second); !p.wide(3) {
		t.Fatal("after 2 s the ends do not agree")
	}
	if p.offers[0]+p.offers[1] > 12 {
		t.Errorf("%d offers were sent for that", p.offers)
	}
	before := p.offers
	if p.steps(30 * time.Minute); p.offers != before || !p.wide(3) {
		t.Errorf("in half an hour %v offers were sent after %v", p.offers, before)
	}
	if a, b := p.ends[0].sets[0].Lanes[0], p.ends[0].sets[0].Lanes[1]; a.Private == b.Private || a.Peer == b.Peer {
		t.Error("two lanes have the same key")
	}
}

// Keys are rotated together. At no time is there no set that both ends have and may send by, and no key is used with
// two of the other end's.
func TestRotation(t *testing.T) {
	p := newPair(three, three)
	p.steps(5 * time.Second)
	with := map[key.Public]key.Public{}
	first := p.ends[0].sets[0]
	for range 3 * 4 * 3600 {
		p.step()
		for i, l := range p.ends {
			good := false
			for _, s := range l.sets {
				good = good || !s.Ended() && p.working(i, s) == 3
				for _, lane := range s.Lanes {
					mine := publicOf(lane.Private)
					if was, ok := with[mine]; ok && was != lane.Peer {
						t.Fatal("a key is used with two others")
					}
					with[mine] = lane.Peer
				}
			}
			if !good {
				t.Fatalf("at %v end %d has nothing to send by", p.now.Sub(begin), i)
			}
		}
	}
	if n := len(with) / 6; n < 3 || n > 4 {
		t.Errorf("in three hours there were %d rotations", n)
	}
	if p.steps(time.Minute); !p.wide(3) || p.ends[0].sets[0] == first {
		t.Error("after rotations the ends differ")
	}
}

// The keys of before stay while new ones do not work: here the other end's new offers are lost.
func TestHeld(t *testing.T) {
	p := newPair(three, three)
	p.steps(5 * time.Second)
	first := p.ends[0].sets[0]
	p.ends[0].Rotate(p.now)
	p.lose = func() bool { return true }
	if p.steps(10 * time.Second); !slices.Contains(p.ends[0].sets, first) || first.Ended() || p.working(0, first) != 3 {
		t.Error("while the other end hears nothing, the keys of before are gone")
	}
	lost := 0
	p.lose = func() bool { lost++; return lost < 3 }
	p.steps(3 * time.Minute)
	if slices.Contains(p.ends[0].sets, first) || !p.wide(3) {
		t.Error("after that the keys are not rotated")
	}
}

// An end that restarts has lost its keys: as soon as its first offer comes, nothing is sent by them.
func TestRestart(t *testing.T) {
	for end := range 2 {
		p := newPair(three, three)
		p.steps(5 * time.Second)
		p.restart(end)
		for range 40 {
			p.step()
			other := p.ends[1-end]
			for _, s := range other.sets {
				if other.far.Boot == p.ends[end].boot && !s.Ended() && s.proven && p.working(1-end, s) == 0 {
					t.Fatal("a set is kept that the other end has lost")
				}
			}
		}
		if !p.wide(3) {
			t.Errorf("10 s after a restart of end %d the link is not wide", end)
		}
	}
}

// An end that is wide no more says so; one that is wide again says that. Meanwhile what is under way is received.
func TestOnAndOff(t *testing.T) {
	p := newPair(three, three)
	p.steps(5 * time.Second)
	p.ends[0].Be(51820, nil, p.now)
	p.steps(time.Second)
	for i, l := range p.ends {
		if len(l.sets) != 1 || !l.sets[0].Ended() {
			t.Errorf("end %d sends by lanes, or receives none, after one was switched off", i)
		}
	}
	p.steps(grace)
	if !p.ends[0].Done() || len(p.ends[1].sets) != 0 {
		t.Error("after a while lanes are left")
	}
	if weir, wide := p.ends[1].Known(); !weir || wide {
		t.Errorf("the other end is known as %v, %v", weir, wide)
	}
	before := p.offers
	if p.steps(time.Hour); p.offers != before {
		t.Errorf("%v offers were sent though the link is off", p.offers)
	}
	p.ends[0] = New()
	p.ends[0].Be(51820, single, p.now)
	if p.steps(15 * time.Second); !p.wide(1) {
		t.Error("switched on again it is not wide")
	}
	p.ends[1].Be(51820, single, p.now)
	if p.steps(20 * time.Second); !p.wide(1) {
		t.Error("with other ports it is not wide")
	}
}

// Somebody who never answers is asked seldom, and then no more. Somebody who answered once and is silent then, is asked
// ever less often.
func TestAsks(t *testing.T) {
	l := New()
	l.Be(51820, three, begin)
	sent := 0
	var last time.Duration
	for d := time.Duration(0); d < 24*time.Hour; d += 250 * time.Millisecond {
		if o := l.Offer(begin.Add(d), false); o != nil {
			if sent++; !o.Ask || len(o.Append(nil)) > 200 {
				t.Errorf("an offer of %d bytes: %+v", len(o.Append(nil)), o)
			}
			last = d
		}
	}
	if sent != strangerAsks || last > 70*time.Minute {
		t.Errorf("%d offers were sent, the last after %v", sent, last)
	}
	p := newPair(three, three)
	p.steps(5 * time.Second)
	p.broken, p.lose = true, func() bool { return true }
	p.ends[0].Again(p.now)
	p.ends[0].Again(p.now)
	before := p.offers[0]
	if p.steps(20 * time.Second); len(p.ends[0].sets) != 0 {
		t.Error("keys are kept that the other end says nothing of")
	}
	if n := p.offers[0] - before; n < 4 || n > 6 {
		t.Errorf("%d offers were sent in 20 s", n)
	}
	before = p.offers[0]
	if p.steps(24 * time.Hour); p.offers[0]-before > 40 {
		t.Errorf("%d offers were sent in a day", p.offers[0]-before)
	}
}

// What is said in one offer is not undone by an older one, nor twice by the same.
func TestHear(t *testing.T) {
	p := newPair(three, three)
	p.steps(5 * time.Second)
	l, far := p.ends[0], p.ends[1]
	set := l.sets[0]
	old := &Offer{Boot: far.boot, Number: 1, Port: 51820, Generation: 77, Lanes: []Offered{{7, key.Public{1}}}}
	l.Hear(old, p.now)
	if l.sets[0] != set || l.with == 77 {
		t.Error("an old offer counts")
	}
	far.Rotate(p.now)
	o := far.Offer(p.now.Add(time.Second), true)
	l.Hear(o, p.now)
	made := l.mine
	if l.Hear(o, p.now); l.mine != made {
		t.Error("the same offer counts twice")
	}
	// An offer with keys that nobody knows any more is no harm unless that goes on.
	odd := &Offer{Boot: far.boot, Number: o.Number + 10, Port: 51820, Generation: 78, With: 79, Lanes: []Offered{{7, key.Public{1}}}}
	l.Hear(odd, p.now)
	if l.mine != made {
		t.Error("one odd offer rotates the keys")
	}
	odd.Number++
	if l.Hear(odd, p.now.Add(oddPause)); l.mine == made {
		t.Error("the ends go on to disagree")
	}
}

// Lanes that never work, as their ports are blocked, do not make offers nor new keys.
func TestBlocked(t *testing.T) {
	p := newPair(three, three)
	p.broken = true
	p.steps(time.Minute)
	mine, before := p.ends[0].mine, p.offers
	if p.steps(12 * time.Hour); p.ends[0].mine != mine || p.offers != before {
		t.Errorf("%v offers were sent after %v", p.offers, before)
	}
	if p.ends[0].sets[0].moved {
		t.Error("it has moved to lanes that do not work")
	}
}

// One lane that does not work does not keep the others from being used.
func TestBeside(t *testing.T) {
	p := newPair(three, three)
	l := p.ends[0]
	p.steps(time.Second)
	s := l.sets[0]
	s.moved, s.proven = false, false
	if l.Works(s, 2, s.made.Add(time.Second)); s.Moved() || !s.proven {
		t.Error("it does not wait for the third lane")
	}
	if l.Works(s, 2, s.made.Add(settling)); !s.Moved() {
		t.Error("it waits for the third lane for ever")
	}
}

// Whatever is lost, restarted, rotated and switched: after a while without that, both ends agree.
func TestAgreeAfterAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(three, three)
		rate := rapid.IntRange(0, 9).Draw(t, "loss")
		p.lose = func() bool { return rapid.IntRange(0, 9).Draw(t, "lost") < rate }
		for range rapid.IntRange(1, 12).Draw(t, "events") {
			end := rapid.IntRange(0, 1).Draw(t, "end")
			switch rapid.IntRange(0, 4).Draw(t, "event") {
			case 0:
				p.restart(end)
			case 1:
				p.ends[end].Rotate(p.now)
			case 2:
				p.ends[end].Be(51820, nil, p.now)
			case 3:
				p.ends[end].Be(51820, single, p.now)
			case 4:
				p.broken = !p.broken
			}
			p.steps(time.Duration(rapid.IntRange(0, 40).Draw(t, "quarters")) * 250 * time.Millisecond)
		}
		p.lose, p.broken = func() bool { return false }, false
		for i, l := range p.ends {
			if len(l.others) == 0 {
				p.restart(i) // a process begins a link anew that is switched on again
			}
			p.ends[i].Be(51820, three, p.now)
		}
		p.steps(2 * time.Minute)
		if !p.wide(3) {
			t.Fatalf("the ends do not agree:\n%s\n%s", p.ends[0].describe(p.now), p.ends[1].describe(p.now))
		}
	})
}

// Both ends are switched off, and on again before either has ended: each tells the other.
func TestBothOffAndOn(t *testing.T) {
	p := newPair(three, three)
	p.steps(5 * time.Second)
	for _, ports := range [][]uint16{nil, three} {
		for _, l := range p.ends {
			l.Be(51820, ports, p.now)
		}
		p.steps(time.Second)
	}
	if p.steps(15 * time.Second); !p.wide(3) {
		t.Errorf("the link is not wide again:\n%s\n%s", p.ends[0].describe(p.now), p.ends[1].describe(p.now))
	}
}

// Lanes whose first tunnel has other keys end soon, whether the ends agree on others or not.
func TestRevoke(t *testing.T) {
	p := newPair(three, three)
	p.steps(5 * time.Second)
	a := p.ends[0]
	before := a.sets[0]
	p.lose = func() bool { return true }
	a.Revoke(p.now)
	if p.steps(revoked - time.Second); !slices.Contains(a.sets, before) {
		t.Error("the lanes end before others can work")
	}
	if p.steps(2 * time.Second); slices.Contains(a.sets, before) {
		t.Error("the lanes of before are there")
	}
	p.lose = func() bool { return false }
	if p.steps(5 * time.Minute); !p.wide(3) {
		t.Error("the ends do not agree again")
	}
	a.Drop(p.now)
	if len(a.Sets(p.now)) > 0 {
		t.Error("lanes are there that were dropped")
	}
	if p.steps(5 * time.Minute); !p.wide(3) {
		t.Error("the ends do not agree after that")
	}
}

// However often the keys change before new lanes work, those that do work stay.
func TestProvenStays(t *testing.T) {
	p := newPair(three, three)
	p.steps(5 * time.Second)
	a := p.ends[0]
	proven := a.sets[0]
	for range 2 * mostSets {
		a.Rotate(p.now)
		a.pair(p.now)
		if len(a.sets) > mostSets || !slices.Contains(a.sets, proven) || proven.Ended() {
			t.Fatal("the lanes that work are gone")
		}
	}
}
