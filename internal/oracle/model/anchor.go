package model

import "weir/pf/resolve"

// Calls are the anchors that contain the present rules. They end the evaluation if one of
// their rules decides.
type calls []call

type call struct {
	end    int           // number of the first rule behind the anchor's
	before *resolve.Rule // the rule that had decided before the anchor
}

// call enters an anchor that matches. It returns the number of the rule before the next
// one to evaluate.
func (cs *calls) call(r *resolve.Rule, matches bool, c *crossing) int {
	switch {
	case !matches:
		return r.Anchor.End - 1
	case r.Anchor.Quick:
		*cs = append(*cs, call{r.Anchor.End, c.rule})
	}
	return r.Nr
}

// end leaves the anchors that end before rule nr, and reports whether that ends the
// evaluation.
func (cs *calls) end(nr int, c *crossing) bool {
	for n := len(*cs); n > 0 && (*cs)[n-1].end <= nr; n-- {
		if c.rule != (*cs)[n-1].before {
			return true
		}
		*cs = (*cs)[:n-1]
	}
	return false
}
