package stats

import (
	"math"
	"slices"
)

// levelSteps is how often [Level] repeats its step. A few are enough: later ones change
// nothing that is printed.
const levelSteps = 10

// Level takes out of samples what they have in common. samples[i][j] is what thing i did
// in turn j. All values are positive, and all samples have the same length. If the
// machine was slower in a turn, all things were, by the same factor; without it, what
// differs is the noise of each thing alone. The values are then those of a usual turn.
//
// The factor of a turn is the mean of what the things did in it, each as a share of its
// own median, without the smallest and largest quarters. So a turn in which one thing
// alone was disturbed has the factor of the others. It is Tukey's median polish of the
// logarithms, but for this mean: with a median, whichever thing is in the middle would
// lose its own noise, and ratios would be known half as well.
func Level(samples []Sample) []Sample {
	if len(samples) == 0 {
		return nil
	}
	logs := make([]Sample, len(samples))
	for i, s := range samples {
		logs[i] = s.each(math.Log)
	}
	factors := make(Sample, len(samples[0])) // of each turn, as logarithms
	for range levelSteps {
		for j, factor := range turnFactors(logs) {
			factors[j] += factor
			for _, s := range logs {
				s[j] -= factor
			}
		}
	}
	usual := factors.Median()
	out := make([]Sample, len(samples))
	for i, s := range logs {
		out[i] = s.each(func(v float64) float64 { return math.Exp(v + usual) })
	}
	return out
}

// turnFactors returns how far each turn is from the usual one.
func turnFactors(logs []Sample) Sample {
	medians := make(Sample, len(logs))
	for i, s := range logs {
		medians[i] = s.Median()
	}
	factors := make(Sample, len(logs[0]))
	for j := range factors {
		deviations := make(Sample, len(logs))
		for i, s := range logs {
			deviations[i] = s[j] - medians[i]
		}
		factors[j] = deviations.middleMean()
	}
	return factors
}

// middleMean returns the mean of the middle half of the values, or more of them if they are few.
func (s Sample) middleMean() float64 {
	sorted := slices.Sorted(slices.Values(s))
	cut := len(s) / 4
	return Sample(sorted[cut : len(s)-cut]).Mean()
}

// each returns a function of every value.
func (s Sample) each(f func(float64) float64) Sample {
	out := make(Sample, len(s))
	for i, v := range s {
		out[i] = f(v)
	}
	return out
}
