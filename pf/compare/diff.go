package compare

import (
	"slices"
	"strings"
)

// An edit is a line that only one of the two configurations has.
type edit struct {
	added bool
	at    int // line number
	with  int // for an added line that replaces a similar one: the number of the old line; otherwise -1
}

// diff returns the edits between two lists of lines, in the order of the new one. Lines
// that occur once in both lists anchor the comparison, so the cost is nearly linear. The
// result need not have the fewest edits.
func diff(a, b []line) []edit {
	var edits []edit
	i, j := 0, 0
	for _, m := range append(matches(a, b), [2]int{len(a), len(b)}) {
		edits = append(edits, gap(a, b, i, m[0], j, m[1])...)
		i, j = m[0]+1, m[1]+1
	}
	return edits
}

// matches pairs equal lines, ascending in both lists.
func matches(a, b []line) [][2]int {
	first := 0
	for first < len(a) && first < len(b) && a[first].text == b[first].text {
		first++
	}
	last := 0
	for last < len(a)-first && last < len(b)-first && a[len(a)-1-last].text == b[len(b)-1-last].text {
		last++
	}
	var pairs [][2]int
	for i := range first {
		pairs = append(pairs, [2]int{i, i})
	}
	i, j := first, first
	for _, m := range append(ascending(unique(a[first:len(a)-last], b[first:len(b)-last])), [2]int{len(a) - last - first, len(b) - last - first}) {
		pairs = append(pairs, around(a, b, i, m[0]+first, j, m[1]+first)...)
		if i, j = m[0]+first+1, m[1]+first+1; i <= len(a)-last && j <= len(b)-last {
			pairs = append(pairs, [2]int{i - 1, j - 1})
		}
	}
	for k := range last {
		pairs = append(pairs, [2]int{len(a) - last + k, len(b) - last + k})
	}
	return pairs
}

// around pairs equal lines at both ends of a gap.
func around(a, b []line, i, iEnd, j, jEnd int) [][2]int {
	var front, back [][2]int
	for ; i < iEnd && j < jEnd && a[i].text == b[j].text; i, j = i+1, j+1 {
		front = append(front, [2]int{i, j})
	}
	for ; i < iEnd && j < jEnd && a[iEnd-1].text == b[jEnd-1].text; iEnd, jEnd = iEnd-1, jEnd-1 {
		back = append(back, [2]int{iEnd - 1, jEnd - 1})
	}
	slices.Reverse(back)
	return append(front, back...)
}

// unique pairs the lines that occur exactly once in both lists, in the order of b.
func unique(a, b []line) [][2]int {
	type seen struct{ inA, inB, at int }
	lines := make(map[string]*seen, len(a))
	for i := range a {
		s := lines[a[i].text]
		if s == nil {
			s = &seen{}
			lines[a[i].text] = s
		}
		s.inA, s.at = s.inA+1, i
	}
	for j := range b {
		if s := lines[b[j].text]; s != nil {
			s.inB++
		}
	}
	var pairs [][2]int
	for j := range b {
		if s := lines[b[j].text]; s != nil && s.inA == 1 && s.inB == 1 {
			pairs = append(pairs, [2]int{s.at, j})
		}
	}
	return pairs
}

// ascending returns the longest subsequence of the pairs in which both numbers ascend.
func ascending(pairs [][2]int) [][2]int {
	before := make([]int, len(pairs)) // for each pair: its predecessor in the longest subsequence that ends in it
	var ends []int                    // for each length: the smallest pair that ends such a subsequence
	for k, p := range pairs {
		n, _ := slices.BinarySearchFunc(ends, p[0], func(end, want int) int { return pairs[end][0] - want })
		before[k] = -1
		if n > 0 {
			before[k] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, k)
		} else {
			ends[n] = k
		}
	}
	var longest [][2]int
	if len(ends) > 0 {
		for k := ends[len(ends)-1]; k >= 0; k = before[k] {
			longest = append(longest, pairs[k])
		}
	}
	slices.Reverse(longest)
	return longest
}

// gap returns the edits between two matches. A removed and an added line at the same
// place of the gap are one edit if they are similar.
func gap(a, b []line, i, iEnd, j, jEnd int) []edit {
	var edits []edit
	for i < iEnd && j < jEnd {
		if alike(a[i].text, b[j].text) {
			edits = append(edits, edit{added: true, at: j, with: i})
		} else {
			edits = append(edits, edit{at: i, with: -1}, edit{added: true, at: j, with: -1})
		}
		i, j = i+1, j+1
	}
	for ; i < iEnd; i++ {
		edits = append(edits, edit{at: i, with: -1})
	}
	for ; j < jEnd; j++ {
		edits = append(edits, edit{added: true, at: j, with: -1})
	}
	return edits
}

// alike reports whether two lines share more than half of their words.
func alike(a, b string) bool {
	words := map[string]int{}
	n := 0
	for w := range strings.FieldsSeq(a) {
		words[w]++
		n++
	}
	shared, m := 0, 0
	for w := range strings.FieldsSeq(b) {
		m++
		if words[w] > 0 {
			words[w]--
			shared++
		}
	}
	return 2*shared > max(n, m)
}

// moves returns the added lines that were elsewhere before, with their old places.
func moves(edits []edit, a, b []line) map[edit]int {
	gone := map[string][]edit{}
	for _, e := range edits {
		if !e.added {
			gone[a[e.at].text] = append(gone[a[e.at].text], e)
		}
	}
	moved := map[edit]int{}
	for _, e := range edits {
		if !e.added || e.with >= 0 {
			continue
		}
		if from := gone[b[e.at].text]; len(from) > 0 {
			moved[e], moved[from[0]] = from[0].at, from[0].at
			gone[b[e.at].text] = from[1:]
		}
	}
	return moved
}
