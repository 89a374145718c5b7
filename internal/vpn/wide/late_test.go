package wide

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/internal/vpn/key"
)

// An uses knows which keys were used with which.
type uses map[key.Public]key.Public

// twice returns a key that is used with two others.
func (u uses) twice(p *pairOfEnds) (k key.Public, found bool) {
	for _, l := range p.ends {
		for _, s := range l.sets {
			for _, lane := range s.Lanes {
				mine := publicOf(lane.Private)
				if was, ok := u[mine]; ok && was != lane.Peer {
					return mine, true
				}
				u[mine] = lane.Peer
			}
		}
	}
	return k, false
}

// Offers that are under way for long, and come in any order, have no key be used with two others. An end agrees at most
// once in a second, and both agree when all has come.
func TestLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(three, three)
		longest := rapid.IntRange(1, 24).Draw(t, "quarters at most")
		p.delay = func() int { return rapid.IntRange(0, longest).Draw(t, "quarters") }
		with := uses{}
		var paired [2][]time.Time
		for range rapid.IntRange(1, 8).Draw(t, "events") {
			end := rapid.IntRange(0, 1).Draw(t, "end")
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0:
				p.restart(end)
				paired[end] = nil
			case 1:
				p.ends[end].Rotate(p.now)
			case 2:
				p.ends[0].Rotate(p.now)
				p.ends[1].Rotate(p.now)
			}
			for range rapid.IntRange(0, 60).Draw(t, "steps") {
				p.step()
				if k, twice := with.twice(p); twice {
					t.Fatalf("%v is used with two others", k)
				}
				for i, l := range p.ends {
					if n := len(paired[i]); !l.paired.IsZero() && (n == 0 || paired[i][n-1] != l.paired) {
						if n > 0 && l.paired.Sub(paired[i][n-1]) < pairPause {
							t.Fatalf("end %d agrees twice within %v", i, l.paired.Sub(paired[i][n-1]))
						}
						paired[i] = append(paired[i], l.paired)
					}
				}
			}
		}
		p.delay = nil
		if p.steps(2 * time.Minute); !p.wide(3) {
			t.Fatalf("the ends do not agree:\n%s\n%s", p.ends[0].describe(p.now), p.ends[1].describe(p.now))
		}
	})
}

// An offer with other keys than were agreed on, that says they are used with ours, does not have ours be used twice: its
// sender has heard what we offered before, and rotates at the same time.
func TestCrossing(t *testing.T) {
	p := newPair(three, three)
	p.steps(5 * time.Second)
	l, far := p.ends[0], p.ends[1]
	mine := l.mine
	o := far.Offer(p.now, true)
	if o == nil {
		o = &Offer{Boot: far.boot, Number: far.number + 1, Port: 51820}
	}
	o.Generation, o.With, o.Lanes = 77, mine, []Offered{{7, key.Public{1}}}
	l.Hear(o, p.now)
	if l.mine == mine {
		t.Error("the keys of before are used with others")
	}
	for _, s := range l.sets {
		if s.Mine == mine && s.Theirs == 77 {
			t.Error("there are lanes with one key of before and one of now")
		}
	}
	far.number = o.Number
	if p.steps(time.Minute); !p.wide(3) {
		t.Error("the ends do not agree after that")
	}
}

// Whatever the other end offers, it has new lanes made once in a second, and those of its last offer at the end.
func TestHostileOffers(t *testing.T) {
	l := New()
	l.Be(51820, three, begin)
	made, last := 0, uint64(0)
	seen := []*Set{}
	now := begin
	for i := range uint64(256 * 10) {
		now = now.Add(time.Second / 256)
		last = 1000 + i
		l.Hear(&Offer{Boot: 1 + i/300, Number: i + 1, Port: 1, Generation: last, Lanes: []Offered{{7, key.Public{1}}}}, now)
		for _, s := range l.Sets(now) {
			if !slices.Contains(seen, s) {
				seen = append(seen, s)
				made++
			}
		}
	}
	if made > 11 {
		t.Errorf("in 10 s lanes were made %d times", made)
	}
	if l.Sets(now.Add(pairPause)); l.with != last {
		t.Errorf("the last offer, %d, does not count: %d", last, l.with)
	}
	if len(l.over) > mostOver {
		t.Errorf("%d processes are remembered", len(l.over))
	}
}

// An offer of a process that is over, which was under way for long, changes nothing. It is forgotten when nothing of it can
// come any more.
func TestOver(t *testing.T) {
	p := newPair(three, three)
	p.steps(5 * time.Second)
	was := p.ends[1]
	p.restart(1)
	if p.steps(10 * time.Second); !p.wide(3) {
		t.Fatal("the ends do not agree after a restart")
	}
	l := p.ends[0]
	set, mine := l.sets[0], l.mine
	was.Rotate(p.now)
	late := was.Offer(p.now, false)
	l.Hear(late, p.now)
	if l.mine != mine || len(l.sets) != 1 || l.sets[0] != set || l.far.Boot != p.ends[1].boot {
		t.Error("the process of before counts again")
	}
	late.Number++
	if l.Hear(late, p.now.Add(time.Second)); l.far.Boot == was.boot {
		t.Error("a second one counts")
	}
	if before := p.offers; !p.wide(3) {
		t.Error("the lanes are gone")
	} else if p.steps(time.Minute); p.offers != before {
		t.Errorf("%v offers were sent after %v", p.offers, before)
	}
	late.Number++
	if l.isOver(late, p.now) {
		t.Error("a process that goes on is taken for one that is over")
	}
	l.over = []over{{boot: was.boot, since: p.now}}
	if l.isOver(late, p.now.Add(Late)) || len(l.over) != 0 {
		t.Error("the process of before is remembered for ever")
	}
}
