package dataplane

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/dataplane/queueprog"
)

// A coreSender sends from one core at a rate of its own for each connection, in real time.
type coreSender struct {
	flows  []*flow
	rate   float64 // bytes per second of each
	due    []float64
	passed []atomic.Uint64 // packets
	sent   []atomic.Uint64
}

func newCoreSender(rate float64, flows ...*flow) *coreSender {
	n := len(flows)
	return &coreSender{flows: flows, rate: rate, due: make([]float64, n), passed: make([]atomic.Uint64, n), sent: make([]atomic.Uint64, n)}
}

// work sends until told to end.
func (c *coreSender) work(h *queueHarness, end *atomic.Bool) error {
	last := time.Now()
	for !end.Load() {
		now := time.Now()
		d := min(now.Sub(last), 5*time.Millisecond) // what another program has taken is not made up for
		last = now
		for i, f := range c.flows {
			c.due[i] += c.rate * d.Seconds() / float64(f.bytes)
			n := uint32(c.due[i])
			if n == 0 {
				continue
			}
			c.due[i] -= float64(n)
			t := h.trial(f, n)
			if _, err := bpfload.RunSyscall(h.objects.Programs["queue_try"], &t); err != nil {
				return err
			}
			c.sent[i].Add(uint64(n))
			c.passed[i].Add(uint64(t.Passed))
		}
	}
	return nil
}

// pinned runs something on one core.
func pinned(core int, do func() error) error {
	runtime.LockOSThread() // never unlocked: the thread ends here
	var set unix.CPUSet
	set.Set(core % runtime.NumCPU())
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return err
	}
	return do()
}

// coresPassed returns the packets of a connection that have passed, and those that were sent, on all cores.
func coresPassed(cores []*coreSender, f *flow) (passed, sent uint64) {
	for _, c := range cores {
		for i := range c.flows {
			if c.flows[i] == f {
				passed, sent = passed+c.passed[i].Load(), sent+c.sent[i].Load()
			}
		}
	}
	return passed, sent
}

// Two cores send at once, some connections from both: all bytes are counted, together they get the rate, and each its share. With a
// count for each core, those on both would get twice as much as the others.
func TestQueueTwoCores(t *testing.T) {
	const rate, bytes = 400_000_000, 400_000_000 / 8.0
	f := func(i int) *flow { return &flow{number: uint32(i + 1), host: uint64(i + 1), bytes: 1000} }
	var all []*flow
	for i := range 9 {
		all = append(all, f(i))
	}
	for name, cores := range map[string][]*coreSender{
		"one connection":    {newCoreSender(bytes, all[0]), newCoreSender(bytes, all[0])},
		"eight connections": {newCoreSender(bytes/4, all[1], all[2], all[5], all[6], all[7], all[8]), newCoreSender(bytes/4, all[3], all[4], all[5], all[6], all[7], all[8])},
	} {
		t.Run(name, func(t *testing.T) { twoCores(t, rate, cores, all) })
	}
}

func twoCores(t *testing.T, rate uint64, cores []*coreSender, all []*flow) {
	const settle, length = 2 * time.Second, 4 * time.Second
	h := newQueueHarness(t, 1000, oneClass(rate))
	h.now = 0 // the real time
	h.turn()
	var end atomic.Bool
	var senders, timer errgroup.Group
	for i, c := range cores {
		senders.Go(func() error { return pinned(i, func() error { return c.work(h, &end) }) })
	}
	var over atomic.Bool
	timer.Go(func() error {
		for !over.Load() {
			if _, err := bpfload.RunSyscall(h.objects.Programs["queue_pass_time"], &queueprog.QueueMoment{}); err != nil {
				return err
			}
			time.Sleep(900 * time.Microsecond)
		}
		return nil
	})
	passed := func() (rates []float64) {
		for _, f := range all {
			if n, sent := coresPassed(cores, f); sent > 0 {
				rates = append(rates, float64(n)*float64(f.bytes))
			}
		}
		return rates
	}
	time.Sleep(settle)
	from, before := h.clock(), passed()
	time.Sleep(length)
	to, after := h.clock(), passed()
	end.Store(true)
	check(t, senders.Wait())
	over.Store(true)
	check(t, timer.Wait())
	sum := 0.0
	for i := range after {
		after[i] -= before[i]
		sum += after[i]
	}
	// A timer that comes later than it may loses time. Packets take some of that meanwhile.
	elapsed := time.Duration(to.Last - from.Last)
	served := elapsed - time.Duration(to.Lost-from.Lost)
	of := func(d time.Duration) float64 { return sum / (float64(rate) / 8 * d.Seconds()) }
	fair := jain(after)
	t.Logf("%.4f of the rate in the %v that were served, of %v; Jain %.4f", of(served), served, elapsed, fair)
	if of(served) < 0.96 || of(elapsed) > 1.02 { // beside other programs the senders rest for a while
		t.Errorf("%.4f of the rate passed in what was served, %.4f in all", of(served), of(elapsed))
	}
	if fair < 0.98 {
		t.Errorf("Jain %.4f: %.0f", fair, after)
	}
	h.turn()
	bytesExact(t, h, cores, all)
}

// bytesExact checks that the counts of the connections, and of their class, are those of what has passed and of what was lost.
func bytesExact(t *testing.T, h *queueHarness, cores []*coreSender, all []*flow) {
	t.Helper()
	count := make(map[uint64]uint64)
	check(t, changeArray(h.objects.Maps[mapQueueCounters], func(raw []xdpQueueCounter) {
		for i := range raw {
			if raw[i].Key != 0 {
				count[raw[i].Key&queueKeyFlow] = raw[i].Sent
			}
		}
	}))
	var passed, sent uint64
	for _, f := range all {
		p, s := coresPassed(cores, f)
		passed, sent = passed+p, sent+s
		if got := count[uint64(f.number)] % queueWrap; s > 0 && got != p*uint64(f.bytes) {
			t.Errorf("connection %d: %d bytes have passed, its count has %d", f.number, p*uint64(f.bytes), got)
		}
	}
	check(t, changeArray(h.objects.Maps[mapQueueClasses], func(raw []xdpQueueClass) {
		c := &raw[1]
		if c.Packets != passed || c.Drops != sent-passed {
			t.Errorf("%d packets have passed and %d were lost; the class has counted %d and %d", passed, sent-passed, c.Packets, c.Drops)
		}
		if why := queueDropsOf(c); why.Full+why.Young+why.Deaf+why.Told != c.Drops {
			t.Errorf("%d packets were lost; their reasons are %+v", c.Drops, why)
		}
	}))
}
