package dataplane

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/dataplane/queueprog"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/shaper"
	"weir/internal/testenv"
)

// A queueHarness has the queues alone, and a clock that the test sets.
type queueHarness struct {
	tb      testing.TB
	objects *bpfload.Objects
	numbers map[string]uint16
	now     time.Duration // what packets and the timer take for the time; 0: the real one
}

func newQueueHarness(tb testing.TB, connections uint32, shapers ...shaper.Shaper) *queueHarness {
	tb.Helper()
	testenv.NeedRoot(tb)
	p := &ruleset.Program{Shapers: shapers, Queues: map[uint16]string{}, QueuePairs: map[uint16]ruleset.QueuePair{}}
	h := &queueHarness{tb: tb, numbers: map[string]uint16{}, now: math.MaxInt64 / 2}
	for i := range shapers {
		for _, c := range shapers[i].Classes {
			if h.numbers[c.Name] == 0 {
				number := uint16(len(h.numbers) + 1)
				h.numbers[c.Name] = number
				p.Queues[number] = c.Name
				p.QueuePairs[number] = ruleset.QueuePair{Queue: number, Ack: number}
			}
		}
	}
	spec, err := queueprog.LoadQueue()
	check(tb, err)
	sizes := queueSizes(p, connections)
	h.objects, err = bpfload.Load([]*bpfload.Spec{spec}, bpfload.Options{
		Entries: sizes.entries(), Shared: []string{mapQueueData},
		Values: map[string]any{"queue_slots": sizes.slots, "queue_host_slots": sizes.hosts, "queue_cpus": sizes.cores},
	})
	check(tb, err)
	tb.Cleanup(func() { h.objects.Close() })
	check(tb, fillQueues(h.objects.Maps, p, 1))
	h.tick()
	return h
}

// tick lets a millisecond pass.
func (h *queueHarness) tick() { h.pass(time.Millisecond) }

func (h *queueHarness) pass(d time.Duration) {
	h.now += d
	h.turn()
}

// turn runs the timer, and returns how long it has worked.
func (h *queueHarness) turn() time.Duration {
	m := queueprog.QueueMoment{Now: uint64(h.now)}
	h.run("queue_pass_time", &m)
	return time.Duration(m.Took)
}

func (h *queueHarness) run(program string, value any) {
	_, err := bpfload.RunSyscall(h.objects.Programs[program], value)
	check(h.tb, err)
}

// A flow is a connection that a test makes.
type flow struct {
	number uint32
	host   uint64
	tree   uint32 // less 1
	queue  string
	bytes  uint32 // of each packet
	ecn    bool   // its packets can be marked
	cwr    bool   // the next say that the sender has slowed down for a mark
}

// send sends packets, and returns how many passed and how many were marked.
func (h *queueHarness) send(f *flow, packets int) (passed, marked int) {
	t := h.trial(f, uint32(packets))
	if f.cwr && packets > 0 {
		t.Ask.Cwr, f.cwr = 1, false
	}
	h.run("queue_try", &t)
	return int(t.Passed), int(t.Marked)
}

func (h *queueHarness) trial(f *flow, packets uint32) queueprog.QueueTrial {
	t := queueprog.QueueTrial{Host: f.host, Now: uint64(h.now), Packets: packets}
	t.Ask.Shaper, t.Ask.Bytes, t.Ask.Flow, t.Ask.Queue = f.tree+1, f.bytes, f.number, h.numbers[f.queue]
	if f.ecn {
		t.Ask.Ecn = 2
	}
	return t
}

func (h *queueHarness) clock() (c xdpQueueClock) {
	check(h.tb, changeArray(h.objects.Maps[mapQueueData], func(data []xdpQueueSection) { c = xdpQueueClock(data[0].Clock) }))
	return c
}

// One class of a rate, in bit/s.
func oneClass(rate uint64) shaper.Shaper {
	return shaper.Shaper{Interface: "wan0", Link: shaper.Link{Known: true}, Classes: []shaper.Class{
		{Name: "all", Parent: -1, Default: true, Weight: 1, Max: shaper.Rate{Bytes: rate / 8}},
	}}
}

// A sender sends at a constant rate.
type sender struct {
	flow
	rate         float64 // bit/s
	due          float64
	sent, passed int
	from, to     time.Duration
	last         time.Duration   // at which packets were lost
	each         func(s *sender) // before each packet
}

// offer sends what a sender has to send in the next millisecond.
func (s *sender) offer(h *queueHarness, at time.Duration) {
	if at < s.from || s.to > 0 && at >= s.to {
		return
	}
	s.due += s.rate / 8 / 1000
	n := int(s.due / float64(s.bytes))
	s.due -= float64(n) * float64(s.bytes)
	if n == 0 {
		return
	}
	if s.each != nil {
		for range n {
			s.each(s)
			passed, _ := h.send(&s.flow, 1)
			s.sent, s.passed = s.sent+1, s.passed+passed
		}
		return
	}
	passed, _ := h.send(&s.flow, n)
	if passed < n {
		s.last = at
	}
	s.sent, s.passed = s.sent+n, s.passed+passed
}

// offerAll lets sources send for a while, in another order each time.
func offerAll(h *queueHarness, d time.Duration, sources []*sender) {
	for at := time.Duration(0); at < d; at += time.Millisecond {
		for _, i := range rand.Perm(len(sources)) {
			sources[i].offer(h, at)
		}
		h.tick()
	}
}

func (s *sender) passedRate(d time.Duration) float64 {
	return float64(s.passed) * float64(s.bytes) * 8 / d.Seconds()
}

func total(sources []*sender, d time.Duration) (sum float64) {
	for _, s := range sources {
		sum += s.passedRate(d)
	}
	return sum
}

// Who sends less than the rate from the first packet on loses none.
func TestQueueSteady(t *testing.T) {
	for _, part := range []float64{0.3, 0.6, 0.7, 0.95} {
		h := newQueueHarness(t, 1000, oneClass(50_000_000))
		s := &sender{flow: flow{number: 1, host: 1, bytes: 1000}, rate: part * 50_000_000}
		offerAll(h, 3*time.Second, []*sender{s})
		if s.passed < s.sent {
			t.Errorf("%.2f of the rate: %d of %d packets lost, the last at %v", part, s.sent-s.passed, s.sent, s.last)
		}
	}
}

// A flood of twice the rate, from one port, from 1,000 ports, from a new port each time: a
// sparse stream of another host loses nothing, and the line carries its rate.
func TestQueueFlood(t *testing.T) {
	const rate, length = 50_000_000, 10 * time.Second
	for name, ports := range map[string]int{"one": 1, "thousand": 1000, "new": 0} {
		t.Run(name, func(t *testing.T) {
			h := newQueueHarness(t, 100_000, oneClass(rate))
			sparse := &sender{flow: flow{number: 1, host: 1, bytes: 200}, rate: 1_000_000}
			sources := []*sender{sparse}
			next := uint32(100)
			for i := range max(ports, 1) {
				s := &sender{flow: flow{number: 100 + uint32(i), host: 2, bytes: 1000}, rate: 2 * rate / float64(max(ports, 1)), due: 1000 * rand.Float64()}
				if ports == 0 {
					s.each = func(s *sender) { next++; s.number = next }
				}
				sources = append(sources, s)
			}
			offerAll(h, length, sources)
			if lost := sparse.sent - sparse.passed; lost > 0 {
				t.Errorf("the sparse stream lost %d of %d packets, the last at %v", lost, sparse.sent, sparse.last)
			}
			carried := total(sources, length) / rate
			t.Logf("%.2f %% of the rate", 100*carried)
			if carried < 0.99 || carried > 1.015 {
				t.Errorf("the line carries %.2f %% of its rate", 100*carried)
			}
		})
	}
}

// A sparse stream that comes and goes beside a flood opens nothing for it.
func TestQueueFlicker(t *testing.T) {
	const rate, length = 50_000_000, 10 * time.Second
	h := newQueueHarness(t, 1000, oneClass(rate))
	flood := &sender{flow: flow{number: 1, host: 1, bytes: 1000}, rate: 2 * rate}
	sources := []*sender{flood}
	for i := range 10 {
		s := &sender{flow: flow{number: 10 + uint32(i), host: 10 + uint64(i), bytes: 100}, rate: 80_000 + 10_000*float64(i)}
		sources = append(sources, s)
	}
	offerAll(h, length, sources)
	carried := total(sources, length) / rate
	t.Logf("%.2f %% of the rate", 100*carried)
	if carried < 0.99 || carried > 1.01 {
		t.Errorf("the line carries %.2f %% of its rate", 100*carried)
	}
}

// At 64 kbit/s, 1,000 connections together get the whole rate.
func TestQueueSlowLine(t *testing.T) {
	const rate, length = 64_000, 60 * time.Second
	h := newQueueHarness(t, 10_000, oneClass(rate))
	var sources []*sender
	random := rand.New(rand.NewPCG(1, 1)) // other phases carry up to 2 % more or less in 30 seconds
	for i := range 1000 {
		sources = append(sources, &sender{flow: flow{number: 1 + uint32(i), host: uint64(i % 250), bytes: 100}, rate: 2 * rate / 1000, due: random.Float64() * 100})
	}
	offerAll(h, length/2, sources)
	for _, s := range sources {
		s.passed = 0
	}
	offerAll(h, length/2, sources)
	carried := total(sources, length/2) / rate
	t.Logf("%.2f %% of the rate", 100*carried)
	if carried < 0.99 || carried > 1.02 { // 1 % are some packets
		t.Errorf("the line carries %.2f %% of its rate", 100*carried)
	}
}

// At 40 and at 100 Gbit/s, four connections together get the whole rate, each a quarter of it, and no more.
func TestQueueFastLine(t *testing.T) {
	for _, rate := range []float64{40e9, 100e9} {
		h := newQueueHarness(t, 1000, oneClass(uint64(rate)))
		var sources []*sender
		for i := range 4 {
			sources = append(sources, &sender{flow: flow{number: 1 + uint32(i), host: uint64(i), bytes: 9000}, rate: rate / 2})
		}
		carriesRate(t, h, sources, rate, time.Second)
		for _, s := range sources {
			if part := s.passedRate(time.Second) / rate; part < 0.24 || part > 0.26 {
				t.Errorf("connection %d has %.3f of %.0f bit/s, want a quarter", s.number, part, rate)
			}
		}
	}
}

// carriesRate lets sources send twice for a while. The second time they get the whole rate, and no more.
func carriesRate(t *testing.T, h *queueHarness, sources []*sender, rate float64, d time.Duration) {
	t.Helper()
	offerAll(h, d, sources)
	for _, s := range sources {
		s.sent, s.passed = 0, 0
	}
	offerAll(h, d, sources)
	carried := total(sources, d) / rate
	t.Logf("%.2f %% of %.0f bit/s", 100*carried, rate)
	if carried < 0.99 || carried > 1.01 {
		t.Errorf("the line carries %.2f %% of %.0f bit/s", 100*carried, rate)
	}
}

// Floods of two classes share a line of any rate by their weights. Who sends less than his share loses nothing.
func TestQueueTreeOfAnyRate(t *testing.T) {
	for _, c := range []struct {
		rate  float64
		bytes uint32
		d     time.Duration
	}{{64e3, 100, time.Minute}, {40e9, 9000, 3 * time.Second}, {100e9, 9000, 3 * time.Second}} {
		h := newQueueHarness(t, 1000, shaper.Shaper{Interface: "wan0", Link: shaper.Link{Known: true}, Classes: []shaper.Class{
			{Name: "root", Parent: -1, First: 1, Children: 3, Weight: 1, Max: shaper.Rate{Bytes: uint64(c.rate / 8)}},
			{Name: "three", Weight: 3}, {Name: "one", Weight: 1, Default: true},
			{Name: "first", Weight: 1, Priority: 1, Min: shaper.Rate{Bytes: uint64(c.rate / 80)}, Max: shaper.Rate{Bytes: uint64(c.rate / 40)}},
		}})
		three := &sender{flow: flow{number: 1, host: 1, queue: "three", bytes: c.bytes}, rate: 2 * c.rate}
		one := &sender{flow: flow{number: 2, host: 2, queue: "one", bytes: c.bytes}, rate: 2 * c.rate}
		few := &sender{flow: flow{number: 3, host: 3, queue: "first", bytes: c.bytes}, rate: c.rate / 20}
		carriesRate(t, h, []*sender{three, one, few}, c.rate, c.d)
		if few.passed < few.sent {
			t.Errorf("at %.0f bit/s who sends a twentieth loses %d of %d packets", c.rate, few.sent-few.passed, few.sent)
		}
		if ratio := float64(three.passed) / float64(one.passed); ratio < 2.9 || ratio > 3.1 {
			t.Errorf("at %.0f bit/s classes of the weights 3 and 1 have sent %d and %d packets", c.rate, three.passed, one.passed)
		}
	}
}

// When all connections have ended, nothing is left of them: no class, host or tree counts one.
func TestQueueEnds(t *testing.T) {
	s := shaper.Shaper{Interface: "wan0", Link: shaper.Link{Known: true}, Classes: []shaper.Class{
		{Name: "root", Parent: -1, First: 1, Children: 2, Weight: 1, Max: shaper.Rate{Bytes: 1_000_000}},
		{Name: "a", Weight: 3, Default: true}, {Name: "b", Weight: 1, Fair: shaper.FairHost},
	}}
	h := newQueueHarness(t, 1000, s)
	var sources []*sender
	for i := range 400 {
		f := flow{number: uint32(i + 1), host: uint64(i % 7), queue: []string{"a", "b"}[i%2], bytes: uint32(100 + i)}
		sources = append(sources, &sender{flow: f, rate: 30_000 * float64(1+i%5), from: time.Duration(i) * 5 * time.Millisecond, to: 3 * time.Second})
	}
	offerAll(h, 3*time.Second, sources)
	for range 20_000 {
		h.tick()
	}
	noneLeft(t, h)
}

// noneLeft checks that no class, host or tree counts a connection.
func noneLeft(t *testing.T, h *queueHarness) {
	t.Helper()
	if n := h.clock(); n.Active != 0 || n.Busy != 0 {
		t.Errorf("%d counters are active, %d busy", n.Active, n.Busy)
	}
	check(t, changeArray(h.objects.Maps[mapQueueClasses], func(all []xdpQueueClass) {
		for i := range all {
			c := &all[i]
			if c.Tree|c.Lazy|c.BusyLeaves|c.Hosts|c.Counters != 0 || c.Backlog|c.Owed != 0 {
				t.Errorf("class %d: tree %d, lazy %d, busy leaves %d, hosts %d, counters %d, backlog %d, owed %d", i, c.Tree, c.Lazy, c.BusyLeaves, c.Hosts, c.Counters, c.Backlog, c.Owed)
			}
		}
	}))
	check(t, changeArray(h.objects.Maps[mapQueueHosts], func(all []xdpQueueHost) {
		for i := range all {
			if all[i].Counters|all[i].Backlogged != 0 || all[i].Owed != 0 {
				t.Errorf("host %d: %d counters, %d backlogged, owed %d", i, all[i].Counters, all[i].Backlogged, all[i].Owed)
			}
		}
	}))
}
