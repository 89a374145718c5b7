package doctor

import (
	"cmp"
	"slices"
)

// adviseOnce leaves each remedy to the first finding that has it. The others name that one.
func (r *Report) adviseOnce() {
	first := map[string]int{}
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Because != "" {
			continue // it says why its own remedies wait
		}
		f.Remedies = slices.DeleteFunc(f.Remedies, func(m Remedy) bool {
			other, known := first[cmp.Or(m.Command, m.Text)]
			if !known {
				first[cmp.Or(m.Command, m.Text)] = i
			} else if name := r.called(other); other != i && !slices.Contains(f.See, name) {
				f.See = append(f.See, name)
			}
			return known
		})
	}
}

// called returns a name of a finding that no other has: its check, and what it is about if
// the check has several.
func (r *Report) called(i int) string {
	f := &r.Findings[i]
	for k := range r.Findings {
		if k != i && r.Findings[k].Check == f.Check && f.Subject != "" {
			return f.Check + " of " + f.Subject
		}
	}
	return f.Check
}
