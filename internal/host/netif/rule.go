package netif

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// A MarkRule is a policy routing rule that compares bits of a packet's mark.
type MarkRule struct {
	IPv6       bool
	Priority   int
	Mark, Mask uint32
}

// String returns the rule as "ip rule PREF: fwmark MARK/MASK" (or ip -6).
func (r MarkRule) String() string {
	command := "ip rule"
	if r.IPv6 {
		command = "ip -6 rule"
	}
	return fmt.Sprintf("%s %d: fwmark %#x/%#x", command, r.Priority, r.Mark, r.Mask)
}

// MarkRules lists the policy routing rules that compare bits of a packet's mark. It
// leaves out inverted rules (not fwmark), as wg-quick has them: other bits do not keep
// packets from these.
func MarkRules() ([]MarkRule, error) {
	var found []MarkRule
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		rules, err := Dump(func() ([]netlink.Rule, error) { return netlink.RuleList(family) })
		if err != nil {
			return nil, fmt.Errorf("list the policy routing rules: %w", err)
		}
		for i := range rules {
			if r := &rules[i]; r.Mask != nil && *r.Mask != 0 && !r.Invert && r.Table != divertTable {
				found = append(found, MarkRule{IPv6: family == netlink.FAMILY_V6, Priority: max(r.Priority, 0), Mark: r.Mark, Mask: *r.Mask})
			}
		}
	}
	return found, nil
}
