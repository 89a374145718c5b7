package option

import (
	"fmt"
	"slices"
)

// MaxRuns limits how often a benchmark measures.
const MaxRuns = 1000

// Each checks the values of an option one by one. want describes the valid ones.
func Each[T any](option string, values []T, good func(T) bool, want string) error {
	if len(values) == 0 {
		return fmt.Errorf("%s: nothing given, want %s", option, want)
	}
	for _, v := range values {
		if !good(v) {
			return fmt.Errorf("%s %v: want %s", option, v, want)
		}
	}
	return nil
}

// OneOf accepts the given words.
func OneOf(words ...string) func(string) bool {
	return func(s string) bool { return slices.Contains(words, s) }
}
