package netif

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// MarkRules lists the policy routing rules that compare any of these bits of a packet's
// mark, as "ip rule PREF: fwmark MARK/MASK" (or ip -6). It leaves out inverted rules
// (not fwmark), as wg-quick has them: other bits do not keep packets from these.
func MarkRules(bits uint32) ([]string, error) {
	var found []string
	for _, family := range []struct {
		number  int
		command string
	}{{netlink.FAMILY_V4, "ip rule"}, {netlink.FAMILY_V6, "ip -6 rule"}} {
		rules, err := dump(func() ([]netlink.Rule, error) { return netlink.RuleList(family.number) })
		if err != nil {
			return nil, fmt.Errorf("list the policy routing rules: %w", err)
		}
		for _, r := range rules {
			if r.Mask != nil && *r.Mask&bits != 0 && !r.Invert {
				found = append(found, fmt.Sprintf("%s %d: fwmark %#x/%#x", family.command, max(r.Priority, 0), r.Mark, *r.Mask))
			}
		}
	}
	return found, nil
}
