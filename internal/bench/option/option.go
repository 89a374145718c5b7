package option

import (
	"fmt"
	"slices"
)

// MaxRuns bounds how often a benchmark measures.
const MaxRuns = 1000

// Each checks the values of an option one by one; want says which are good.
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

// OneOf accepts some words.
func OneOf(words ...string) func(string) bool {
	return func(s string) bool { return slices.Contains(words, s) }
}
