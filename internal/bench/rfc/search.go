package rfc

import (
	"fmt"
	"math"
)

// Trial offers a rate once and returns the share that was lost (0 to 1).
type Trial func(rate float64) (loss float64, err error)

// Goal is the condition that a rate has to meet.
type Goal struct {
	Loss      float64 // allowed share of loss; 0: none
	Precision float64 // precision of the found rate, as a share of it
	// Tries is how often a rate is tried before it fails. On a shared machine other
	// programs cause losses that look like the device's.
	Tries int
}

// Found is the highest rate that met a goal.
type Found struct {
	Rate float64 // 0: even the lowest rate failed
	// Step is the distance to the lowest rate that failed: the limit is somewhere
	// between the two. It is 0 with Bound.
	Step   float64
	Bound  bool // the highest possible rate met the goal: the device may do more
	Trials int

	offered []offered
}

// offered is a rate that was tried as often as its goal allowed.
type offered struct{ rate, least float64 } // least is the smallest share that it lost

// hopeless is the share of loss above which a rate is not tried again. Other programs
// never take that much.
const hopeless = 0.5

// Search looks for the highest rate from lowest to highest that meets a goal. After the
// highest it tries a bit less than came through, because an overrun device often forwards
// as much as it can. From there it goes up in growing steps and halves the last one.
//
// If the device loses frames even then, it may lose some at every rate. Search then tries
// the geometric mean of the lowest rate and that one. If that fails too, it tries the
// lowest, where a trial of so many connections takes long, and halves the rest only if
// the lowest passes. So nearly every rate halves the distance to the limit. There are at
// most twice log2(highest/lowest/precision) rates, each tried as often as the goal
// allows.
func Search(lowest, highest float64, g Goal, trial Trial) (Found, error) {
	return SearchFrom(highest, lowest, highest, g, trial)
}

// SearchFrom is a Search whose first rate is start, near the expected limit, instead of
// the highest. If start meets the goal, the search goes up from there.
func SearchFrom(start, lowest, highest float64, g Goal, trial Trial) (Found, error) {
	s := search{goal: g, trial: trial, high: math.Inf(1)}
	if !(lowest > 0 && highest >= lowest) {
		return s.found, fmt.Errorf("search a rate from %v to %v: want a range above 0", lowest, highest)
	}
	start = min(max(start, lowest), highest)
	through, err := s.offer(start)
	if err != nil || s.low > 0 {
		return s.climb(highest, err)
	}
	guess := max(lowest, through*(1-g.Precision))
	step := g.Precision * guess
	_, err = s.offer(guess)
	for _, rate := range []float64{math.Sqrt(lowest * guess), lowest} {
		if err == nil && s.low == 0 && guess > lowest {
			step = highest
			_, err = s.offer(rate)
		}
	}
	if err == nil && s.low > 0 {
		err = s.narrow(step)
	}
	if s.low > 0 {
		s.found.Rate, s.found.Step = s.low, s.high-s.low
	}
	return s.found, err
}

// Further continues a search with the same highest rate for a goal that allows more loss.
// It does not repeat rates that were offered already.
func (f *Found) Further(lowest, highest float64, g Goal, trial Trial) (Found, error) {
	s := search{goal: g, trial: trial, high: math.Inf(1)}
	for _, o := range f.offered {
		if o.least <= g.Loss {
			s.low = max(s.low, o.rate)
		}
	}
	for _, o := range f.offered {
		if o.rate > s.low {
			s.high = min(s.high, o.rate)
		}
	}
	if s.low == 0 {
		return Search(lowest, highest, g, trial)
	}
	return s.climb(highest, nil)
}

// climb goes up from a rate that met the goal, and ends the search.
func (s *search) climb(highest float64, err error) (Found, error) {
	step := s.goal.Precision * s.low
	for ; err == nil && s.low < highest && math.IsInf(s.high, 1); step *= 2 {
		_, err = s.offer(min(s.low+step, highest))
	}
	if err != nil || s.low >= highest {
		s.found.Rate, s.found.Bound = s.low, s.low >= highest
		return s.found, err
	}
	err = s.narrow(step)
	s.found.Rate, s.found.Step = s.low, s.high-s.low
	return s.found, err
}

// search is a search that has enclosed the limit between two rates.
type search struct {
	goal  Goal
	trial Trial
	found Found
	low   float64 // the highest rate that met the goal; 0: none yet
	high  float64 // the lowest that failed, or that was not tried
}

// narrow goes up in steps, each twice as large as the one before, until half of the rest
// is less than a step.
func (s *search) narrow(step float64) error {
	for s.high-s.low > s.goal.Precision*s.high {
		if _, err := s.offer(min(s.low+step, (s.low+s.high)/2)); err != nil {
			return err
		}
		step *= 2
	}
	return nil
}

// offer offers a rate until it meets the goal, is hopeless, or has used up its tries. It
// returns the most that came through.
func (s *search) offer(rate float64) (through float64, err error) {
	least := 1.0
	defer func() { s.found.offered = append(s.found.offered, offered{rate, least}) }()
	for range max(1, s.goal.Tries) {
		loss, err := s.trial(rate)
		if err != nil {
			return 0, err
		}
		s.found.Trials++
		least = min(least, loss)
		if loss <= s.goal.Loss {
			s.low = rate
			return rate, nil
		}
		through = max(through, rate*(1-loss))
		if loss > hopeless {
			break
		}
	}
	s.high = rate
	return through, nil
}
