package wide

import (
	"testing"
	"time"
)

// A watched is a tunnel in a time of its own.
type watched struct {
	Watch
	now            time.Time
	sent, received uint64
	deaf           bool // nothing is answered
	probes         int
}

func (w *watched) pass(d time.Duration, each func()) {
	for until := w.now.Add(d); w.now.Before(until); {
		w.now = w.now.Add(250 * time.Millisecond)
		each()
		if n := w.Look(w.now, w.sent, w.received, true); n != 0 {
			if w.probes++; !w.deaf {
				w.Answered(n)
			}
		}
	}
}

func idle() {}

func TestWatch(t *testing.T) {
	w := &watched{now: begin}
	if w.Look(w.now, 0, 0, false) != 0 || w.Up() {
		t.Error("a tunnel without keys is probed")
	}
	if w.pass(time.Second, idle); !w.Up() {
		t.Fatal("a tunnel that answers does not work")
	}
	w.probes = 0
	if w.pass(time.Hour, idle); w.probes != 0 || !w.Up() {
		t.Errorf("an idle tunnel is probed %d times", w.probes)
	}
	both := func() { w.sent += 100; w.received += 100 }
	if w.pass(time.Minute, both); w.probes != 0 || !w.Up() {
		t.Errorf("a tunnel that carries data both ways is probed %d times", w.probes)
	}
	oneWay := func() { w.sent += 100 }
	if w.pass(time.Minute, oneWay); w.probes < 50 || w.probes > 125 || !w.Up() {
		t.Errorf("a tunnel that carries data one way is probed %d times in a minute", w.probes)
	}
	w.deaf = true
	if w.pass(quietMost-500*time.Millisecond, oneWay); !w.Up() {
		t.Error("it is given up too early")
	}
	if w.pass(time.Second, oneWay); w.Up() {
		t.Error("it is not given up")
	}
	w.probes = 0
	if w.pass(time.Minute, idle); w.probes < 15 || w.probes > 25 {
		t.Errorf("a tunnel that does not work is probed %d times in a minute", w.probes)
	}
	w.received += 1000 // what comes does not tell that anything arrives there
	if w.pass(time.Second, idle); w.Up() {
		t.Error("it works again without an answer")
	}
	w.Answered(w.number + 1)
	w.Answered(0)
	if w.Up() {
		t.Error("an answer to no probe counts")
	}
	w.deaf = false
	if w.pass(6*time.Second, idle); !w.Up() {
		t.Error("it does not work again")
	}
	if w.Look(w.now, w.sent, w.received, false); w.Up() {
		t.Error("it works without keys")
	}
}

// Two ends of a tunnel that carries nothing one way: the end that nothing comes to gives it up, and tells the other, which
// would not notice.
func TestOneWay(t *testing.T) {
	for _, blocked := range []int{0, 1} {
		both := [2]*watched{{now: begin}, {now: begin}}
		shut := false
		step := func() {
			for i, w := range both {
				other := both[1-i]
				w.now = w.now.Add(250 * time.Millisecond)
				if w.sent += 100; w.Up() && !(shut && i == blocked) {
					other.received += 100
				}
				n := w.Look(w.now, w.sent, w.received, true)
				if n == 0 || shut && i == blocked {
					continue
				}
				other.Asked(w.Deaf())
				if !shut || 1-i != blocked {
					w.Answered(n)
				}
			}
		}
		for range 40 {
			step()
		}
		if !both[0].Up() || !both[1].Up() || both[0].Deaf() || both[1].Deaf() {
			t.Fatal("a tunnel that carries all does not work")
		}
		shut = true
		began := both[0].now
		for both[0].Up() || both[1].Up() {
			if step(); both[0].now.Sub(began) > time.Minute {
				t.Fatal("it is not given up")
			}
		}
		if took := both[0].now.Sub(began); took < quietMost || took > quietMost+750*time.Millisecond {
			t.Errorf("a tunnel that carries nothing from end %d was given up after %v", blocked, took)
		}
		for range 100 {
			if step(); both[0].Up() || both[1].Up() {
				t.Fatal("it works again")
			}
		}
		shut = false
		for range 24 {
			step()
		}
		if !both[0].Up() || !both[1].Up() || both[0].Deaf() || both[1].Deaf() {
			t.Error("it does not work again")
		}
	}
}
