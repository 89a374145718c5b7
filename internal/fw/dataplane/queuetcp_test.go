package dataplane

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weir/internal/fw/shaper"
)

// A cubic is a TCP connection with CUBIC (RFC 9438), a packet at a time: slow start, one
// reduction for each window with losses or marks, packets sent as others are acknowledged.
type cubic struct {
	flow
	rtt    time.Duration
	window float64 // packets
	thresh float64
	most   float64 // window before the last reduction
	epoch  time.Duration
	since  time.Duration // of the last reduction
	flight int
	events []cubicEvent // by time
	passed int
	lost   int
	late   int // lost after the start
	marked int
	per    []int // packets passed in each 250 ms
}

type cubicEvent struct {
	at          time.Duration
	acked, lost int
	marked      bool
}

func newCubic(number uint32, host uint64, rtt time.Duration) *cubic {
	return &cubic{flow: flow{number: number, host: host, bytes: 1538}, rtt: rtt, window: 10, thresh: math.Inf(1)}
}

// offer handles what has come back, and sends what the window lets go.
func (c *cubic) offer(h *queueHarness, at time.Duration) {
	reduce := false
	for len(c.events) > 0 && c.events[0].at <= at {
		e := c.events[0]
		c.events = c.events[1:]
		c.flight -= e.acked + e.lost
		reduce = reduce || e.lost > 0 || e.marked && c.ecn
		c.grow(e.acked, at)
	}
	if reduce && at-c.since > c.rtt {
		c.most, c.since, c.epoch = c.window, at, at
		c.window = max(c.window*0.7, 2)
		c.thresh = c.window
		c.cwr = c.ecn
	}
	room := int(c.window) - c.flight
	if room <= 0 {
		return
	}
	room = min(room, 400) // a millisecond of a fast link
	passed, marked := h.send(&c.flow, room)
	if at > 3*time.Second {
		c.late += room - passed
	}
	c.flight += room
	c.passed += passed
	c.lost += room - passed
	c.marked += marked
	slot := int(at / (250 * time.Millisecond))
	for len(c.per) <= slot {
		c.per = append(c.per, 0)
	}
	c.per[slot] += passed
	c.events = append(c.events, cubicEvent{at + c.rtt, passed, room - passed, marked > 0})
}

func (c *cubic) grow(acked int, at time.Duration) {
	if c.window < c.thresh {
		c.window += float64(acked)
		return
	}
	const scale, beta = 0.4, 0.7
	k := math.Cbrt(c.most * (1 - beta) / scale)
	target := scale*math.Pow((at-c.epoch+c.rtt).Seconds()-k, 3) + c.most
	reno := c.most*beta + 3*(1-beta)/(1+beta)*(at-c.epoch).Seconds()/c.rtt.Seconds()
	target = max(target, reno)
	if target > c.window {
		c.window += (min(target, 1.5*c.window) - c.window) / c.window * float64(acked)
	} else {
		c.window += float64(acked) / (100 * c.window)
	}
}

// A prober is a TCP connection that measures what gets through and sends at that rate, as BBR
// does: a quarter more for one round trip in eight, and a quarter less for the next. It starts
// by 2.89 times until that brings no more. It cares for neither losses nor marks.
type prober struct {
	flow
	rtt     time.Duration
	began   time.Duration // of the present round trip
	round   int           // packets that have passed in it
	rates   []float64     // packets per millisecond that have passed, of the last round trips
	started bool
	phase   int
	credit  float64 // packets that it may send
	passed  int
}

func newProber(number uint32, host uint64, rtt time.Duration) *prober {
	return &prober{flow: flow{number: number, host: host, bytes: 1538}, rtt: rtt, rates: []float64{10 / float64(rtt.Milliseconds())}}
}

func (p *prober) offer(h *queueHarness, at time.Duration) {
	if at-p.began >= p.rtt {
		p.measure(float64(p.round) / float64(p.rtt.Milliseconds()))
		p.began, p.round = at, 0
	}
	gain := []float64{1.25, 0.75, 1, 1, 1, 1, 1, 1}[p.phase%8]
	if !p.started {
		gain = 2.89
	}
	p.credit += slices.Max(p.rates) * gain
	packets := min(int(p.credit), 400) // a millisecond of a fast link
	p.credit -= math.Floor(p.credit)
	if packets == 0 {
		return
	}
	passed, _ := h.send(&p.flow, packets)
	p.round += passed
	p.passed += passed
}

// measure ends a round trip, in which packets have passed at this rate.
func (p *prober) measure(rate float64) {
	const rounds = 10
	n := len(p.rates)
	p.started = p.started || n > 3 && rate < 1.25*p.rates[n-3]
	p.rates = append(p.rates, rate)[max(n+1-rounds, 0):]
	p.phase++
}

// jain returns Jain's index of fairness.
func jain(values []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range values {
		sum, squares = sum+v, squares+v*v
	}
	return sum * sum / (float64(len(values)) * squares)
}

// together returns what connections have sent in each 250 ms, in parts of a rate.
func together(all []*cubic, rate float64) []float64 {
	var slots []float64
	for _, f := range all {
		for i, n := range f.per {
			if i == len(slots) {
				slots = append(slots, 0)
			}
			slots[i] += float64(n) * 1538 * 8 * 4 / rate
		}
	}
	return slots
}

// highest returns the highest mean of n slots in a row.
func highest(slots []float64, n int) float64 {
	most := 0.0
	for i := range len(slots) - n + 1 {
		sum := 0.0
		for _, v := range slots[i : i+n] {
			sum += v
		}
		most = max(most, sum/float64(n))
	}
	return most
}

// How much of a rate CUBIC connections get.
func TestQueueCubic(t *testing.T) {
	const length = 20 * time.Second
	for _, c := range []struct {
		name  string
		rate  uint64
		rtts  []time.Duration
		ecn   bool
		least float64
	}{
		{"50M 50ms", 50_000_000, []time.Duration{50}, false, 0.95},
		{"50M 100ms", 50_000_000, []time.Duration{100}, false, 0.95},
		{"200M 50ms", 200_000_000, []time.Duration{50}, false, 0.95},
		{"200M 100ms", 200_000_000, []time.Duration{100}, false, 0.88},
		{"1G 10ms", 1_000_000_000, []time.Duration{10}, false, 0.90},
		// Round trips that the window is no multiple of: it may hold two bursts.
		{"20M 94ms", 20_000_000, []time.Duration{94}, false, 0.93},
		{"50M 88ms", 50_000_000, []time.Duration{88}, false, 0.93},
		{"200M 82ms", 200_000_000, []time.Duration{82}, false, 0.85},
		{"50M 50ms ecn", 50_000_000, []time.Duration{50}, true, 0.93},
		{"50M 100ms ecn", 50_000_000, []time.Duration{100}, true, 0.88},
		{"50M eight ecn", 50_000_000, []time.Duration{20, 20, 20, 20, 20, 20, 20, 20}, true, 0.95},
		{"50M four ecn", 50_000_000, []time.Duration{20, 50, 100, 20}, true, 0.95},
		{"50M two ecn", 50_000_000, []time.Duration{10, 100}, true, 0.95},
		{"50M eight", 50_000_000, []time.Duration{10, 50, 100, 10, 50, 100, 10, 50}, false, 0.98},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := oneClass(c.rate)
			s.Classes[0].ECN = c.ecn
			h := newQueueHarness(t, 1000, s)
			var all []*cubic
			for i, rtt := range c.rtts {
				f := newCubic(uint32(i+1), uint64(i+1), rtt*time.Millisecond)
				f.ecn = c.ecn
				all = append(all, f)
			}
			for at := time.Duration(0); at < length; at += time.Millisecond {
				for _, i := range rand.Perm(len(all)) {
					all[i].offer(h, at)
				}
				h.tick()
			}
			var rates []float64
			sum, lost, late, passed, marked := 0.0, 0, 0, 0, 0
			for _, f := range all {
				r := float64(f.passed) * 1538 * 8 / length.Seconds() / float64(c.rate)
				rates, sum, marked = append(rates, r), sum+r, marked+f.marked
				lost, late, passed = lost+f.lost, late+f.late, passed+f.passed
			}
			slots := together(all, float64(c.rate))
			most, long := highest(slots, 1), highest(slots, 40)
			t.Logf("%.3f of the rate, lost %.2f %%, %.2f %% after the start, %d marks, Jain %.3f, highest 250 ms %.2f, 10 s %.3f; each %.2f",
				sum, 100*float64(lost)/float64(lost+passed), 100*float64(late)/float64(lost+passed), marked, jain(rates), most, long, rates)
			if sum < c.least {
				t.Errorf("%.3f of the rate, want at least %.2f", sum, c.least)
			}
			// 250 ms may hold three windows, as each is sent in one burst.
			if bound := 1.03 - 0.02*float64(min(len(all)-1, 1)); long > bound || most > 1.7 {
				t.Errorf("%.3f of the rate in 10 s and %.2f in 250 ms, want at most %.2f and 1.7", long, most, bound)
			}
			if c.ecn && late > passed/1000 {
				t.Errorf("%d packets lost after the start, in spite of marks", late)
			}
		})
	}
}

// CUBIC connections keep their share beside those that ignore losses. Who ignores marks gains
// no more than who ignores losses, or 5 % at most.
func TestQueueIgnoresMarks(t *testing.T) {
	for _, rtts := range [][]time.Duration{{10, 50, 100, 100}, {10, 10, 10, 10}, {50, 50, 50, 50}, {100, 100, 100, 100}} {
		losses, marks := probersShare(t, rtts, false), probersShare(t, rtts, true)
		t.Logf("round trips of %d ms: those that probe have %.3f of their share without ECN and %.3f with it", rtts, losses, marks)
		if losses > 1.08 || marks > max(losses, 1)+0.05 {
			t.Errorf("round trips of %d ms: those that probe have %.3f of their share without ECN and %.3f with it; want at most 1.08, and 0.05 more",
				rtts, losses, marks)
		}
	}
}

// probersShare returns what a prober for each round-trip time has beside as many CUBIC
// connections, in parts of its share.
func probersShare(t *testing.T, rtts []time.Duration, ecn bool) float64 {
	const length, rate = 20 * time.Second, 50_000_000
	s := oneClass(rate)
	s.Classes[0].ECN = ecn
	h := newQueueHarness(t, 1000, s)
	var all []interface {
		offer(*queueHarness, time.Duration)
	}
	var probers []*prober
	for i, rtt := range rtts {
		c := newCubic(uint32(2*i+1), uint64(2*i+1), rtt*time.Millisecond)
		p := newProber(uint32(2*i+2), uint64(2*i+2), rtt*time.Millisecond)
		c.ecn, p.ecn = ecn, ecn
		all, probers = append(all, c, p), append(probers, p)
	}
	for at := time.Duration(0); at < length; at += time.Millisecond {
		for _, i := range rand.Perm(len(all)) {
			all[i].offer(h, at)
		}
		h.tick()
	}
	passed := 0
	for _, p := range probers {
		passed += p.passed
	}
	return 2 * float64(passed) * 1538 * 8 / length.Seconds() / rate
}

// Who sends more than its share in a window, as TCP does when it grows again, is told by a mark, and has a
// quarter of its share until packets are lost: TCP needs a round trip to slow down.
func TestQueueBurstIsMarkedFirst(t *testing.T) {
	const rate, share = 50_000_000, 50_000_000 / 8 / 8 / 10 // of a window
	s := oneClass(rate)
	s.Classes[0].ECN = true
	h := newQueueHarness(t, 1000, s)
	var due [8]float64
	flows := make([]flow, 8)
	send := func(i int, part float64) (passed, marked, lost int) {
		due[i] += part * rate / 8 / 8 / 1000 / 1538
		n := int(due[i])
		due[i] -= float64(n)
		flows[i] = flow{number: uint32(i + 1), host: uint64(i + 1), bytes: 1538, ecn: true}
		passed, marked = h.send(&flows[i], n)
		return passed, marked, n - passed
	}
	told, after := false, 0
	for at := range 6000 {
		for i := range flows[1:] {
			send(i+1, 1.1)
		}
		part := 1.0
		if at > 4000 {
			part = 0.6
		}
		if at > 5000 {
			part = 1.8
		}
		passed, marked, lost := send(0, part)
		h.tick()
		if at <= 5000 {
			continue
		}
		told = told || marked > 0
		if told {
			after += passed
		}
		if lost > 0 {
			t.Logf("told %v; %d packets in %d ms until the first loss", told, after, at-5000)
			if !told || after*1538 < share/4 {
				t.Errorf("a packet is lost when %d bytes have passed since the first mark, want at least %d", after*1538, share/4)
			}
			return
		}
	}
	t.Error("nothing is lost by who sends 1.8 times its share for a second")
}

// A connection that is alone in its class is held to its own share while it is young, and not to what all young
// ones may owe together. It does not matter at which part of a window its data begin.
func TestQueueCubicAlone(t *testing.T) {
	const rate, length = 200_000_000, 20 * time.Second
	for begin := range 10 {
		h := newQueueHarness(t, 1000, oneClass(rate))
		f := newCubic(1, 1, 100*time.Millisecond)
		h.send(&f.flow, 1) // its SYN
		for at := range int(length / time.Millisecond) {
			if at >= begin*10 {
				f.offer(h, time.Duration(at)*time.Millisecond)
			}
			h.tick()
		}
		part := float64(f.passed) * 1538 * 8 / length.Seconds() / rate
		t.Logf("data begin %d ms after the first packet: %.3f of the rate, %d packets lost", begin*10, part, f.lost)
		if part < 0.88 || f.lost > 2000 {
			t.Errorf("data begin %d ms after the first packet: %.3f of the rate, %d packets lost; want at least 0.88, and 2000 at most", begin*10, part, f.lost)
		}
	}
}

// A connection gets no more than the limit of its class while others need nothing of the line: beyond the rate at most
// what its count holds.
func TestQueueLimitOnIdleLine(t *testing.T) {
	const length = 40 * time.Second
	for _, c := range []struct {
		line, limit uint64
		rtt         time.Duration
	}{
		{20_000_000, 2_000_000, 5 * time.Millisecond},
		{20_000_000, 2_000_000, 100 * time.Millisecond},
		{50_000_000, 5_000_000, 30 * time.Millisecond},
		{10_000_000, 1_000_000, 100 * time.Millisecond},
		{1_000_000_000, 2_000_000, 100 * time.Millisecond},
	} {
		h := newQueueHarness(t, 1000, shaper.Shaper{Interface: "wan0", Link: shaper.Link{Known: true}, Classes: []shaper.Class{
			{Name: "line", Parent: -1, Weight: 1, Max: shaper.Rate{Bytes: c.line / 8}, First: 1, Children: 2},
			{Name: "staff", Default: true, Weight: 9},
			{Name: "guests", Weight: 1, Max: shaper.Rate{Bytes: c.limit / 8}},
		}})
		f := newCubic(1, 1, c.rtt)
		f.queue = "guests"
		for at := time.Duration(0); at < length; at += time.Millisecond {
			f.offer(h, at)
			h.tick()
		}
		passed, count := float64(f.passed)*1538*8/float64(c.limit), 0.8 // seconds of the limit
		of := fmt.Sprintf("%d of %d Mbit/s at %v: %.3f of the limit, %d packets lost", c.limit/1e6, c.line/1e6, c.rtt, passed/length.Seconds(), f.lost)
		t.Log(of)
		if most := length.Seconds() + count; passed > most || passed < 0.9*most {
			t.Errorf("%s: %.1f seconds of the limit passed in %v, want at most %.1f, and at least 0.9 of that", of, passed, length, most)
		}
	}
}
