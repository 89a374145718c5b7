package optimize

import (
	"slices"
	"strings"

	"weir/pf/ast"
)

// The following is the plain algorithm of pfctl_optimize.c, which compares all pairs of
// rules. Its cost is quadratic. It defines what the linear algorithms must give.

// plainCovers reports whether a asks for no more than b.
func plainCovers(a, b *rule) bool {
	q, r := a.conditions, b.conditions
	q.on.name, q.direction, q.family, q.proto = "", 0, 0, 0
	r.on.name, r.direction, r.family, r.proto = "", 0, 0, 0
	q.flags, q.fromPort, q.toPort = flags{}, port{}, port{}
	r.flags, r.fromPort, r.toPort = flags{}, port{}, port{}
	return q == r &&
		(a.on.name == "" || a.on.name == b.on.name) &&
		(a.direction == 0 || a.direction == b.direction) &&
		(a.family == 0 || a.family == b.family) &&
		(a.proto == 0 || a.proto == b.proto) &&
		(a.flags == flags{} || a.flags == b.flags) &&
		(!a.fromPort.asked || a.fromPort == b.fromPort) &&
		(!a.toPort.asked || a.toPort == b.toPort) &&
		plainHolds(a.from, b.from, a.fromNot, a.family == b.family) &&
		plainHolds(a.to, b.to, a.toNot, a.family == b.family)
}

// plainHolds reports whether a contains all addresses of b.
func plainHolds(a, b address, not, sameFamily bool) bool {
	switch {
	case a == b, a.any() && !not:
		return true
	case a.kind != prefix || b.kind != prefix || !sameFamily || a.bits >= b.bits:
		return false
	}
	for i := range int(a.bits) {
		if bit(a.addr, i) != bit(b.addr, i) {
			return false
		}
	}
	return true
}

func bit(addr [16]byte, i int) byte { return addr[i/8] >> (7 - i%8) & 1 }

func plainWithoutCovered(b block) block {
	b = slices.Clone(b)
	for i := 0; i < len(b); i++ {
		for k := i + 1; k < len(b); k++ {
			if plainCovers(b[i], b[k]) {
				b = slices.Delete(b, k, k+1)
				k--
			} else if plainCovers(b[k], b[i]) {
				b = slices.Delete(b, i, i+1)
				i--
				break
			}
		}
	}
	return b
}

// plainTable is a table in the making.
type plainTable struct{ hosts []ast.Host }

func plainCombined(b block, table MakeTable) block {
	b = slices.Clone(b)
	froms, tos := make(map[*rule]*plainTable), make(map[*rule]*plainTable)
	join := func(into map[*rule]*plainTable, p1, p2 *rule, end side) {
		if into[p1] == nil {
			into[p1] = &plainTable{[]ast.Host{end(p1.ast).Hosts[0]}}
		}
		into[p1].hosts = append(into[p1].hosts, end(p2.ast).Hosts[0])
		into[p2] = into[p1]
	}
	prefixes := func(x, y address) bool { return x.listable() && y.listable() }
	for i, p1 := range b {
		for _, p2 := range b[i+1:] {
			if p1.conditions != p2.conditions || froms[p2] != nil || tos[p2] != nil {
				continue
			}
			fromEqual, toEqual := p1.from == p2.from, p1.to == p2.to
			switch {
			case fromEqual && !toEqual && froms[p1] == nil && prefixes(p1.to, p2.to):
				join(tos, p1, p2, destination)
			case !fromEqual && toEqual && tos[p1] == nil && prefixes(p1.from, p2.from):
				join(froms, p1, p2, source)
			}
		}
	}
	var out block
	done := make(map[*plainTable]bool)
	for _, r := range b {
		t, end := froms[r], side(source)
		if t == nil {
			t, end = tos[r], destination
		}
		switch {
		case t == nil || len(t.hosts) < threshold:
			out = append(out, r)
		case !done[t]:
			done[t] = true
			out = append(out, r.withTable(end, table(t.hosts)))
		}
	}
	return out
}

// plainStep is a skip step of plainOrdered.
type plainStep struct {
	rules block
	count int
}

func plainOrdered(b block) block {
	var lists [criteria][]*plainStep
	for c := range lists {
		for _, r := range b {
			lists[c] = plainAppend(lists[c], c, r)
		}
	}
	largest := 0
	for c := range lists {
		switch first := lists[c][0]; first.count {
		case len(b), 1:
			first.count = 0
		default:
			largest = max(largest, first.count)
		}
	}
	if largest == 0 {
		return b
	}
	head := slices.Clone(b)
	var blocks, own block
	for len(head) > 0 {
		largest, at := 1, -1
		for c := range lists {
			if n := lists[c][0].count; n > largest {
				largest, at = n, c
			}
		}
		if at < 0 {
			own = append(own, head...)
			break
		}
		taken := lists[at][0]
		lists[at] = lists[at][1:]
		for _, r := range taken.rules {
			head = slices.DeleteFunc(head, func(o *rule) bool { return o == r })
			for c := range lists {
				plainRemove(lists[c], r)
			}
		}
		if taken.count > 2 {
			blocks = append(blocks, plainOrdered(taken.rules)...)
		} else {
			own = append(own, taken.rules...)
		}
	}
	return append(blocks, own...)
}

// plainAppend adds a rule to the first list of similar rules. The list then overtakes
// shorter ones.
func plainAppend(lists []*plainStep, c int, r *rule) []*plainStep {
	at := slices.IndexFunc(lists, func(s *plainStep) bool { return plainSame(c, s.rules[0], r) })
	if at < 0 {
		at = len(lists)
		lists = append(lists, &plainStep{})
	}
	s := lists[at]
	s.rules = append(s.rules, r)
	s.count++
	for at > 0 && lists[at-1].count < s.count {
		lists[at-1], lists[at] = lists[at], lists[at-1]
		at--
	}
	return lists
}

func plainRemove(lists []*plainStep, r *rule) {
	if len(lists) == 0 || lists[0].count <= 1 {
		return
	}
	for at, s := range lists {
		k := slices.Index(s.rules, r)
		if k < 0 {
			continue
		}
		s.rules = slices.Delete(slices.Clone(s.rules), k, k+1)
		s.count--
		for at+1 < len(lists) && lists[at+1].count > s.count {
			lists[at], lists[at+1] = lists[at+1], lists[at]
			at++
		}
		return
	}
}

// plainSame reports whether a packet that fails one rule in a criterion also fails the
// other. It is false if a rule asks nothing.
func plainSame(c int, a, b *rule) bool {
	switch c {
	case 0:
		return a.on.name != "" && a.on.name == b.on.name && a.on.not == b.on.not
	case 1:
		return a.direction != 0 && a.direction == b.direction
	case 2:
		return a.on.domain != 0 && a.on.domain == b.on.domain && a.on.not == b.on.not
	case 3:
		return a.family != 0 && a.family == b.family
	case 4:
		return a.proto != 0 && a.proto == b.proto
	case 5:
		return a.fromNot == b.fromNot && plainSameAddress(a.from, b.from)
	case 6:
		return a.toNot == b.toNot && plainSameAddress(a.to, b.to)
	case 7:
		return a.fromPort.asked && a.fromPort == b.fromPort
	}
	return a.toPort.asked && a.toPort == b.toPort
}

// plainSameAddress compares addresses. As in pfctl, (if) is compared without modifiers.
func plainSameAddress(a, b address) bool {
	a.text = strings.ReplaceAll(a.text, ":network", "")
	b.text = strings.ReplaceAll(b.text, ":network", "")
	return a == b && (a.kind == other || a.addr != [16]byte{})
}
