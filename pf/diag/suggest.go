package diag

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MisspeltField refuses an object if one of its fields is unknown and looks like a known
// field that is missing: what it says would be ignored. Other unknown fields are remarks.
func MisspeltField[V any](object map[string]V, fields []string) error {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if slices.Contains(fields, name) {
			continue
		}
		meant := Nearest(name, fields)
		if i := slices.IndexFunc(fields, func(f string) bool { return strings.HasPrefix(f, name+"_") }); i >= 0 {
			meant = fields[i]
		}
		if _, there := object[meant]; meant != "" && !there {
			return fmt.Errorf("there is no field %q; did you mean %q?", name, meant)
		}
	}
	return nil
}

// Nearest returns the candidate that word was probably meant to be, or "" if none is
// near. Near means at most one edit per three characters, or one edit for short words. Of
// equally near candidates the first wins.
func Nearest(word string, candidates []string) string {
	limit := max(1, len(word)/3)
	best, bestDistance := "", limit+1
	for _, c := range candidates {
		if c == word || len(c) > len(word)+limit || len(word) > len(c)+limit {
			continue
		}
		if d := distance(word, c); d < bestDistance && d < len(word) {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the number of characters to insert, delete, replace or swap with a
// neighbour to turn a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
