package option

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxRuns limits how often a benchmark measures.
const maxRuns = 1000

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

// Words checks words against a list of those that are valid.
func Words(option string, values []string, known ...string) error {
	last := len(known) - 1
	want := known[last]
	if last > 0 {
		want = strings.Join(known[:last], ", ") + " or " + want
	}
	return Each(option, values, func(s string) bool { return slices.Contains(known, s) }, want)
}

// Within checks values against the least and the most that are valid.
func Within[T cmp.Ordered](option string, least, most T, values ...T) error {
	return Each(option, values, func(v T) bool { return v >= least && v <= most }, fmt.Sprintf("%v to %v", least, most))
}

// Runs checks how often a benchmark measures.
func Runs(n int) error { return Within("--runs", 1, maxRuns, n) }
