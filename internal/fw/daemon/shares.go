package daemon

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/limits"
)

// dropped returns how many frames of the interface found no room in the last second, by the core that they were for, as
// far as can be told: interfaces share a core's queue. A core whose queue does not empty counts, too.
func (s *spreader) dropped(now *dataplane.Shares, handed []dataplane.HandOver) map[int]uint32 {
	dropped, drops := make(map[int]uint32), make(map[int]int)
	before := s.handed
	s.handed = handed
	for core := range min(len(handed), len(before)) {
		own := s.given(now, core)
		if own == 0 {
			continue
		}
		full, given := handed[core].Full-before[core].Full, handed[core].Given-before[core].Given
		n := uint32(float64(full) * min(1, float64(own)/float64(max(given, 1))))
		if full > 0 || waits(before[core]) && waits(handed[core]) {
			dropped[core], drops[core] = max(n, 1), s.drops[core]+1
		}
	}
	s.drops = drops
	return dropped
}

// waits reports whether many frames wait for a core. If they do at two looks, it works off less than it is given.
func waits(h dataplane.HandOver) bool { return int32(h.Given-h.Taken) >= limits.SpreadStanding }

// given returns how many of the frames that came in the last second are of buckets that a core has.
func (s *spreader) given(now *dataplane.Shares, core int) (frames uint64) {
	for i := range now.Cores {
		if int(now.Cores[i]) == core+1 {
			frames += uint64(s.framesOf(now, i))
		}
	}
	return frames
}

// leaving reports whether buckets with frames are to leave a core, and have not yet.
func (s *spreader) leaving(now *dataplane.Shares, core int) bool {
	for i := range now.Cores {
		if int(now.Cores[i]) == core+1 && now.Wanted[i] != now.Cores[i] && s.framesOf(now, i) > 0 {
			return true
		}
	}
	return false
}

// A sharing is how the frames of an interface are shared at one look.
type sharing struct {
	*spreader
	wanted  *[dataplane.SpreadBuckets]uint8 // what it changes
	now     *dataplane.Shares
	load    map[int]coreLoad
	dropped map[int]uint32
	work    float64 // of the cores that have frames, as what one can do
	cost    float64 // of a frame, likewise
}

// weigh finds what the frames cost. What other programs do counts, too: then less moves at a time.
func (s *sharing) weigh() {
	frames := s.total(s.now)
	s.work = s.load[s.now.Receiver].busy
	for core := range s.load {
		if core != s.now.Receiver && s.given(s.now, core) > 0 {
			s.work += s.load[core].busy
			frames -= min(frames, uint64(s.dropped[core]))
		}
	}
	s.cost = s.work / float64(max(frames, 1))
}

// demand returns how busy a core would be if it had room for all of its frames.
func (s *sharing) demand(core int) float64 {
	return max(s.load[core].busy, float64(s.given(s.now, core))*s.cost)
}

// share moves buckets by how busy the cores are. The core that receives gives when it is full, and takes back when
// it is not.
func (s *spreader) share(wanted *[dataplane.SpreadBuckets]uint8, now *dataplane.Shares, load map[int]coreLoad, dropped map[int]uint32) {
	if len(load) == 0 {
		return
	}
	var others []int
	for core := range load {
		if core != now.Receiver && s.may(core) {
			others = append(others, core)
		}
	}
	// A core that may take none any more, or that receives now, gives its own back.
	for i, core := range wanted {
		if core != 0 && !slices.Contains(others, int(core)-1) {
			wanted[i] = 0
		}
	}
	if len(others) == 0 {
		return
	}
	slices.SortFunc(others, func(x, y int) int { return cmp.Or(cmp.Compare(load[x].busy, load[y].busy), x-y) })
	calm := slices.DeleteFunc(slices.Clone(others), func(core int) bool { return dropped[core] > 0 })
	all := &sharing{spreader: s, wanted: wanted, now: now, load: load, dropped: dropped}
	all.weigh()
	all.relieve(calm)
	if len(calm) > 0 && all.even(calm) {
		s.full++
	} else {
		s.full = 0
	}
}

// even has cores be as busy as others. calm are those that have room for all of their frames, the least busy first. It
// reports whether the core that receives has time, and everything.
func (s *sharing) even(calm []int) (easy bool) {
	receiver := s.now.Receiver
	own, least, most := s.load[receiver].busy, calm[0], calm[len(calm)-1]
	full, moved := s.load[most].busy >= fullCore, false
	if own >= fullCore && s.load[least].busy < own-evenCores {
		moved = s.balance(receiver, least)
	}
	if !moved && full && own < s.load[most].busy-evenCores {
		moved = s.balance(most, receiver)
	}
	if !moved && full && s.load[least].busy < s.load[most].busy-evenCores {
		moved = s.balance(most, least)
	}
	if moved || own >= easyCore {
		return false
	}
	s.move(s.heaviest(), receiver, max(1, min(spreadStep, s.room(receiver))), fullCore-own, false)
	return !slices.ContainsFunc(s.wanted[:], func(core uint8) bool { return core != 0 })
}

// relieve takes frames from cores that had no room for some: as many as did not fit. A core that stood still for a moment
// drops a few of a million frames, and keeps its share. One that cannot do its share loses more, so that none wait there
// for long. They go back to the core that receives or, if that is full, to those of calm that have time for most of them,
// the least busy first.
func (s *sharing) relieve(calm []int) {
	least := func(x, y int) int { return cmp.Or(cmp.Compare(s.dropped[y], s.dropped[x]), x-y) }
	for i, core := range slices.SortedFunc(maps.Keys(s.dropped), least) { // so the one that drops most finds most time
		if s.leaving(s.now, core) {
			continue
		}
		part, fits := s.part(s.now, s.dropped[core]), math.Inf(1)
		if s.load[core].busy >= fullCore {
			part += spreadDrain
		}
		part = max(1, min(part, spreadStep/len(s.dropped)))
		to := s.now.Receiver
		if s.load[to].busy >= fullCore && i < len(calm) && 2*s.room(calm[i]) > part {
			to, part = calm[i], min(part, s.room(calm[i]))
		}
		if s.load[core].busy >= fullCore {
			fits = s.gap(core, to)
		}
		s.move(core, to, part, fits, s.drops[core] >= dropsFor)
	}
}

// room returns how many buckets, as part of all frames, a core has time for.
func (s *sharing) room(core int) int {
	return int((fullCore - s.load[core].busy) / max(s.work, 1) * dataplane.SpreadBuckets)
}

// worthwhile is which part of the difference between two cores a great connection may be to move: if it is all of it,
// they would change places, again and again.
const worthwhile = 0.95

// gap returns how much work a great connection may be to move from one core to another.
func (s *sharing) gap(from, to int) float64 { return worthwhile * (s.demand(from) - s.demand(to)) }

// balance moves a third of the difference between two cores. More would be too much where a packet's work on the other
// core is more. Interfaces that share cores share that. It reports whether frames move.
func (s *sharing) balance(from, to int) bool {
	third := (s.load[from].busy - s.load[to].busy) / 3 / max(s.work, 1)
	return s.move(from, to, max(1, int(third*dataplane.SpreadBuckets)/max(1, s.among)), s.gap(from, to), false)
}

// place is what buckets of a core have.
func (s *sharing) place(core int) uint8 {
	if core == s.now.Receiver {
		return 0
	}
	return uint8(core + 1)
}

// heaviest returns the core that the most frames are handed to. Without frames the one with the most buckets.
func (s *sharing) heaviest() int {
	var frames [dataplane.MostSpreadCore + 2]uint64
	for i, core := range s.now.Wanted {
		frames[core] += uint64(s.framesOf(s.now, i))<<16 + 1
	}
	frames[0] = 0
	return slices.Index(frames[:], slices.Max(frames[:])) - 1
}

// framesOf returns how many frames of a bucket came in the last second.
func (s *spreader) framesOf(now *dataplane.Shares, bucket int) uint32 {
	return now.Frames[bucket] - s.frames[bucket]
}

// total returns how many frames came in the last second.
func (s *spreader) total(now *dataplane.Shares) (total uint64) {
	for i := range now.Frames {
		total += uint64(s.framesOf(now, i))
	}
	return total
}

// part returns how many buckets have about as many frames as n, at least one and at most spreadStep.
func (s *spreader) part(now *dataplane.Shares, n uint32) int {
	total := max(1, s.total(now))
	return int(min(spreadStep, (uint64(n)*dataplane.SpreadBuckets+total-1)/total))
}

// move moves step buckets from one core to another, those with many frames first, with at most their part of all frames.
// If not even one fits into that, the one with the fewest frames moves. With great, one that does not fit moves also if
// others do, but have not half of it. Such a bucket stays if it is more work than fits: the other core would be as full.
// Buckets without frames go back to the core that receives, and to no other. It reports whether frames move.
func (s *sharing) move(from, to, step int, fits float64, great bool) bool {
	var own []int
	for i, core := range s.wanted {
		switch {
		case core != s.place(from):
		case s.framesOf(s.now, i) > 0:
			own = append(own, i)
		case to == s.now.Receiver:
			s.wanted[i] = 0
		}
	}
	most := s.total(s.now) * uint64(step) / dataplane.SpreadBuckets
	slices.SortStableFunc(own, func(x, y int) int { return cmp.Compare(s.framesOf(s.now, y), s.framesOf(s.now, x)) })
	moved, frames, larger := 0, uint64(0), -1
	for _, i := range own {
		n := uint64(s.framesOf(s.now, i))
		switch {
		case moved == step:
		case frames+n <= most:
			s.wanted[i] = s.place(to)
			frames += n
			moved++
		case (frames == 0 || great) && float64(n)*s.cost < fits:
			larger = i
		}
	}
	if larger >= 0 && (moved == 0 || great && frames < most/2) {
		s.wanted[larger] = s.place(to)
		moved++
	}
	return moved > 0
}
