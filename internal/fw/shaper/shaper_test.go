package shaper

import (
	"slices"
	"testing"
)

// Guarantees come first, then weights; what a limit leaves goes to the others.
func TestShares(t *testing.T) {
	s := Shaper{Classes: []Class{
		{Parent: -1, First: 1, Children: 3, Max: Rate{Bytes: 1000}},
		{Parent: 0, First: 4, Children: 2, Weight: 2},
		{Parent: 0, Weight: 1, Min: Rate{Bytes: 100}},
		{Parent: 0, Weight: 1, Max: Rate{Bytes: 50}},
		{Parent: 1, Weight: 1},
		{Parent: 1, Weight: 4, Min: Rate{Bytes: 900}},
	}}
	if got, want := s.Shares(), []uint64{1000, 566, 383, 50, 0, 566}; !slices.Equal(got, want) {
		t.Errorf("the shares are %d, want %d", got, want)
	}
	s.Classes[2].Min.Bytes = 5000
	if got, want := s.Shares(), []uint64{1000, 0, 1000, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("with a guarantee beyond the line: %d, want %d", got, want)
	}
}
