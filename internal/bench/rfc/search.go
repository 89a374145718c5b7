package rfc

import (
	"fmt"
	"math"
)

// Trial offers a rate once and gives the share that was lost (0 to 1).
type Trial func(rate float64) (loss float64, err error)

// Goal is what a rate has to meet.
type Goal struct {
	Loss      float64 // share that may be lost; 0: none
	Precision float64 // of the rate that is found, as a share of it
	// Tries are how often a rate may fail. On a machine that others use, what
	// they take is lost as if the device had lost it.
	Tries int
}

// Found is the highest rate that met a goal.
type Found struct {
	Rate float64 // 0: not even the lowest did
	// Step is how far above it lies the lowest rate that did not: the limit is
	// somewhere between the two. 0 with Bound.
	Step   float64
	Bound  bool // the highest rate that could be offered met it: the device may do more
	Trials int
}

// Search looks for the highest rate from lowest to highest that meets a goal.
// A bit less than came through at the highest is tried next: a device that is
// overrun often forwards as much as it can. From there it goes up in growing steps and halves
// the last one. A device that loses frames even then may lose some at every
// rate: it is asked at the geometric mean of the lowest and that one, then at the
// lowest, where a trial of so many connections takes long, and only if it passes
// what is between is halved. So each rate but a few is half as far from the limit as the one
// before: there are no more than log2(highest/lowest/precision) of them, twice,
// each tried as often as may be.
func Search(lowest, highest float64, g Goal, trial Trial) (Found, error) {
	s := search{goal: g, trial: trial, high: highest}
	if !(lowest > 0 && highest >= lowest) {
		return s.found, fmt.Errorf("search a rate from %v to %v: want a range above 0", lowest, highest)
	}
	through, err := s.offer(highest)
	if err != nil || s.low == highest {
		s.found.Rate, s.found.Bound = s.low, s.low == highest
		return s.found, err
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

// search is one that has brought the limit between two rates.
type search struct {
	goal  Goal
	trial Trial
	found Found
	low   float64 // the highest rate that met the goal; 0: none yet
	high  float64 // the lowest that did not, or that was not tried
}

// narrow goes up in steps, each twice as large as the one before, until half of
// what is left is less.
func (s *search) narrow(step float64) error {
	for s.high-s.low > s.goal.Precision*s.high {
		if _, err := s.offer(min(s.low+step, (s.low+s.high)/2)); err != nil {
			return err
		}
		step *= 2
	}
	return nil
}

// offer offers a rate until it meets the goal, as often as may be; through is
// the most that came through.
func (s *search) offer(rate float64) (through float64, err error) {
	for range max(1, s.goal.Tries) {
		loss, err := s.trial(rate)
		if err != nil {
			return 0, err
		}
		s.found.Trials++
		if loss <= s.goal.Loss {
			s.low = rate
			return rate, nil
		}
		through = max(through, rate*(1-loss))
	}
	s.high = rate
	return through, nil
}
