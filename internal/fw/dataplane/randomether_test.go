package dataplane

import (
	"fmt"
	"strings"
)

// etherList draws ether rules, some of them in anchors.
func (d *drawing) etherList(before []string) (lines []string) {
	add := func(draw func() string) {
		lines = append(lines, d.valid(append(before[:len(before):len(before)], lines...), draw))
	}
	for range 1 + d.IntN(5) {
		add(d.etherRule)
	}
	if d.IntN(2) == 0 {
		for _, name := range []string{"e/a", "e/b"} {
			add(func() string {
				return fmt.Sprintf("load anchor %q {\n%s\n%s\n}", name, d.etherRule(), d.etherRule())
			})
		}
		add(func() string { return d.etherConditions("ether anchor " + one(d.Rand, "e/a", `"e/*"`, "/e/b")) })
		add(d.etherRule)
	}
	return lines
}

// etherMACs are those of frames.
var etherMACs = []string{lan0MAC, wan0MAC, lanHostMAC, wanHostMAC, lanHostMAC, "02:77:65:00:00:99"}

func (d *drawing) etherRule() string {
	return d.etherConditions("ether " + one(d.Rand, "pass", "pass", "block", "block", "match"))
}

func (d *drawing) etherConditions(what string) string {
	mac := func() string {
		if d.IntN(3) != 0 {
			return "any"
		}
		m := d.some(5, "! ") + one(d.Rand, etherMACs...)
		return m + one(d.Rand, "", "", "", "/24", "/47", " & ff:00:ff:00:00:ff", " & 01:00:00:00:00:00")
	}
	family := one(d.Rand, 4, 4, 6)
	host := func() string {
		if d.IntN(2) == 0 {
			return "any"
		}
		if family == 6 {
			return d.some(4, "! ") + one(d.Rand, one(d.Rand, hosts6...), one(d.Rand, nets6...), "<t1>", "<t2>")
		}
		return d.some(4, "! ") + one(d.Rand, one(d.Rand, hosts4...), one(d.Rand, nets4...), "<t1>", "<t2>")
	}
	direction := one(d.Rand, "", "in", "in", "out")
	words := []string{what, direction, d.some(4, "quick"), one(d.Rand, "", "", "on lan0", "on wan0", "on ! lan0", "on egress")}
	if what == "ether pass" {
		words = append(words, d.some(10, "bridge-to "+one(d.Rand, "lan0", "wan0", "none0")))
	}
	words = append(words, one(d.Rand, "", "", "", "proto 0x0800", "proto 0x86dd", "proto { 0x0800 0x86dd }", "proto 0x0806", "proto 0x8100"),
		"from "+mac()+" to "+mac())
	if d.IntN(2) == 0 {
		words = append(words, "l3 from "+host()+" to "+host())
	}
	words = append(words, d.some(2, "tag "+one(d.Rand, tags...)))
	if direction == "in" {
		words = append(words, d.some(5, one(d.Rand, "", "! ")+"tagged "+one(d.Rand, tags...)))
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}
