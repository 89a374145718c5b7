package daemon

import (
	"testing"

	"weir/internal/fw/dataplane"
	"weir/internal/testenv"
	"weir/pf/resolve"
)

// A spreadWorld has two or more cores, of which core 0 receives. It says how busy they are.
type spreadWorld struct {
	cores   int
	offered float64 // frames of a second, as what a core does alone
	give    float64 // what a hand-over takes of the core that receives, as a part of a frame's work
	take    float64 // and of the other
	now     dataplane.Shares
	done    float64 // of the frames offered, as what a core does alone
	full    uint32
}

// second moves the world on: buckets get the cores that are wanted.
func (w *spreadWorld) second(wanted [dataplane.SpreadBuckets]uint8) map[int]coreLoad {
	w.now.Wanted, w.now.Cores = wanted, wanted
	parts := make([]float64, w.cores)
	for i, core := range wanted {
		w.now.Frames[i] += uint32(1000 * w.offered)
		if core == 0 {
			parts[0] += w.offered / dataplane.SpreadBuckets
		} else {
			parts[core-1] += w.offered / dataplane.SpreadBuckets
		}
	}
	work := make([]float64, w.cores)
	work[0] = parts[0]
	for core := 1; core < w.cores; core++ {
		work[0] += parts[core] * w.give
		work[core] = parts[core] * (1 + w.take)
	}
	// the core that receives takes as many frames as it can
	taken := min(1, 1/max(work[0], 1e-9))
	w.done, w.full = parts[0]*taken, 0
	load := make(map[int]coreLoad)
	load[0] = coreLoad{min(work[0], 1), min(work[0], 1)}
	for core := 1; core < w.cores; core++ {
		got := work[core] * taken
		if got > 1 {
			w.full++
		}
		w.done += min(got, 1) / (1 + w.take)
		load[core] = coreLoad{min(got, 1), 0}
	}
	return load
}

// TestSharesSettle plays how shares move: with two and four cores, at a load that one core cannot do, two cannot,
// and one does easily. What is done gets close to the most that the cores can do, stays there, and nothing moves
// below saturation.
func TestSharesSettle(t *testing.T) {
	if len(steerable()) < 2 {
		testenv.Skip(t, "one core")
	}
	for _, c := range []struct {
		cores   int
		offered float64
		least   float64 // what has to be done in the end
	}{{2, 0.8, 0.8}, {2, 1.3, 1.29}, {2, 3, 1.5}} {
		w := &spreadWorld{cores: c.cores, offered: c.offered, give: 0.18, take: 0.24}
		s := &spreader{Spread: resolve.Spread{Cores: []int{0, 1, 2, 3}}}
		load := w.second([dataplane.SpreadBuckets]uint8{})
		moved := 0
		for second := range 60 {
			wanted := w.now.Wanted
			s.share(&wanted, &w.now, load, w.full > 0)
			s.frames = w.now.Frames
			if wanted != w.now.Wanted {
				moved = second + 1
			}
			load = w.second(wanted)
			if second > 20 && w.done < c.least {
				t.Errorf("%d cores, %.1f offered: %.2f done after %d s, want %.2f", c.cores, c.offered, w.done, second, c.least)
				break
			}
		}
		t.Logf("%d cores, %.1f offered: %.2f done, last moved after %d s, %v", c.cores, c.offered, w.done, moved, load)
		if c.offered < fullCore && moved != 0 {
			t.Errorf("%d cores, %.1f offered: shares moved for %d s", c.cores, c.offered, moved)
		}
	}
}

// TestSharesComeBack checks that frames come back to the core that receives when it has time, and that auto ends then.
func TestSharesComeBack(t *testing.T) {
	if len(steerable()) < 2 {
		testenv.Skip(t, "one core")
	}
	w := &spreadWorld{cores: 2, offered: 0.5, give: 0.18, take: 0.24}
	s := &spreader{Spread: resolve.Spread{Auto: true}}
	var wanted [dataplane.SpreadBuckets]uint8
	for i := range wanted {
		wanted[i] = uint8(2 * (i % 2))
	}
	load := w.second(wanted)
	for range 30 {
		wanted = w.now.Wanted
		s.share(&wanted, &w.now, load, false)
		s.frames = w.now.Frames
		load = w.second(wanted)
	}
	if wanted != [dataplane.SpreadBuckets]uint8{} || s.full < easyFor {
		t.Errorf("after 30 s at half the load of a core: %v, easy for %d s", wanted, s.full)
	}
}

// TestNeedsSpreading checks when auto begins: one core is full of what it receives for three seconds, another has time.
func TestNeedsSpreading(t *testing.T) {
	if len(steerable()) < 2 {
		testenv.Skip(t, "one core")
	}
	full, idle, works := coreLoad{1, 0.98}, coreLoad{0.2, 0.1}, coreLoad{1, 0.1}
	for _, c := range []struct {
		what string
		load map[int]coreLoad
		want bool
	}{
		{"one is full", map[int]coreLoad{0: full, 1: idle}, true},
		{"the other one is full", map[int]coreLoad{0: idle, 1: full}, true},
		{"both are: the card spreads", map[int]coreLoad{0: full, 1: full}, false},
		{"none is", map[int]coreLoad{0: idle, 1: idle}, false},
		{"programs fill one", map[int]coreLoad{0: works, 1: idle}, false},
		{"programs fill the other", map[int]coreLoad{0: full, 1: works}, false},
	} {
		s := &spreader{Spread: resolve.Spread{Auto: true}}
		for second := 1; second <= 3; second++ {
			if got := s.needs(c.load); got != (c.want && second == 3) {
				t.Errorf("%s, after %d s: %v (%s)", c.what, second, got, s.why)
			}
		}
	}
}
