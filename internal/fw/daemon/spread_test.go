package daemon

import (
	"maps"
	"math"
	"os"
	"testing"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/limits"
	"weir/internal/host/proc"
	"weir/pf/resolve"
)

// TestSharesComeBack checks that frames come back to the core that receives when it has time, and that auto ends then.
func TestSharesComeBack(t *testing.T) {
	w := newSpreadWorld(2, 0.5, evenFlows)
	s := &spreader{Spread: resolve.Spread{Auto: true}, online: []int{0, 1}}
	var wanted [dataplane.SpreadBuckets]uint8
	for i := range wanted {
		wanted[i] = uint8(2 * (i % 2))
	}
	load := w.second(wanted)
	for range 30 {
		wanted = w.now.Wanted
		s.share(&wanted, &w.now, load, nil)
		s.frames = w.now.Frames
		load = w.second(wanted)
	}
	if wanted != [dataplane.SpreadBuckets]uint8{} || s.full < easyFor {
		t.Errorf("after 30 s at half the load of a core: %v, easy for %d s", wanted, s.full)
	}
}

// TestNeedsSpreading checks when auto begins: one core is full of what it receives from the interface for three seconds,
// another has time.
func TestNeedsSpreading(t *testing.T) {
	full, idle, works := coreLoad{1, 0.98}, coreLoad{0.2, 0.1}, coreLoad{1, 0.1}
	one, other := map[int]uint64{0: 900_000, 1: 100}, map[int]uint64{0: 100, 1: 900_000}
	for _, c := range []struct {
		what string
		load map[int]coreLoad
		came map[int]uint64
		want bool
	}{
		{"one is full", map[int]coreLoad{0: full, 1: idle}, one, true},
		{"the other one is full", map[int]coreLoad{0: idle, 1: full}, other, true},
		{"both are", map[int]coreLoad{0: full, 1: full}, one, false},
		{"one is full of another interface's frames", map[int]coreLoad{0: full, 1: idle}, other, false},
		{"one is full, with a few frames of this interface", map[int]coreLoad{0: full, 1: idle}, map[int]uint64{0: 2000}, false},
		{"the card spreads", map[int]coreLoad{0: full, 1: idle}, map[int]uint64{0: 600_000, 1: 400_000}, false},
		{"none is", map[int]coreLoad{0: idle, 1: idle}, one, false},
		{"programs fill one", map[int]coreLoad{0: works, 1: idle}, one, false},
		{"programs fill the other", map[int]coreLoad{0: full, 1: works}, one, false},
	} {
		s := &spreader{Spread: resolve.Spread{Auto: true}, online: []int{0, 1}}
		for second := 1; second <= 3; second++ {
			if got := s.needs(c.load, c.came); got != (c.want && second == 3) {
				t.Errorf("%s, after %d s: %v (%s)", c.what, second, got, s.why)
			}
		}
	}
	s := &spreader{Spread: resolve.Spread{Auto: true}, online: []int{0, 1}}
	for second, load := range []coreLoad{full, full, idle, full, full, full} {
		if got := s.needs(map[int]coreLoad{0: load, 1: idle}, one); got != (second == 5) {
			t.Errorf("full but for the third second, after %d s: %v (%s)", second+1, got, s.why)
		}
	}
}

// TestSharesFall checks that a core which had no room for frames gives as many back as did not fit, and some more if it
// is full. One that stood still for a moment keeps its share, and its one great connection if it has others. One that
// goes on dropping loses that, too.
func TestSharesFall(t *testing.T) {
	const all = dataplane.SpreadBuckets
	for _, c := range []struct {
		what    string
		dropped uint32
		busy    float64
		each    uint32 // frames of each bucket but the first few
		great   int    // buckets with so many frames as all have
		seconds int    // for which it has dropped
		back    int    // buckets
		greats  int    // among them
	}{
		{"a few", 3, 0.5, 100, 0, 1, 1, 0},
		{"a hundredth", all, 0.5, 100, 0, 1, 6, 0},
		{"a hundredth, and the core is full", all, 0.95, 100, 0, 1, 6 + spreadDrain, 0},
		{"all", 100 * all, 0.5, 100, 0, 1, spreadStep, 0},
		{"all, and the core is full", 100 * all, 0.95, 100, 0, 1, spreadStep, 0},
		{"a few beside a great connection", 3, 0.5, 100, 1, 1, 1, 0},
		{"many beside a great connection", 1034, 0.5, 1, 1, 1, 11, 0},
		{"many beside a great connection, for seconds", 1034, 0.5, 1, 1, dropsFor, 12, 1},
		{"many of great connections alone", 5 * 100 * all / 50, 0.95, 0, 5, 1, all - 4, 1},
	} {
		s := &spreader{Spread: resolve.Spread{Cores: []int{1}}, online: []int{0, 1}, drops: map[int]int{1: c.seconds}}
		now := dataplane.Shares{Receiver: 0}
		for i := range now.Cores {
			now.Cores[i], now.Wanted[i], now.Frames[i] = 2, 2, c.each
			if i < c.great {
				now.Frames[i] = 100 * all
			}
		}
		wanted := now.Wanted
		s.share(&wanted, &now, map[int]coreLoad{0: {1, 1}, 1: {c.busy, 0.1}}, map[int]uint32{1: c.dropped})
		back, greats := 0, 0
		for i, core := range wanted {
			if core == 0 {
				back++
				if i < c.great {
					greats++
				}
			}
		}
		if back != c.back || greats != c.greats {
			t.Errorf("%s: %d buckets went back to the core that receives, %d of great connections; want %d, %d", c.what, back, greats, c.back, c.greats)
		}
		now.Wanted = wanted
		before := wanted
		if s.share(&wanted, &now, map[int]coreLoad{0: {1, 1}, 1: {c.busy, 0.1}}, map[int]uint32{1: c.dropped}); wanted != before {
			t.Errorf("%s: more buckets went back while these had not left yet", c.what)
		}
	}
}

// TestSharesOfOtherCores checks that a core that may take no frames any more, and one that receives now, give
// theirs back at once.
func TestSharesOfOtherCores(t *testing.T) {
	s := &spreader{Spread: resolve.Spread{Cores: []int{1}}, online: []int{0, 1}}
	now := dataplane.Shares{Receiver: 0}
	for i := range now.Wanted {
		now.Wanted[i] = uint8(i % 4) // stays, core 0, core 1, core 2
	}
	wanted := now.Wanted
	s.share(&wanted, &now, map[int]coreLoad{0: {0.8, 0.8}, 1: {0.8, 0.8}}, nil)
	for i, core := range wanted {
		if want := uint8(i % 4 / 2 * (1 - i%2) * 2); core != want {
			t.Fatalf("bucket %d, of core %d, wants %d, not %d", i, i%4-1, core, want)
		}
	}
	before := wanted
	if s.share(&wanted, &now, nil, nil); wanted != before {
		t.Error("shares move although nothing is known of the cores")
	}
}

// TestDropped: what found no room counts for the interfaces whose frames go there, by their part of the frames, and
// not at the first look. Many frames that wait at two looks count, too.
func TestDropped(t *testing.T) {
	var s spreader
	now := &dataplane.Shares{}
	now.Cores[7], now.Frames[7] = 2, 100 // core 1
	for _, step := range []struct {
		full0, full1 uint32
		given, waits uint32 // of core 1
		want         map[int]uint32
		drops        int
	}{
		{9, 9, 0, 0, map[int]uint32{}, 0},
		{9, 9, 100, 0, map[int]uint32{}, 0},
		{10, 9, 200, 0, map[int]uint32{}, 0},
		{10, 19, 300, 0, map[int]uint32{1: 10}, 1},
		{10, 29, 500, 0, map[int]uint32{1: 5}, 2}, // half of them are another interface's
		{10, 29, 600, 0, map[int]uint32{}, 0},
		{10, 29, 700, limits.SpreadStanding, map[int]uint32{}, 0},
		{10, 29, 800, limits.SpreadStanding, map[int]uint32{1: 1}, 1},
	} {
		handed := []dataplane.HandOver{{Full: step.full0}, {Full: step.full1, Given: step.given, Taken: step.given - step.waits}}
		if got := s.dropped(now, handed); !maps.Equal(got, step.want) || s.drops[1] != step.drops {
			t.Errorf("%+v: %v, for %d s", step, got, s.drops[1])
		}
	}
}

// TestStuck: a core that takes nothing of many frames was offline. One that has nothing to take, or takes some, was not.
func TestStuck(t *testing.T) {
	for _, c := range []struct {
		what        string
		before, now dataplane.HandOver
		want        bool
	}{
		{"it takes", dataplane.HandOver{Given: 100, Taken: 90}, dataplane.HandOver{Given: 9000, Taken: 8000}, false},
		{"it takes none", dataplane.HandOver{Given: 100, Taken: 90}, dataplane.HandOver{Given: 1626, Taken: 90}, true},
		{"nothing is given", dataplane.HandOver{Given: 1626, Taken: 90}, dataplane.HandOver{Given: 1626, Taken: 90}, false},
		{"a few wait", dataplane.HandOver{Given: 100, Taken: 90}, dataplane.HandOver{Given: 120, Taken: 90}, false},
		{"the counts wrap", dataplane.HandOver{Given: 1<<32 - 10, Taken: 1<<32 - 10}, dataplane.HandOver{Given: 1000, Taken: 1<<32 - 10}, true},
		{"it was abandoned", dataplane.HandOver{Given: 100, Taken: 100 + 1<<20}, dataplane.HandOver{Given: 101, Taken: 100 + 1<<20}, false},
	} {
		if got := isStuck(c.before, c.now); got != c.want {
			t.Errorf("%s: %t", c.what, got)
		}
	}
}

// TestLost: frames are lost if a core was given none for a while, and has not taken all.
func TestLost(t *testing.T) {
	for _, c := range []struct {
		what        string
		before, now dataplane.HandOver
		want        bool
	}{
		{"all are taken", dataplane.HandOver{Given: 100, Taken: 100}, dataplane.HandOver{Given: 100, Taken: 100}, false},
		{"it takes", dataplane.HandOver{Given: 100, Taken: 90}, dataplane.HandOver{Given: 100, Taken: 95}, false},
		{"it is given some", dataplane.HandOver{Given: 100, Taken: 90}, dataplane.HandOver{Given: 101, Taken: 90}, false},
		{"one is lost", dataplane.HandOver{Given: 100, Taken: 99}, dataplane.HandOver{Given: 100, Taken: 99}, true},
		{"the counts wrap", dataplane.HandOver{Given: 3, Taken: 1<<32 - 4}, dataplane.HandOver{Given: 3, Taken: 1<<32 - 4}, true},
		{"it was abandoned", dataplane.HandOver{Given: 100, Taken: 100 + 1<<20}, dataplane.HandOver{Given: 100, Taken: 100 + 1<<20}, false},
	} {
		if got := isLost(c.before, c.now); got != c.want {
			t.Errorf("%s: %t", c.what, got)
		}
	}
}

// TestOtherCores: the log says which cores take frames when these change, and not when shares move among them.
func TestOtherCores(t *testing.T) {
	s := &spreader{}
	for _, step := range []struct {
		cores []uint8
		want  bool
	}{{nil, false}, {[]uint8{3}, true}, {[]uint8{3, 3, 3}, false}, {[]uint8{2, 3}, true}, {[]uint8{0, 3, 2, 3}, false}, {[]uint8{2}, true}, {nil, true}, {nil, false}} {
		now := &dataplane.Shares{}
		copy(now.Cores[:], step.cores)
		if got := s.isOther(now); got != step.want {
			t.Errorf("cores %v: %t (told %v)", step.cores, got, s.told)
		}
	}
	said := ""
	for i, step := range []struct {
		err  error
		want bool
	}{{nil, false}, {os.ErrClosed, true}, {os.ErrClosed, false}, {os.ErrExist, true}, {nil, false}, {os.ErrExist, true}} {
		if got := isNews(&said, step.err); got != step.want {
			t.Errorf("%d: %v is news: %t", i, step.err, got)
		}
	}
}

// TestSay: how much the core that receives does is told by frames: one connection may be most of them.
func TestSay(t *testing.T) {
	s := &spreader{known: true}
	now := &dataplane.Shares{Receiver: 0}
	now.Cores[7], now.Cores[8] = 2, 2
	now.Frames[7], now.Frames[9] = 300, 700
	for _, step := range []struct{ frames, want string }{
		{"some", "core 0 receives and does about 70 %, core 1 the rest"},
		{"none", "core 0 receives and does about 100 %, core 1 the rest"},
	} {
		if step.frames == "none" {
			s.frames = now.Frames
			for range stillFor - 1 {
				s.say(now)
			}
		}
		if s.say(now); s.why != step.want {
			t.Errorf("with %s in the last second: %s, want %s", step.frames, s.why, step.want)
		}
	}
}

// TestKept: what is said of the share that a core keeps does not flip with each second, and follows it within some.
func TestKept(t *testing.T) {
	for _, c := range []struct {
		what    string
		shares  []int // in turn; -1: no frame came
		changes int   // at most, after the first
		last    int
	}{
		{"at the edge of a step", []int{64, 66}, 0, 60},
		{"from second to second", []int{40, 80}, 2, 60},
		{"frames each other second", []int{70, -1}, 0, 70},
		{"nothing any more", []int{70, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}, 4, 100},
		{"all", []int{100}, 0, 100},
	} {
		k, changes := &kept{}, 0
		for second := range 40 {
			share, was, first := c.shares[second%len(c.shares)], k.said, !k.known
			still := share < 0
			if still {
				share = 100 // of the buckets
			}
			k.note(share, still)
			if !first && k.said != was {
				changes++
			}
		}
		if changes > c.changes || k.said != c.last {
			t.Errorf("%s: %d changes, and %d %% at last; want at most %d, and %d %%", c.what, changes, k.said, c.changes, c.last)
		}
	}
	k := &kept{}
	k.note(10, false)
	for range 20 {
		k.note(90, false)
	}
	if k.said != 90 {
		t.Errorf("after 20 s of 90 %% it says %d %%", k.said)
	}
}

// TestLoads: what programs with a low priority take is there for frames.
func TestLoads(t *testing.T) {
	before := map[int]proc.Times{0: {User: 100, Idle: 100}}
	now := map[int]proc.Times{0: {User: 110, Nice: 40, Softirq: 20, Idle: 120, IOWait: 10}, 1: {Idle: 100}}
	if got, want := loads(before, now), map[int]coreLoad{0: {busy: 0.3, softirq: 0.2}}; len(got) != 1 || math.Abs(got[0].busy-want[0].busy) > 1e-9 || got[0].softirq != want[0].softirq {
		t.Errorf("%+v, want %+v", got, want)
	}
}
