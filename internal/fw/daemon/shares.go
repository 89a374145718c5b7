package daemon

import (
	"cmp"
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
	own := load[now.Receiver].busy
	calm := slices.DeleteFunc(slices.Clone(others), func(core int) bool { return dropped[core] > 0 })
	s.relieve(wanted, now, load, dropped, calm)
	easy := false
	if len(calm) > 0 {
		least, most := calm[0], calm[len(calm)-1]
		switch {
		case own >= fullCore && load[least].busy < own-evenCores:
			s.move(wanted, now, now.Receiver, least, s.step(own, load[least].busy), false)
		case load[most].busy >= fullCore && own < load[most].busy-evenCores:
			s.move(wanted, now, most, now.Receiver, s.step(load[most].busy, own), false)
		case load[most].busy-load[least].busy > evenCores && load[most].busy >= fullCore:
			s.move(wanted, now, most, least, s.step(load[most].busy, load[least].busy), false)
		case own < easyCore:
			s.move(wanted, now, s.heaviest(now, others), now.Receiver, spreadStep, false)
			easy = !slices.ContainsFunc(wanted[:], func(core uint8) bool { return core != 0 })
		}
	}
	if easy {
		s.full++
	} else {
		s.full = 0
	}
}

// relieve takes frames from cores that had no room for some: as many as did not fit. A core that stood still for a moment
// drops a few of a million frames, and keeps its share. One that cannot do its share loses more, so that none wait there
// for long. They go back to the core that receives or, if that is full, to one of calm, the least busy first.
func (s *spreader) relieve(wanted *[dataplane.SpreadBuckets]uint8, now *dataplane.Shares, load map[int]coreLoad, dropped map[int]uint32, calm []int) {
	to := now.Receiver
	if load[to].busy >= fullCore && len(calm) > 0 && load[calm[0]].busy < fullCore {
		to = calm[0]
	}
	for core, n := range dropped {
		if s.leaving(now, core) {
			continue
		}
		part := s.part(now, n)
		if load[core].busy >= fullCore {
			part += spreadDrain
		}
		s.move(wanted, now, core, to, max(1, min(part, spreadStep/len(dropped))), s.drops[core] >= dropsFor)
	}
}

// step returns how many buckets move from one core to another at a time, as both are busy: a third of the difference,
// as part of all frames. More would be too much where a packet's work on the other core is more. Interfaces that share
// cores share the step.
func (s *spreader) step(from, to float64) int {
	return max(1, int((from-to)*dataplane.SpreadBuckets/3)/max(1, s.among))
}

// heaviest returns the core that the most buckets go to.
func (s *spreader) heaviest(now *dataplane.Shares, cores []int) int {
	count := make(map[int]int)
	for _, core := range now.Wanted {
		count[int(core)-1]++
	}
	return slices.MaxFunc(cores, func(x, y int) int { return cmp.Compare(count[x], count[y]) })
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
// others do, but have not half of it. Buckets without frames go back to the core that receives, and to no other.
func (s *spreader) move(wanted *[dataplane.SpreadBuckets]uint8, now *dataplane.Shares, from, to, step int, great bool) {
	place := func(core int) uint8 {
		if core == now.Receiver {
			return 0
		}
		return uint8(core + 1)
	}
	var own []int
	for i, core := range wanted {
		switch {
		case core != place(from):
		case s.framesOf(now, i) > 0:
			own = append(own, i)
		case to == now.Receiver:
			wanted[i] = 0
		}
	}
	most := s.total(now) * uint64(step) / dataplane.SpreadBuckets
	slices.SortStableFunc(own, func(x, y int) int { return cmp.Compare(s.framesOf(now, y), s.framesOf(now, x)) })
	moved, frames, larger := 0, uint64(0), -1
	for _, i := range own {
		n := uint64(s.framesOf(now, i))
		switch {
		case moved == step:
		case frames+n <= most:
			wanted[i] = place(to)
			frames += n
			moved++
		case frames == 0 || great:
			larger = i
		}
	}
	if larger >= 0 && (moved == 0 || great && frames < most/2) {
		wanted[larger] = place(to)
	}
}
