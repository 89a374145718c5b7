package dataplane

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"weir/internal/fw/ruleset"
	"weir/internal/fw/shaper"
	"weir/internal/oracle/shares"
	"weir/pf/resolve"
)

// setRate gives the harness's tree another rate, in bytes per second.
func (h *queueHarness) setRate(s *shaper.Shaper, rate uint64) shaper.Shaper {
	h.tb.Helper()
	to := s.At(rate)
	check(h.tb, changeClasses(h.objects.Programs[programQueueChange], &to, 1, 1))
	return to
}

// perTenth returns what sources send through in each of some tenths of a second, in bytes per second.
func perTenth(h *queueHarness, tenths int, sources []*sender) (rates []float64) {
	for range tenths {
		before := passedBytes(sources)
		offerAll(h, 100*time.Millisecond, sources)
		rates = append(rates, 10*(passedBytes(sources)-before))
	}
	return rates
}

func passedBytes(sources []*sender) (sum float64) {
	for _, s := range sources {
		sum += float64(s.passed) * float64(s.bytes)
	}
	return sum
}

// Connections that send more than the line's rate get the new rate at once when it changes: in no
// tenth of a second much more or much less. One that sends less than the new rate loses nothing.
func TestQueueRateFollows(t *testing.T) {
	for _, from := range []float64{50e6, 8e6} {
		for _, to := range []float64{50e6, 37e6, 8e6, 1e6, 500e6} {
			for _, n := range []int{1, 30} {
				t.Run(fmt.Sprintf("%.0fM to %.0fM, %d", from/1e6, to/1e6, n), func(t *testing.T) { rateFollows(t, from, to, n) })
			}
		}
	}
}

func rateFollows(t *testing.T, from, to float64, n int) {
	s := oneClass(uint64(from))
	h := newQueueHarness(t, 10_000, s)
	sparse := &sender{flow: flow{number: 1, host: 1, bytes: 200}, rate: 0.08 * min(from, to)}
	sources := []*sender{sparse}
	for i := range n {
		f := flow{number: 100 + uint32(i), host: 2 + uint64(i%7), bytes: 1000}
		sources = append(sources, &sender{flow: f, rate: 2 * max(from, to) / float64(n), due: 1000 * rand.Float64()})
	}
	offerAll(h, 2*time.Second, sources)
	lost := sparse.sent - sparse.passed
	h.setRate(&s, uint64(to/8))
	rates := perTenth(h, 20, sources)
	some := 2000 * float64(n) / (to / 8) // two packets of each, in seconds of the new rate
	run := 0.002 * from / to             // what was there to send before the timer's next run
	if more := sparse.sent - sparse.passed - lost; more > 0 {
		t.Errorf("after the change the sparse stream lost %d packets, the last at %v", more, sparse.last)
	}
	carried := 0.0
	for i, rate := range rates {
		carried += rate * 8 / to / float64(len(rates))
		if part := rate * 8 / to; part < 0.9-10*some || part > 1.2+10*(some+run) {
			t.Errorf("in tenth %d the line carries %.3f of its new rate", i, part)
		}
	}
	t.Logf("%.2f %% of the rate", 100*carried)
	if carried < 0.99-some/2 || carried > 1.015+some/2+run/2 {
		t.Errorf("the line carries %.2f %% of its new rate", 100*carried)
	}
}

// Many small changes, as autorate makes them, leave no room that was not earned.
func TestQueueRateOften(t *testing.T) {
	s := oneClass(50e6)
	h := newQueueHarness(t, 1000, s)
	sources := []*sender{{flow: flow{number: 1, host: 1, bytes: 1000}, rate: 200e6}, {flow: flow{number: 2, host: 2, bytes: 1000}, rate: 200e6}}
	offerAll(h, time.Second, sources)
	before, want := passedBytes(sources), 0.0
	for i := range 100 {
		rate := 50e6 / 8 * (0.6 + 0.4*math.Sin(float64(i)/5))
		h.setRate(&s, uint64(rate))
		offerAll(h, 50*time.Millisecond, sources)
		want += rate / 20
	}
	carried := (passedBytes(sources) - before) / want
	t.Logf("%.2f %% of the rates", 100*carried)
	if carried < 0.98 || carried > 1.02 {
		t.Errorf("the line carries %.2f %% of its rates", 100*carried)
	}
}

// Random trees share another rate as the slow model says.
func TestQueueRateShares(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			s := randomTree(r)
			for i := 1; i < len(s.Classes); i++ {
				s.Classes[i].MinPart, s.Classes[i].MaxPart = r.IntN(2) == 0, r.IntN(2) == 0
			}
			compareNewRate(t, r, s, uint64(float64(s.Classes[0].Max.Bytes)*math.Pow(10, r.Float64()*1.6-0.8)))
		})
	}
}

func compareNewRate(t *testing.T, r *rand.Rand, s shaper.Shaper, rate uint64) {
	h := newQueueHarness(t, 1000, s)
	offered := make([]float64, len(s.Classes))
	senders := make([]*sender, len(s.Classes))
	var all []*sender
	for i := range s.Classes {
		if s.Classes[i].Children > 0 {
			continue
		}
		f := &sender{flow: flow{number: uint32(i), host: uint64(i % 3), queue: s.Classes[i].Name, bytes: uint32(64 + r.IntN(1000))}}
		f.rate = 8 * float64(s.Classes[0].Max.Bytes) * math.Pow(10, -r.Float64())
		offered[i], senders[i], all = f.rate/8, f, append(all, f)
	}
	offerAll(h, time.Second, all)
	now := h.setRate(&s, rate)
	offerAll(h, time.Second, all) // rates follow within a second
	for _, f := range all {
		f.passed = 0
	}
	const length = 3 * time.Second
	offerAll(h, length, all)
	want := shares.Of(&now, offered)
	for i, f := range senders {
		if f == nil {
			continue
		}
		got := f.passedRate(length) / 8
		if diff := math.Abs(got - want[i]); diff > 0.03*want[i]+0.005*float64(rate)+3000 {
			t.Errorf("class %s gets %.4f of the rate, want %.4f (%+v)", now.Classes[i].Name, got/float64(rate), want[i]/float64(rate), now.Classes[i])
		}
	}
}

// After changes nothing is left of connections that have ended.
func TestQueueRateEnds(t *testing.T) {
	s := shaper.Shaper{Interface: "wan0", Link: shaper.Link{Known: true}, Classes: []shaper.Class{
		{Name: "root", Parent: -1, First: 1, Children: 2, Weight: 1, Max: shaper.Rate{Bytes: 1_000_000}},
		{Name: "a", Weight: 3, Default: true}, {Name: "b", Weight: 1, Min: shaper.Rate{Bytes: 200_000}, MinPart: true},
	}}
	h := newQueueHarness(t, 1000, s)
	var sources []*sender
	for i := range 100 {
		f := flow{number: uint32(i + 1), host: uint64(i % 7), queue: []string{"a", "b"}[i%2], bytes: uint32(100 + i)}
		sources = append(sources, &sender{flow: f, rate: 300_000, from: time.Duration(i) * 5 * time.Millisecond, to: 3 * time.Second})
	}
	for i := range 30 {
		h.setRate(&s, uint64(1e6*math.Pow(10, rand.Float64()-0.5)))
		for range 100 {
			for _, f := range sources {
				f.offer(h, time.Duration(i)*100*time.Millisecond)
			}
			h.tick()
		}
	}
	for range 20_000 {
		h.tick()
	}
	noneLeft(t, h)
}

// Queues that differ from those before only in their rates go on, in a load and where rules are
// replaced in place. A rate that was set goes on with them if the rules say the same as before.
func TestQueueRatesOfLoads(t *testing.T) {
	const rules = "queue up on wan0 bandwidth %s\nqueue a parent up bandwidth 1M min 10%%\nqueue b parent up bandwidth 9M max 8M default\n%s\npass\n"
	n := newNet(t)
	compile := func(rate, more string) *ruleset.Program {
		rs, faults := resolve.Load("test.conf", fmt.Appendf(nil, rules, rate, more), &resolve.Host{})
		check(t, faults.Err())
		return must(ruleset.Compile(rs, ruleset.Snapshot{}))(t)
	}
	var d *Dataplane
	load := func(p *ruleset.Program) {
		t.Helper()
		cfg := n.blank()
		cfg.XDP, cfg.Program = false, p
		next := build(t, cfg)
		commit(t, next, n.attachments(false)[:1])
		d = next
	}
	expect := func(what string, sent, root, guarantee, limit uint64, by RateBy) {
		t.Helper()
		all, _, err := d.View().Queues()
		check(t, err)
		setBy := must(d.View().QueueRates(1))(t)
		if all[0].Max != root || all[2].Max != limit || all[2].Sent != sent || setBy[0] != by {
			t.Errorf("%s: %+v, set by %v; want the rates %d and %d, %d bytes, and %v", what, all, setBy, root, limit, sent, by)
		}
		check(t, changeArray(d.objects.Maps[mapQueueClasses], func(all []xdpQueueClass) {
			if got := bytesPerSecond(all[2].Min.Rate); got != guarantee {
				t.Errorf("%s: the first queue is guaranteed %d, want %d", what, got, guarantee)
			}
		}))
	}
	load(compile("10M", ""))
	check(t, changeArray(d.objects.Maps[mapQueueClasses], func(all []xdpQueueClass) { all[3].Sent = 777 }))
	expect("at first", 777, 1_250_000, 125_000, 1_000_000, ByRules)
	load(compile("20M", ""))
	expect("another rate", 777, 2_500_000, 250_000, 1_000_000, ByRules)
	check(t, d.SetQueueRate("wan0", false, 500_000, ByAutorate))
	expect("a rate that is set", 777, 500_000, 50_000, 1_000_000, ByAutorate)
	load(compile("20M", "block out proto udp"))
	expect("other rules", 777, 500_000, 50_000, 1_000_000, ByAutorate)
	check(t, d.ReplaceRules(compile("20M", "block out proto tcp"), &d.config.Options))
	expect("other rules in place", 777, 500_000, 50_000, 1_000_000, ByAutorate)
	check(t, d.ReplaceRules(compile("4M", ""), &d.config.Options))
	expect("another rate in place", 777, 500_000, 50_000, 1_000_000, ByRules)
	check(t, d.SetQueueRate("wan0", false, 1_000_000, ByCommand))
	check(t, d.SetQueueRate("wan0", false, 0, ByCommand))
	expect("the rules' rate again", 777, 500_000, 50_000, 1_000_000, ByRules)
	if err := d.SetQueueRate("wan0", true, 1_000_000, ByCommand); !errors.Is(err, ErrNoQueues) {
		t.Errorf("set a rate where there are no queues: %v", err)
	}
	if err := d.SetQueueRate("wan0", false, 999, ByCommand); err == nil {
		t.Error("a rate below the least was set")
	}
	load(compile("4M", "queue c parent up bandwidth 1M"))
	expect("other queues", 0, 500_000, 50_000, 1_000_000, ByRules)
}

// After another rate hosts still know what their young connections owe, each of which owes a little more than it may now.
func TestQueueRateYoungOwe(t *testing.T) {
	for ms := 250; ms <= 310; ms += 15 {
		s := oneClass(50e6)
		h := newQueueHarness(t, 1000, s)
		var sources []*sender
		for i := range uint32(20) {
			sources = append(sources, &sender{flow: flow{number: i + 1, host: uint64(i) + 1, bytes: 1000}, rate: 3.5e6})
		}
		for range ms {
			for _, f := range sources {
				f.offer(h, 0)
			}
			h.tick()
		}
		h.setRate(&s, 30_000_000/8)
		h.tick()
		var counters, hosts uint64
		check(t, changeArray(h.objects.Maps[mapQueueCounters], func(all []xdpQueueCounter) {
			for i := range all {
				if all[i].At != 0 {
					counters += all[i].Size - all[i].Magic
				}
			}
		}))
		check(t, changeArray(h.objects.Maps[mapQueueHosts], func(all []xdpQueueHost) {
			for i := range all {
				hosts += all[i].Owed
			}
		}))
		if counters != hosts || counters == 0 {
			t.Errorf("after %d ms young connections owe %d, and their hosts say %d", ms, counters, hosts)
		}
	}
}
