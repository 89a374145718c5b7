package failover

import (
	"testing"
	"time"
)

// A world has ways that answer or not, and traffic or none.
type world struct {
	*Link
	now      time.Time
	up       []bool
	answers  []bool
	took     time.Duration
	traffic  bool // the peer answers what is sent, by the way in use
	talks    bool // something is sent
	sent     uint64
	received uint64
	stray    time.Time
	probe    int // under way; -1: none
	probes   []int
	moves    []int
}

const tick = 250 * time.Millisecond

func newWorld(ways int) *world {
	w := &world{now: time.Unix(1000, 0), probe: -1, took: 20 * time.Millisecond, probes: make([]int, ways)}
	w.Link = New(ways, w.now)
	for range ways {
		w.up, w.answers = append(w.up, true), append(w.answers, true)
	}
	return w
}

// run lets time pass. It returns when the way in use has changed first, or 0.
func (w *world) run(d time.Duration) (moved time.Duration) {
	for began := w.now; w.now.Sub(began) < d; w.now = w.now.Add(tick) {
		if w.talks {
			w.sent += 100
			if w.traffic && w.answers[w.At] && w.up[w.At] {
				w.received += 100
			}
		}
		f := &Facts{Now: w.now, Up: w.up, Sent: w.sent, Received: w.received, Stray: w.stray}
		if w.probe >= 0 && w.answers[w.probe] && w.up[w.probe] && w.now.Sub(w.Ways[w.probe].Probed) >= w.took {
			f.Answered, f.Took = true, w.took
			w.received += 92
			w.probe = -1
		}
		s := w.Next(f)
		if s.Move {
			w.moves = append(w.moves, w.At)
			if moved == 0 {
				moved = max(w.now.Sub(began), 1)
			}
		}
		if s.Probe {
			w.Begun(s.Way, w.now)
			w.probe = s.Way
			w.probes[s.Way]++
		}
	}
	return moved
}

// A way that dies without a word is left soon under traffic, and when there is none. One whose interface goes down is
// left at once.
func TestLeave(t *testing.T) {
	for _, c := range []struct {
		name        string
		talks, down bool
		most        time.Duration
	}{{"traffic", true, false, 3250 * time.Millisecond}, {"idle", false, false, 13 * time.Second}, {"down", true, true, 1}} {
		w := newWorld(2)
		w.talks, w.traffic = c.talks, true
		if w.run(time.Minute); len(w.moves) > 0 || !w.Sure || w.Ways[1].Good.IsZero() {
			t.Fatalf("%s: moves to %v without need; %+v", c.name, w.moves, w.Link)
		}
		w.answers[0], w.up[0] = false, !c.down
		if took := w.run(20 * time.Second); took == 0 || took > c.most || len(w.moves) != 1 || w.At != 1 || !w.Sure {
			t.Errorf("%s: moves to %v after %v; %+v", c.name, w.moves, took, w.Link)
		}
	}
}

// The preferred way is used again when it has answered for half a minute, not before.
func TestReturn(t *testing.T) {
	w := newWorld(2)
	w.talks, w.traffic = true, true
	w.run(10 * time.Second)
	w.answers[0] = false
	w.run(20 * time.Second)
	for range 5 { // it comes and goes
		w.answers[0] = true
		w.run(25 * time.Second)
		w.answers[0] = false
		w.run(8 * time.Second)
	}
	if len(w.moves) != 1 {
		t.Errorf("it moves to %v", w.moves)
	}
	w.answers[0] = true
	if took := w.run(time.Minute); took < returnHold || took > returnHold+2*returnPause || w.At != 0 {
		t.Errorf("it comes back after %v: %v", took, w.moves)
	}
}

// One that answers is found among several, and while none does they are not asked all the time.
func TestSeveral(t *testing.T) {
	w := newWorld(4)
	w.talks = true
	w.answers = []bool{false, false, false, true}
	if took := w.run(20 * time.Second); took == 0 || w.At != 3 || !w.Sure {
		t.Errorf("of four ways the last one answers, and it uses %d: %v", w.At, w.moves)
	}
	w.answers[3] = false
	w.run(2 * time.Minute)
	before := w.probes[0] + w.probes[1] + w.probes[2] + w.probes[3]
	w.run(time.Minute)
	if n := w.probes[0] + w.probes[1] + w.probes[2] + w.probes[3] - before; n > 13 || n < 10 {
		t.Errorf("while no way answers, %d probes are sent in a minute", n)
	}
	w.answers[1] = true
	if w.run(time.Minute); w.At != 1 || !w.Sure {
		t.Errorf("the second one answers again, and it uses %d: %v", w.At, w.moves)
	}
}

// What is sent may be lost though something comes: by another way, or by none that can be told.
func TestOneWay(t *testing.T) {
	w := newWorld(2)
	w.run(10 * time.Second)
	w.answers[0] = false
	w.talks = true
	comes := func() { w.received += 1000 }
	for w.At == 0 && w.now.Before(time.Unix(1100, 0)) {
		comes()
		w.run(tick)
	}
	if took := w.now.Sub(time.Unix(1010, 0)); w.At != 1 || took > verify+3*time.Second {
		t.Errorf("what comes hides for %v that what is sent is lost", took)
	}
	w = newWorld(2)
	w.run(10 * time.Second)
	w.answers[0] = false
	began := w.now
	for w.At == 0 && w.now.Sub(began) < time.Minute {
		comes()
		w.stray = w.now
		w.run(tick)
	}
	if took := w.now.Sub(began); w.At != 1 || took > 3*time.Second {
		t.Errorf("the peer comes by another way, which is followed after %v", took)
	}
}

// A long round trip is no loss.
func TestFar(t *testing.T) {
	w := newWorld(2)
	w.took, w.talks = 650*time.Millisecond, true
	if w.run(2 * time.Minute); len(w.moves) > 0 {
		t.Errorf("it moves to %v", w.moves)
	}
	w.took = 1500 * time.Millisecond
	if w.run(2 * time.Minute); len(w.moves) > 0 {
		t.Errorf("after the round trip has become longer, it moves to %v", w.moves)
	}
}

// With one way there is nothing to choose.
func TestAlone(t *testing.T) {
	w := newWorld(1)
	w.talks = true
	w.answers[0] = false
	w.run(time.Minute)
	w.up[0] = false
	if w.run(time.Minute); len(w.moves) > 0 {
		t.Errorf("it moves to %v", w.moves)
	}
}
