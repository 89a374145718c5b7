package shares

import "weir/internal/fw/shaper"

// floor is the part of what a class has that its children of lower priorities get at least,
// by weight.
const floor = 1.0 / 64

// Of returns what each class of a tree gets, in bytes per second. offered is what is sent to
// each leaf; the rates are long-run ones, without bursts.
func Of(s *shaper.Shaper, offered []float64) []float64 {
	t := tree{s, needs(s, offered), make([]float64, len(s.Classes)), make([]float64, len(s.Classes))}
	for i := len(s.Classes) - 1; i >= 0; i-- {
		t.sure[i] = max(t.sure[i], float64(s.Classes[i].Min.Bytes))
		if up := s.Classes[i].Parent; up >= 0 {
			t.sure[up] += t.sure[i]
		}
	}
	t.got[0] = t.need[0]
	for i := range s.Classes {
		if s.Classes[i].Children > 0 {
			t.share(i)
		}
	}
	return t.got
}

// needs returns what each class can use: what its leaves are offered, within all limits.
func needs(s *shaper.Shaper, offered []float64) []float64 {
	need := make([]float64, len(s.Classes))
	for i := len(s.Classes) - 1; i >= 0; i-- {
		c := &s.Classes[i]
		if c.Children == 0 {
			need[i] = offered[i]
		}
		if c.Max.Bytes > 0 {
			need[i] = min(need[i], float64(c.Max.Bytes))
		}
		if c.Parent >= 0 {
			need[c.Parent] += need[i]
		}
	}
	return need
}

type tree struct {
	*shaper.Shaper
	need, got []float64
	sure      []float64 // guaranteed, with what is below
}

// share shares what a class gets among its children.
func (t *tree) share(parent int) {
	up := &t.Classes[parent]
	first, end := up.First, up.First+up.Children
	top, weights, sure := uint8(0), 0.0, 0.0
	for i := first; i < end; i++ {
		if t.need[i] > 0 {
			top, weights = max(top, t.Classes[i].Priority), weights+float64(t.Classes[i].Weight)
		}
	}
	for i := first; i < end; i++ {
		c := &t.Classes[i]
		t.got[i] = min(t.need[i], t.sure[i])
		if c.Priority < top && t.need[i] > 0 {
			t.got[i] = max(t.got[i], min(t.need[i], t.got[parent]*floor*float64(c.Weight)/weights))
		}
		sure += t.got[i]
	}
	left := t.got[parent] - sure
	if left < 0 {
		for i := first; i < end; i++ {
			t.got[i] *= t.got[parent] / sure
		}
		return
	}
	for priority := int(top); priority >= 0; priority-- {
		left = t.fill(first, end, uint8(priority), left)
	}
}

// fill shares what is left among the children of a priority, by weight, until all have what
// they need. It returns what is left then.
func (t *tree) fill(first, end int, priority uint8, left float64) float64 {
	for {
		weights := 0.0
		for i := first; i < end; i++ {
			if t.Classes[i].Priority == priority && t.need[i] > t.got[i] {
				weights += float64(t.Classes[i].Weight)
			}
		}
		if weights == 0 || left < 1e-6 {
			return left
		}
		given := 0.0
		for i := first; i < end; i++ {
			if c := &t.Classes[i]; c.Priority == priority && t.need[i] > t.got[i] {
				part := min(left*float64(c.Weight)/weights, t.need[i]-t.got[i])
				t.got[i] += part
				given += part
			}
		}
		left -= given
	}
}
