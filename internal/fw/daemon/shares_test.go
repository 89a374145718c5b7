package daemon

import (
	"fmt"
	"testing"

	"weir/internal/fw/dataplane"
	"weir/pf/resolve"
)

// A spreadWorld has two or more cores, of which core 0 receives. It says how busy they are.
type spreadWorld struct {
	cores   int
	offered float64                          // frames of a second, as what a core does alone
	flows   [dataplane.SpreadBuckets]float64 // by bucket: its part of them
	give    float64                          // what a hand-over takes of the core that receives, as a part of a frame's work
	take    float64                          // and of the other
	now     dataplane.Shares
	before  [dataplane.SpreadBuckets]uint32 // frames, at the second before
	done    float64                         // of the frames offered, as what a core does alone
	full    map[int]uint32                  // by core: frames that found no room
}

// framesOfCore is how many frames a core does alone in a second.
const framesOfCore = 500_000

func newSpreadWorld(cores int, offered float64, flows func(bucket int) float64) *spreadWorld {
	w := &spreadWorld{cores: cores, offered: offered, give: 0.18, take: 0.24}
	total := 0.0
	for i := range w.flows {
		w.flows[i] = flows(i)
		total += w.flows[i]
	}
	for i := range w.flows {
		w.flows[i] /= total
	}
	return w
}

// How much of the frames the connections of a bucket have.
func evenFlows(int) float64 { return 1 }

// zipfFlows are a few great connections and many small ones, in no order.
func zipfFlows(bucket int) float64 { return 1 / float64(1+bucket*167%dataplane.SpreadBuckets) }

// fewFlows are ten connections.
func fewFlows(bucket int) float64 {
	if bucket%50 != 7 || bucket > 500 {
		return 0
	}
	return 1 + float64(bucket%3)
}

// heavyFlow is one connection that is a quarter of all frames.
func heavyFlow(bucket int) float64 {
	if bucket == 100 {
		return (dataplane.SpreadBuckets - 1) / 3.
	}
	return 1
}

// second moves the world on: buckets get the cores that are wanted.
func (w *spreadWorld) second(wanted [dataplane.SpreadBuckets]uint8) map[int]coreLoad {
	w.now.Wanted, w.now.Cores = wanted, wanted
	parts := w.parts()
	work := make([]float64, w.cores)
	work[0] = parts[0]
	for core := 1; core < w.cores; core++ {
		work[0] += parts[core] * w.give
		work[core] = parts[core] * (1 + w.take)
	}
	// the core that receives takes as many frames as it can
	taken := min(1, 1/max(work[0], 1e-9))
	w.before = w.now.Frames
	for i := range w.flows {
		w.now.Frames[i] += uint32(framesOfCore * w.offered * w.flows[i] * taken)
	}
	w.done, w.full = parts[0]*taken, make(map[int]uint32)
	load := make(map[int]coreLoad)
	load[0] = coreLoad{min(work[0], 1), min(work[0], 1)}
	for core := 1; core < w.cores; core++ {
		got := work[core] * taken
		if got > 1 {
			w.full[core] = uint32((got - 1) / (1 + w.take) * framesOfCore)
		}
		w.done += min(got, 1) / (1 + w.take)
		load[core] = coreLoad{min(got, 1), 0}
	}
	return load
}

// parts returns which part of the frames each core has.
func (w *spreadWorld) parts() []float64 {
	parts := make([]float64, w.cores)
	for i, core := range w.now.Wanted {
		parts[max(int(core)-1, 0)] += w.offered * w.flows[i]
	}
	return parts
}

// most is how much the cores could do of what is offered, if it could be cut at will.
func (w *spreadWorld) most() float64 {
	others := float64(w.cores-1) / (1 + w.take)
	if others*w.give >= 1 {
		return min(w.offered, 1/w.give)
	}
	return min(w.offered, others+1-others*w.give)
}

// unfair returns a core that is full, and another that has time for one of its buckets; else the same twice.
func (w *spreadWorld) unfair(load map[int]coreLoad) (full, idle int) {
	for bucket, place := range w.now.Wanted {
		core := max(int(place)-1, 0)
		work := float64(w.now.Frames[bucket]-w.before[bucket]) / framesOfCore * (1 + w.take)
		for other := range load {
			if load[core].busy >= fullCore && work > 0 && load[other].busy+work < fullCore-evenCores {
				return core, other
			}
		}
	}
	return 0, 0
}

// TestSharesSettle plays how shares move with 2 to 8 cores, at loads that one core cannot do, all cannot, and one does
// easily. What is done gets close to the most that the cores can do within seconds, and stays there. Soon
// nothing moves any more. No core is full while another has time for one of its buckets. Nothing moves below saturation.
func TestSharesSettle(t *testing.T) {
	var all []int
	for core := range 8 {
		all = append(all, core)
	}
	for _, flows := range []struct {
		name  string
		of    func(int) float64
		least float64 // part of the most that can be done: connections cannot be cut
	}{{"even", evenFlows, 0.95}, {"zipf", zipfFlows, 0.95}, {"few", fewFlows, 0.92}, {"heavy", heavyFlow, 0.89}} {
		for _, cores := range []int{2, 3, 4, 8} {
			for _, offered := range []float64{0.8, 1.3, 2, 3, 5, 8} {
				w := newSpreadWorld(cores, offered, flows.of)
				s := &spreader{Spread: resolve.Spread{Cores: all}, online: all}
				what := fmt.Sprintf("%s flows, %d cores, %.1f offered", flows.name, cores, offered)
				load := w.second([dataplane.SpreadBuckets]uint8{})
				moved := 0
				for second := range 120 {
					wanted := w.now.Wanted
					s.share(&wanted, &w.now, load, w.full)
					s.frames = w.now.Frames
					if wanted != w.now.Wanted {
						moved = second + 1
					}
					load = w.second(wanted)
					if least := 0.8 * w.most(); second > 12 && w.done < least {
						t.Errorf("%s: %.2f done after %d s, want %.2f", what, w.done, second, least)
						break
					}
				}
				t.Logf("%s: %.2f of %.2f done, last moved after %d s, %v, full %v", what, w.done, w.most(), moved, load, w.full)
				if w.done < flows.least*w.most() {
					t.Errorf("%s: %.2f done, want %.2f of %.2f", what, w.done, flows.least, w.most())
				}
				if moved > 60 || offered < fullCore && moved != 0 {
					t.Errorf("%s: shares moved for %d s", what, moved)
				}
				if full, idle := w.unfair(load); full != idle {
					t.Errorf("%s: core %d is full (%.2f), and core %d is not (%.2f)", what, full, load[full].busy, idle, load[idle].busy)
				}
			}
		}
	}
}

// TestSharesOfGreatConnections: a connection that alone is more than a core can do stays where it is. Others leave it.
func TestSharesOfGreatConnections(t *testing.T) {
	w := newSpreadWorld(3, 3, heavyFlow)
	s := &spreader{Spread: resolve.Spread{Cores: []int{0, 1, 2}}, online: []int{0, 1, 2}, drops: map[int]int{1: dropsFor, 2: dropsFor}}
	w.flows = [dataplane.SpreadBuckets]float64{7: 0.5, 8: 0.1, 9: 0.1, 10: 0.1, 11: 0.1, 12: 0.1}
	wanted := [dataplane.SpreadBuckets]uint8{7: 2, 8: 2, 9: 2, 10: 2, 11: 2, 12: 2}
	load := w.second(wanted)
	for second := range 60 {
		wanted = w.now.Wanted
		s.share(&wanted, &w.now, load, w.full)
		s.frames = w.now.Frames
		if second > 20 && wanted != w.now.Wanted {
			t.Errorf("after %d s shares still move: from %v to %v", second, w.now.Wanted[7:13], wanted[7:13])
		}
		load = w.second(wanted)
	}
	if w.now.Wanted[7] == w.now.Wanted[8] {
		t.Errorf("others stay with the great connection: %v", w.now.Wanted[7:13])
	}
}

// TestTakingBackFits checks that the core that receives takes no more back at a time than it has time for, also if the
// frames are the work of many cores.
func TestTakingBackFits(t *testing.T) {
	s, now, load := &spreader{}, dataplane.Shares{Receiver: 0}, map[int]coreLoad{0: {0.68, 0.68}}
	work := load[0].busy
	for core := range 8 {
		s.online = append(s.online, core)
		if core > 0 {
			load[core] = coreLoad{0.85, 0}
			work += load[core].busy
		}
	}
	for i := range now.Cores {
		now.Frames[i] = 100
		now.Cores[i] = uint8(2 + i%7)
	}
	now.Wanted = now.Cores
	wanted := now.Wanted
	s.share(&wanted, &now, load, nil)
	back := 0
	for _, core := range wanted {
		if core == 0 {
			back++
		}
	}
	if busy := load[0].busy + float64(back)/dataplane.SpreadBuckets*work; back == 0 || busy > fullCore {
		t.Errorf("%d buckets come back: the core would be %.2f busy", back, busy)
	}
}
