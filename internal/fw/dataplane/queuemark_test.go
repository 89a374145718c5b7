package dataplane

import "testing"

// A TCP sender that gets a mark slows down a round trip later, and says so (CWR: RFC 3168, 6.1.2). One mark is enough for
// that: a second one would halve its rate. Its packets come in bursts, one in each round trip.
func TestQueueMarkIsAwaited(t *testing.T) {
	const rate, trip, fast, slow = 50_000_000, 50, 1.19, 0.83 // trip: milliseconds; fast, slow: of the rate, before and after
	for burst := 30; burst <= trip; burst += 10 {             // milliseconds that a burst takes
		s := oneClass(rate)
		s.Classes[0].ECN = true
		h := newQueueHarness(t, 1000, s)
		f := flow{number: 1, host: 1, bytes: 1538, ecn: true}
		due, told, marked, later, lost := 0.0, 0, 0, 0, 0
		for at := 0; at < 60_000 && (told == 0 || at < told+8*trip); at++ {
			part := 0.9
			switch {
			case told > 0 && at >= told+trip: // by and by, over a round trip (RFC 6937)
				part = fast - (fast-slow)*min(1, float64(at-told-trip)/trip)
			case at > 5000: // like CUBIC that probes
				part = fast
			case at > 3000 && at < 3500: // it is told in its start
				part = 1.1
			}
			f.cwr = f.cwr || told > 0 && at == told+trip
			if at%trip < burst {
				due += part * rate / 8 / 1000 / 1538 * trip / float64(burst)
			}
			n := int(due)
			due -= float64(n)
			passed, m := h.send(&f, n)
			h.tick()
			if at <= 5000 {
				continue
			}
			if m > 0 && told == 0 {
				told = at
			}
			lost += n - passed
			if told > 0 && at >= told+trip {
				later += m
			} else {
				marked += m
			}
		}
		t.Logf("bursts of %d ms: %d marks until the sender has heard, %d later, %d packets lost", burst, marked, later, lost)
		if marked == 0 || later > 0 || lost > 0 {
			t.Errorf("bursts of %d ms: %d marks until the sender has heard, %d later, %d packets lost; want some, and then none", burst, marked, later, lost)
		}
	}
}

// A sender that does not say that it has heard gets further marks, as with UDP and QUIC.
func TestQueueMarksGoOn(t *testing.T) {
	const rate = 50_000_000
	s := oneClass(rate)
	s.Classes[0].ECN = true
	h := newQueueHarness(t, 1000, s)
	f := flow{number: 1, host: 1, bytes: 1538, ecn: true}
	var due float64
	var marks []int // milliseconds
	for at := 0; at < 30_000 && len(marks) < 2; at++ {
		part := 0.9
		switch {
		case at > 5000:
			part = 1.02
		case at > 3000 && at < 3500: // it is told in its start
			part = 1.1
		}
		due += part * rate / 8 / 1000 / 1538
		n := int(due)
		due -= float64(n)
		_, marked := h.send(&f, n)
		h.tick()
		if at > 5000 && marked > 0 && (len(marks) == 0 || at > marks[0]+20) {
			marks = append(marks, at)
		}
	}
	t.Logf("marks at %d ms", marks)
	// It owes 1.75 shares after 8.7 s, and comes to the last sixteenth, where all are marked, 0.94 s later.
	if len(marks) < 2 || marks[0] > 14_000 || marks[1]-marks[0] > 700 {
		t.Errorf("marks at %d ms, want one before 14000, and another within 700", marks)
	}
}
