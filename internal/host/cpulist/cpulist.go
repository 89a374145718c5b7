package cpulist

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxCPU is the highest core that a list may name (NR_CPUS of the largest builds).
const MaxCPU = 8191

// Parse reads a list of cores such as "0-3,8"; "" is none. It returns the numbers sorted,
// without duplicates.
func Parse(list string) ([]int, error) {
	var all []int
	list = strings.TrimSpace(list)
	if list == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		from, to, ranged := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && ranged {
			last, err = strconv.Atoi(to)
		}
		if err != nil || first < 0 || last < first || last > MaxCPU {
			return nil, fmt.Errorf("%q is no list of cores", list)
		}
		for id := first; id <= last; id++ {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Format is the inverse of Parse.
func Format(cpus []int) string {
	cpus = slices.Compact(slices.Sorted(slices.Values(cpus)))
	var parts []string
	for i := 0; i < len(cpus); {
		j := i
		for j+1 < len(cpus) && cpus[j+1] == cpus[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, strconv.Itoa(cpus[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", cpus[i], cpus[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// FormatMask writes the form of rps_cpus: hexadecimal, in groups of 32 cores, highest
// first.
func FormatMask(cpus []int) string {
	words := make([]uint32, 1)
	for _, id := range cpus {
		for len(words) <= id/32 {
			words = append(words, 0)
		}
		words[id/32] |= 1 << (id % 32)
	}
	slices.Reverse(words)
	text := strconv.FormatUint(uint64(words[0]), 16)
	for _, w := range words[1:] {
		text += fmt.Sprintf(",%08x", w)
	}
	return text
}

// ParseMask is the inverse of FormatMask.
func ParseMask(mask string) ([]int, error) {
	var all []int
	words := strings.Split(strings.TrimSpace(mask), ",")
	slices.Reverse(words)
	for i, word := range words {
		w, err := strconv.ParseUint(word, 16, 32)
		if err != nil {
			return nil, fmt.Errorf("%q is no mask of cores", mask)
		}
		for bit := range 32 {
			if w&(1<<bit) != 0 {
				all = append(all, i*32+bit)
			}
		}
	}
	return all, nil
}
