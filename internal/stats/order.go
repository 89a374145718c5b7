package stats

import (
	"iter"
	"math/rand/v2"
	"slices"
)

// Interleave returns every entry once in each round, in a random order that differs
// between rounds. So a drift over time affects all entries alike.
func Interleave[T any](rounds int, entries []T) iter.Seq2[int, T] {
	return interleave(rand.Shuffle, rounds, entries)
}

func interleave[T any](shuffle func(int, func(i, j int)), rounds int, entries []T) iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		order := slices.Clone(entries)
		for round := range rounds {
			shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			for _, entry := range order {
				if !yield(round, entry) {
					return
				}
			}
		}
	}
}
