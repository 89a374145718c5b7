package resolve

import (
	"cmp"
	"net/netip"
	"slices"
	"sort"

	"weir/pf/ast"
)

// maxSplits limits how often the networks of a table are halved to leave out exclusions.
// Each halving adds at most one network.
const maxSplits = 4096

// exclusions are the prefixes that a table excludes, in order, shorter ones first.
type exclusions []netip.Prefix

// excluded returns the exclusions among entries. Of entries for the same prefix the first
// counts.
func excluded(entries []TableEntry) exclusions {
	if !slices.ContainsFunc(entries, func(e TableEntry) bool { return e.Not }) {
		return nil
	}
	seen := make(map[netip.Prefix]bool, len(entries))
	var list exclusions
	for _, e := range entries {
		if p := e.Prefix.Masked(); !seen[p] {
			seen[p] = true
			if e.Not {
				list = append(list, p)
			}
		}
	}
	slices.SortFunc(list, comparePrefixes)
	return list
}

func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}

// of returns the exclusions within p that are at least as long as p.
func (e exclusions) of(p netip.Prefix) exclusions {
	first, _ := slices.BinarySearchFunc(e, p.Masked(), comparePrefixes)
	rest := e[first:]
	return rest[:sort.Search(len(rest), func(i int) bool { return !p.Contains(rest[i].Addr()) })]
}

// A remainder collects the rest of networks after exclusions.
type remainder struct {
	addrs  []Address
	splits int
}

// add appends p without its exclusions. The longest prefix counts, so these are all that
// are at least as long. It makes at most maxSplits halvings.
func (r *remainder) add(p netip.Prefix, out exclusions) {
	switch {
	case len(out) == 0:
		r.addrs = append(r.addrs, Address{Kind: PrefixAddress, Prefix: p})
		return
	case out[0] == p.Masked():
		return
	}
	if r.splits++; r.splits > maxSplits {
		return
	}
	low, high := halves(p)
	at := sort.Search(len(out), func(i int) bool { return out[i].Addr().Compare(high.Addr()) >= 0 })
	r.add(low, out[:at])
	r.add(high, out[at:])
}

// halves returns the two halves of a network with more than one address.
func halves(p netip.Prefix) (low, high netip.Prefix) {
	p = p.Masked()
	a := p.Addr().AsSlice()
	a[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	middle, _ := netip.AddrFromSlice(a)
	return netip.PrefixFrom(p.Addr(), p.Bits()+1), netip.PrefixFrom(middle, p.Bits()+1)
}

// inFamily returns the addresses of a family in entries without the excluded ones. If
// there were too many pieces it returns false, and the excluded addresses are included.
func inFamily(entries []TableEntry, family ast.Family) ([]Address, bool) {
	out := excluded(entries)
	left := remainder{}
	for _, e := range entries {
		if !e.Not && (family == ast.AnyFamily || ast.Of(e.Prefix.Addr()) == family) {
			left.add(e.Prefix, out.of(e.Prefix))
		}
	}
	if left.splits <= maxSplits {
		return left.addrs, true
	}
	whole := slices.DeleteFunc(slices.Clone(entries), func(e TableEntry) bool { return e.Not })
	addrs, _ := inFamily(whole, family)
	return addrs, false
}
