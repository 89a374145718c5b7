package dataplane

import (
	"fmt"
	"strings"
)

// lists draws FreeBSD's translation lists, with an anchor in them.
func (d *drawing) lists(before []string) (lines []string) {
	add := func(draw func() string) {
		lines = append(lines, d.valid(append(before[:len(before):len(before)], lines...), draw))
	}
	for range 1 + d.IntN(8) {
		add(func() string { return d.listed(one(d.Rand, "nat", "nat", "rdr", "rdr", "binat")) })
	}
	if d.IntN(3) == 0 {
		kind := one(d.Rand, "nat", "rdr", "binat")
		add(func() string {
			return fmt.Sprintf("load anchor \"in/lists\" {\n%s\n%s\n}", d.listed(kind), d.listed(kind))
		})
		add(func() string { return d.anchorOf(kind) })
		add(func() string { return d.listed(kind) })
	}
	return lines
}

// scrubList draws FreeBSD's scrub rules.
func (d *drawing) scrubList(before []string) (lines []string) {
	for range 1 + d.IntN(5) {
		lines = append(lines, d.valid(append(before[:len(before):len(before)], lines...), func() string {
			family := one(d.Rand, 0, 4, 4, 6)
			options := strings.NewReplacer("scrub (", "", ")", "", ",", "", "set tos", "set-tos").Replace(one(d.Rand, scrubs...))
			if d.IntN(4) == 0 {
				options = ""
			}
			way := one(d.Rand, "", "in", "in", "out", "out")
			if strings.Contains(options, "reassemble tcp") {
				way = ""
			}
			words := []string{
				d.some(6, "no ") + "scrub", way, d.on(), map[int]string{4: "inet", 6: "inet6"}[family],
				one(d.Rand, "", "", "proto tcp", "proto udp"), d.end("from", family, false), d.end("to", family, false),
			}
			if len(strings.Join(words[5:], "")) == 0 {
				words = append(words, "all")
			}
			if !d.copies { // those programs do not let rules choose
				options += d.some(4, " fragment no reassemble")
			}
			if words[0] == "scrub" && words[1] != "out" {
				options += " " + d.some(6, one(d.Rand, "rtable 7", "rtable 8", "rtable 0"))
			}
			return strings.Join(strings.Fields(strings.Join(append(words, options), " ")), " ")
		}))
	}
	if d.IntN(3) == 0 { // the first of them stand in an anchor
		n := 1 + d.IntN(len(lines))
		inside := fmt.Sprintf("load anchor \"in/scrubs\" {\n%s\n}", strings.Join(lines[:n], "\n"))
		lines = append([]string{inside, `scrub-anchor "in/*"`}, lines[n:]...)
	}
	return lines
}

// listed draws a rule of a list, which may be invalid.
func (d *drawing) listed(kind string) string {
	family := one(d.Rand, 4, 4, 4, 6)
	words := []string{kind, one(d.Rand, "", "", "", "pass", "pass log", "log", "pass log (all)"), d.on(), one(d.Rand, "", map[int]string{4: "inet", 6: "inet6"}[family])}
	no := d.IntN(6) == 0
	if no {
		words[0], words[1] = "no "+kind, d.some(3, "log")
	}
	if kind == "binat" {
		words = append(words, d.exchange(family, no))
	} else {
		proto := one(d.Rand, "", "", "proto tcp", "proto udp", "proto { tcp, udp }", "proto sctp", map[int]string{4: "proto icmp", 6: "proto icmp6"}[family])
		ports := proto != "" && !strings.Contains(proto, "icmp")
		words = append(words, proto, d.end("from", family, ports && kind == "nat"), d.listedTo(family, ports), d.tagging())
	}
	if kind == "nat" && !no {
		words = append(words, "->", strings.TrimPrefix(d.nat(family), " nat-to "))
	}
	if kind == "rdr" && !no {
		to := strings.TrimPrefix(d.rdr(family), " rdr-to ")
		if words[4] == "proto sctp" {
			to = portGiven.ReplaceAllString(to, "")
		}
		words = append(words, "->", to)
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

// listedTo draws the destination of a rule of nat or rdr.
func (d *drawing) listedTo(family int, ports bool) string {
	address := one(d.Rand, "any", d.address(family))
	if !ports || d.IntN(2) == 0 {
		return "to " + address
	}
	p, q := one(d.Rand, ports4...), one(d.Rand, ports4...)
	return "to " + address + " port " + one(d.Rand, fmt.Sprint(p), fmt.Sprintf("%d:%d", min(p, q), max(p, q)))
}

var ports4 = []int{53, 80, 80, 443, 8080, 4000}

func (d *drawing) tagging() string {
	return d.some(5, "tag "+one(d.Rand, tags...)) + " " + d.some(6, one(d.Rand, "", "! ")+"tagged "+one(d.Rand, tags...))
}

// exchange draws the ends of a binat rule and its target.
func (d *drawing) exchange(family int, no bool) string {
	sides := one(d.Rand,
		[2]string{"192.168.1.10", "203.0.113.64"}, [2]string{"192.168.1.8/30", "203.0.113.64/30"}, [2]string{"192.168.1.10", "(wan0:0)"},
		[2]string{"any", "203.0.113.2"}, [2]string{"192.168.1.0/24", "10.9.9.0/24"}, [2]string{"(lan0:0)", "203.0.113.66"})
	if family == 6 {
		sides = one(d.Rand,
			[2]string{"fd00:1::10", "2001:db8:113::64"}, [2]string{"fd00:1::/64", "2001:db8:7::/64"}, [2]string{"fd00:1::10/124", "2001:db8:113::60/124"},
			[2]string{"any", "2001:db8:113::2"}, [2]string{"fd00:1::10", "(wan0:0)"})
	}
	text := "from " + sides[0] + " to " + one(d.Rand, "any", "any", d.address(family)) + " " + d.tagging()
	if no {
		return text
	}
	return text + " -> " + sides[1]
}

// anchorOf draws where the anchor's rules are evaluated.
func (d *drawing) anchorOf(kind string) string {
	text := kind + "-anchor " + one(d.Rand, "in/lists", `"in/*"`, "/in/lists") + d.some(2, " "+d.on())
	if kind == "binat" {
		return text
	}
	return text + d.some(3, " inet") + d.some(3, " proto "+one(d.Rand, "tcp", "udp")) + d.some(3, " from "+one(d.Rand, hosts4...)) +
		d.some(3, " to "+one(d.Rand, nets4...))
}
