package daemon

import (
	"slices"
	"testing"
)

// Trees are spread over the cores, and of equal ones the first is taken.
func TestLeastUsed(t *testing.T) {
	of := make(map[string]int)
	var got []int
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		of[name] = leastUsed([]int{3, 1, 2}, of)
		got = append(got, of[name])
	}
	if want := []int{3, 1, 2, 3, 1}; !slices.Equal(got, want) {
		t.Errorf("five trees have the cores %d, want %d", got, want)
	}
}
