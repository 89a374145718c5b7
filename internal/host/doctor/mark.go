package doctor

import (
	"fmt"
	"math"
)

// markRules finds policy routing rules whose fwmark compares bits that weir uses.
func markRules(v *view) (o outcome) {
	if len(v.MarkRules) == 0 {
		o.absent = "no policy routing rule compares marks"
		return o
	}
	own := v.Weir.MarkMask
	if own == 0 {
		o.lacks(v, "weir.mark_mask")
		return o
	}
	for i := range v.MarkRules {
		if r := &v.MarkRules[i]; r.Mask&own != 0 {
			o.add(r.comparesOwn(own))
		}
	}
	return o
}

// comparesOwn is the finding that the rule compares bits that weir uses.
func (r *MarkRule) comparesOwn(own uint32) Finding {
	command := "ip rule"
	if r.Family == "inet6" {
		command = "ip -6 rule"
	}
	text := "see the rule, and remove it or let it compare other bits: weir uses all bits of its mask"
	if rest := r.Mask &^ own; rest != 0 {
		text = fmt.Sprintf("see the rule, and replace it by one that leaves weir's bits out: fwmark %#x/%#x", r.Mark&^own, rest)
	}
	f := Finding{
		Severity: Warning, core: -1, Subject: fmt.Sprintf("%s %d", command, r.Priority),
		Says: fmt.Sprintf("%s %d compares weir's own bits of the mark: packets that weir hands to the stack may take another route than the rest of their connection",
			command, r.Priority),
		Evidence: []string{fmt.Sprintf("%s %d: fwmark %#x/%#x", command, r.Priority, r.Mark, r.Mask), fmt.Sprintf("weir's bits (set mark-mask): %#x", own)},
		Remedies: []Remedy{{Command: fmt.Sprintf("%s list pref %d", command, r.Priority), Text: text}},
		Expect:   "the rule steers packets in the stack as it steers those that weir redirects",
	}
	if r.Mask != math.MaxUint32 {
		f.Remedies = append(f.Remedies, Remedy{Command: "grep -n mark-mask " + RulesFile, Text: "or let weir use other bits: set mark-mask, then weir load " + RulesFile})
	}
	return f
}
