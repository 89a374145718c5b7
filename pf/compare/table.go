package compare

import (
	"fmt"
	"strings"

	"weir/pf/resolve"
)

// automatic is the prefix of tables that stand for lists of addresses.
const automatic = "__automatic_"

// mostNamed is how many addresses are named; the rest is only counted.
const mostNamed = 5

// tables compares the addresses of tables. Tables that stand for a list in a rule are
// compared with the rule.
func tables(before, after *resolve.Ruleset) []Change {
	was, is := contents(before), contents(after)
	var changes []Change
	for _, t := range after.Tables {
		if strings.HasPrefix(t.Name, automatic) {
			continue
		}
		old, ok := was[t.Name]
		now := is[t.Name]
		c := Change{Kind: Table, Place: position(after, t.Pos)}
		switch gained, lost := missing(now, old), missing(old, now); {
		case !ok:
			c.Words = fmt.Sprintf("table <%s> is new, with %d %s", t.Name, len(now), addresses(len(now)))
		case len(gained) > 0 && len(lost) > 0:
			c.Words = fmt.Sprintf("table <%s> gains %s and loses %s", t.Name, named(gained), named(lost))
		case len(gained) > 0:
			c.Words = fmt.Sprintf("table <%s> gains %s", t.Name, named(gained))
		case len(lost) > 0:
			c.Words = fmt.Sprintf("table <%s> loses %s", t.Name, named(lost))
		default:
			continue
		}
		changes = append(changes, c)
	}
	for _, t := range before.Tables {
		if _, ok := is[t.Name]; !ok && !strings.HasPrefix(t.Name, automatic) {
			changes = append(changes, Change{Kind: Table, Words: fmt.Sprintf("table <%s> is gone", t.Name), Place: position(before, t.Pos)})
		}
	}
	return changes
}

func addresses(n int) string {
	if n == 1 {
		return "address"
	}
	return "addresses"
}

// contents returns the addresses of each table as text, in order.
func contents(of *resolve.Ruleset) map[string][]string {
	all := make(map[string][]string, len(of.Tables))
	for _, t := range of.Tables {
		entries := make([]string, 0, len(t.Entries))
		for _, e := range t.Entries {
			entries = append(entries, entry(e))
		}
		all[t.Name] = entries
	}
	return all
}

func entry(e resolve.TableEntry) string {
	text := e.Prefix.String()
	if e.Prefix.IsSingleIP() {
		text = e.Prefix.Addr().String()
	}
	if e.Not {
		return "!" + text
	}
	return text
}

// missing returns what a has and b lacks, once each.
func missing(a, b []string) []string {
	in := make(map[string]bool, len(b))
	for _, s := range b {
		in[s] = true
	}
	var found []string
	for _, s := range a {
		if !in[s] {
			found = append(found, s)
			in[s] = true
		}
	}
	return found
}

// named lists some of the addresses, and counts the rest.
func named(list []string) string {
	if len(list) <= mostNamed {
		return strings.Join(list, ", ")
	}
	more := len(list) - mostNamed
	return fmt.Sprintf("%s and %d more", strings.Join(list[:mostNamed], ", "), more)
}
