package doctor

import (
	"slices"
	"strings"
	"testing"
)

// uncounted is a box whose cards count nothing by queue. Four queues of eno1 are on the
// first cores, four of eno2 on the others, and cpu2 is full.
func uncounted() *box {
	b := newBox(8)
	b.card("eno1", "tg3", 1000, 4, 4)
	b.card("eno2", "tg3", 1000, 4, 4)
	for q := range 4 {
		b.serve("eno2", q, 4+q)
	}
	b.traffic("eno1", 100, 9000, 9000, 170000, 9000).traffic("eno2", 100, 9000, 9000, 9000, 9000).cores(5, 0, 1, 3, 4, 5, 6, 7).core(2, 97, 1, 0)
	for _, c := range []*Counters{b.s.Before, b.s.After} {
		for _, name := range []string{"eno1", "eno2"} {
			c.Statistics[name] = map[string]uint64{"rx_flow_control_xoff": 0}
		}
	}
	for id := range 8 {
		took := uint64(90000)
		if id == 2 {
			took = 1700000
		}
		b.s.After.Softnet[id] = Softnet{Processed: b.s.Before.Softnet[id].Processed + took, Squeezed: 2}
	}
	return b
}

// TestEstimated checks that, if a driver does not count by queue, the cores' counts are
// used, and that nothing is made up if those do not help either.
func TestEstimated(t *testing.T) {
	watch := func(b *box) {
		b.s.Watched = &Watched{Seconds: sampled, Cores: map[int]CoreWatch{2: {Received: map[string]Polled{"eno1": {Packets: 1700000}, "eno2": {Packets: 90000}}}}}
		for _, id := range []int{0, 1, 3} {
			b.s.Watched.Cores[id] = CoreWatch{Received: map[string]Polled{"eno1": {Packets: 90000}}}
		}
	}
	both := func(b *box) { // cpu2 also gets the other card's first queue
		b.s.Before.IRQs[44], b.s.After.IRQs[44] = map[int]uint64{2: 5}, map[int]uint64{2: 9000}
	}
	for _, c := range []struct {
		name   string
		change func(b *box)
		check  string
		says   string
		by     string
	}{
		{"by the stack's counts", func(*box) {}, "RSS-1", "queue 2 of eno1 carries 86 % of the packets", "the packets of each core's stack"},
		{"by the kernel's", watch, "RSS-1", "queue 2 of eno1 carries 86 % of the packets", "counted in the kernel"},
		{"two cards on the core", both, "CPU-1", "it serves queue 2 of eno1 and queue 0 of eno2 and takes 73 % of the packets that the stack receives", ""},
		{"two cards on the core, counted in the kernel", func(b *box) { both(b); watch(b) }, "RSS-1", "queue 2 of eno1 carries 86 % of the packets", "counted in the kernel"},
		{"handed over", func(b *box) {
			s := b.s.After.Softnet[0]
			s.RPS += 9000
			b.s.After.Softnet[0] = s
		}, "CPU-1", "it serves queue 2 of eno1 and takes 73 % of the packets that the stack receives", ""},
	} {
		b := uncounted()
		c.change(b)
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		v := r.Verdict
		if v.Check != c.check || !strings.HasPrefix(v.Sentence, "cpu2 is full of softirq: "+c.says) || v.Severity != Critical {
			t.Errorf("%s: %+v", c.name, v)
		}
		if f := findingOf(r, "RSS-1"); c.by != "" && (f == nil || !slices.ContainsFunc(f.Evidence, func(e string) bool { return strings.Contains(e, c.by) })) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}
