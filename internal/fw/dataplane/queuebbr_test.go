package dataplane

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A bbrFlow is a TCP connection with BBR version 1 as Linux has it, a millisecond at a time: it paces by the
// highest rate of delivery of ten round trips, probes for more, takes a rate that a policer seems to hold it to,
// and sends little for 200 ms in ten seconds.
type bbrFlow struct {
	flow
	rtt    time.Duration
	random *rand.Rand

	mode    bbrMode
	gain    float64
	phase   int
	began   time.Duration // of the phase
	cwnd    int
	flight  int
	credit  float64 // packets that it may send
	events  []cubicEvent
	acks    []int // packets delivered in each of the last milliseconds: one round trip
	rounds  []float64
	round   time.Duration // its end
	full    float64
	flat    int
	rested  time.Duration // of the last time it sent little
	resting time.Duration // until when it does

	delivered, lost int
	policed         bbrPolicer

	sent, passed int
	slots        []float64 // packets that have passed in each 10 ms
}

type bbrMode int

const (
	bbrStartup bbrMode = iota
	bbrDrain
	bbrProbe
	bbrRest
)

// A bbrPolicer looks for a rate that a policer holds the connection to: two stretches of four round trips and
// more, with a fifth of all packets lost and the same rate.
type bbrPolicer struct {
	samples, use    bool
	rate            float64 // packets per millisecond
	rounds          int
	since           time.Duration
	delivered, lost int
}

func newBBRFlow(number uint32, host uint64, rtt time.Duration, seed uint64) *bbrFlow {
	return &bbrFlow{flow: flow{number: number, host: host, bytes: 1538}, rtt: rtt, cwnd: 10, gain: bbrHigh, round: rtt,
		rounds: []float64{10 / float64(rtt.Milliseconds())}, random: rand.New(rand.NewPCG(seed, 2))}
}

const bbrHigh = 2.885

// offer handles what has come back, and sends what the pace and the window let go.
func (b *bbrFlow) offer(h *queueHarness, at time.Duration) {
	acked, lost := 0, 0
	for len(b.events) > 0 && b.events[0].at <= at {
		acked, lost = acked+b.events[0].acked, lost+b.events[0].lost
		b.events = b.events[1:]
	}
	b.flight -= acked + lost
	b.acks = append(b.acks, acked)
	if over := len(b.acks) - int(b.rtt.Milliseconds()); over > 0 {
		b.acks = b.acks[over:]
	}
	if acked+lost > 0 {
		b.delivered, b.lost = b.delivered+acked, b.lost+lost
		b.learn(at, lost)
	}
	b.window(acked)
	b.send(h, at)
}

// rate is what the connection believes the way carries, in packets per millisecond.
func (b *bbrFlow) rate() float64 {
	if b.policed.use {
		return b.policed.rate
	}
	return slices.Max(b.rounds)
}

func (b *bbrFlow) product() float64 { return b.rate() * float64(b.rtt.Milliseconds()) }

func (b *bbrFlow) learn(at time.Duration, lost int) {
	sample := 0
	for _, n := range b.acks {
		sample += n
	}
	last := len(b.rounds) - 1
	b.rounds[last] = max(b.rounds[last], float64(sample)/float64(b.rtt.Milliseconds()))
	starts := at >= b.round
	if starts {
		b.round = at + b.rtt
		b.rounds = append(b.rounds, 0)
		b.rounds = b.rounds[max(len(b.rounds)-10, 0):]
	}
	b.policed.learn(b, at, lost, starts)
	switch b.mode {
	case bbrStartup:
		if starts {
			b.flat++
			if rate := slices.Max(b.rounds); rate >= 1.25*b.full {
				b.full, b.flat = rate, 0
			}
		}
		if b.flat >= 3 {
			b.mode, b.gain = bbrDrain, 1/bbrHigh
		}
	case bbrDrain:
		if float64(b.flight) <= b.product() {
			b.probe(at)
		}
	case bbrProbe:
		b.turn(at, lost)
	case bbrRest:
		if at >= b.resting {
			b.rested = at
			b.cwnd = max(b.cwnd, int(2*b.product()))
			b.probe(at)
		}
	}
	if b.mode != bbrRest && at-b.rested > 10*time.Second {
		b.mode, b.gain, b.resting = bbrRest, 1, at+200*time.Millisecond+b.rtt
	}
}

// probe begins to probe, in any phase but the slow one.
func (b *bbrFlow) probe(at time.Duration) {
	b.mode, b.phase, b.began = bbrProbe, (2+b.random.IntN(7))%8, at
	b.gain = bbrGains[b.phase]
}

var bbrGains = []float64{1.25, 0.75, 1, 1, 1, 1, 1, 1}

// turn goes on to the next phase.
func (b *bbrFlow) turn(at time.Duration, lost int) {
	over := at-b.began > b.rtt
	switch {
	case b.gain > 1:
		over = over && (lost > 0 || float64(b.flight) >= b.gain*b.product())
	case b.gain < 1:
		over = over || float64(b.flight) <= b.product()
	}
	if over {
		b.phase, b.began = (b.phase+1)%8, at
		b.gain = bbrGains[b.phase]
	}
	if b.policed.use {
		b.gain = 1
	}
}

func (p *bbrPolicer) learn(b *bbrFlow, at time.Duration, lost int, starts bool) {
	if p.use {
		if b.mode == bbrProbe && starts {
			p.rounds++
		}
		if p.rounds >= 48 {
			*p = bbrPolicer{}
			b.probe(at)
		}
		return
	}
	begin := func() { p.rounds, p.since, p.delivered, p.lost = 0, at, b.delivered, b.lost }
	if !p.samples {
		if lost == 0 {
			return
		}
		begin()
		p.samples = true
	}
	if starts {
		p.rounds++
	}
	if p.rounds < 4 {
		return
	}
	if p.rounds > 16 {
		*p = bbrPolicer{}
		return
	}
	delivered, gone := b.delivered-p.delivered, b.lost-p.lost
	if lost == 0 || delivered == 0 || gone*256 < delivered*50 {
		return
	}
	rate := float64(delivered) / float64((at - p.since).Milliseconds())
	if p.rate > 0 && math.Abs(rate-p.rate) <= p.rate/8 {
		p.rate, p.use, p.rounds = (rate+p.rate)/2, true, 0
		return
	}
	p.rate = rate
	begin()
}

// window grows to twice what is under way at the rate.
func (b *bbrFlow) window(acked int) {
	if b.mode == bbrRest {
		b.cwnd = 4
		return
	}
	most := 2.0
	if b.mode == bbrStartup || b.mode == bbrDrain {
		most = bbrHigh
	}
	target := int(most*b.product()) + 12
	if b.mode == bbrStartup {
		if b.cwnd < target || b.delivered < 10 {
			b.cwnd += acked
		}
	} else {
		b.cwnd = min(b.cwnd+acked, target)
	}
	b.cwnd = max(b.cwnd, 4)
}

// send sends in bursts of a millisecond, some of which are late.
func (b *bbrFlow) send(h *queueHarness, at time.Duration) {
	b.credit += b.rate() * b.gain * 0.99
	if b.random.IntN(50) == 0 {
		return
	}
	packets := min(int(b.credit), b.cwnd-b.flight, 400)
	b.credit -= math.Floor(b.credit)
	slot := int(at / (10 * time.Millisecond))
	for len(b.slots) <= slot {
		b.slots = append(b.slots, 0)
	}
	if packets <= 0 {
		return
	}
	passed, _ := h.send(&b.flow, packets)
	b.flight += packets
	b.sent, b.passed = b.sent+packets, b.passed+passed
	b.slots[slot] += float64(passed)
	b.events = append(b.events, cubicEvent{at: at + b.rtt, acked: passed, lost: packets - passed})
}

// parts returns the slots in parts of a rate.
func (b *bbrFlow) parts(rate float64) []float64 {
	all := make([]float64, len(b.slots))
	for i, n := range b.slots {
		all[i] = n * 1538 * 8 * 100 / rate
	}
	return all
}

// One BBR connection has the rate, loses no more than it has to, and is smooth once it is known to pay no heed to losses.
func TestQueueBBRAlone(t *testing.T) {
	const length = 40 * time.Second
	for _, c := range []struct {
		rate    float64
		rtt     time.Duration
		loss    float64 // at most
		settled time.Duration
	}{{50e6, 50, 0.1, 5}, {50e6, 20, 0.125, 15}, {50e6, 100, 0.1, 5}, {200e6, 50, 0.1, 5}} {
		h := newQueueHarness(t, 1000, oneClass(uint64(c.rate)))
		b := newBBRFlow(1, 1, c.rtt*time.Millisecond, 1)
		for at := time.Duration(0); at < length; at += time.Millisecond {
			b.offer(h, at)
			h.tick()
		}
		slots := b.parts(c.rate)
		of, lost := float64(b.passed)*1538*8/length.Seconds()/c.rate, float64(b.sent-b.passed)/float64(b.sent)
		most, later, long := highest(slots, 25), highest(slots[c.settled*100:], 25), highest(slots, 1000)
		said := fmt.Sprintf("%.0f Mbit/s at %d ms: %.3f of the rate, %.1f %% lost; highest 250 ms %.2f, after %d s %.2f; 10 s %.3f",
			c.rate/1e6, c.rtt, of, 100*lost, most, c.settled, later, long)
		t.Log(said)
		if of < 0.97 || lost > c.loss || most > 1.6 || later > 1.1 || long > 1.022 {
			t.Errorf("%s; want at least 0.97 of the rate and at most %.1f %% lost, 1.6, 1.1 and 1.022", said, 100*c.loss)
		}
	}
}
