package resolve

import "weir/pf/ast"

// maxEmbedding is the longest IPv6 prefix that an IPv4 address can follow (RFC 6052, 2.2).
const maxEmbedding = 96

// AfToRefused returns what the dataplane does not do of a rule with af-to, and what to write
// instead; "": it does all. What a rule with a divert clause does not do belongs to that.
func (r *Rule) AfToRefused() (what, instead string) {
	switch a := r.AfTo; {
	case a == nil:
	case r.Direction == ast.Out:
		return "af-to where packets leave", "write it in a rule for the interface by which they come in"
	case r.Route != nil && r.Route.Kind == DupTo:
		return "af-to beside dup-to", "write dup-to in the rules of what is not translated; tc-mirred(8) copies what an interface carries"
	case r.Route != nil && r.Route.Choice.Type == Bitmask:
		return "af-to beside next hops with bitmask", "write source-hash, which also gives a source always the same one"
	case r.Divert.Kind != NoDivert:
		return "af-to beside a divert clause", "leave one of the two out"
	case a.From.Choice.Type == Bitmask || a.To != nil && a.To.Choice.Type == Bitmask:
		return "af-to with bitmask", "write source-hash, which also gives a source always the same address"
	}
	return "", ""
}

// SourceNetwork returns how many bits of the new IPv6 source the destination goes behind in a
// rule without a destination of its own. ok: these are the bits of the address that an interface
// gives; else those of the first network that the rule names.
func (a *AfTo) SourceNetwork() (bits int, ok bool) {
	if a.To != nil || len(a.From.Addrs) == 0 || a.From.Addrs[0].Kind != InterfaceAddress {
		return 0, false
	}
	return a.From.Addrs[0].embedding(), true
}

// embedding returns behind how many bits of an interface's address another one goes.
func (a *Address) embedding() int {
	if a.Bits == 0 || a.Bits > maxEmbedding {
		return maxEmbedding
	}
	return a.Bits
}

// Embedding returns the one IPv6 network in which a pool puts IPv4 addresses. ok is false if
// it has addresses of its own.
func (t *Translation) Embedding() (bits int, ok bool) {
	if len(t.Addrs) != 1 || t.Addrs[0].Kind != PrefixAddress || t.Addrs[0].Prefix.Addr().Is4() {
		return 0, false
	}
	bits = t.Addrs[0].Prefix.Bits()
	return bits, bits <= maxEmbedding
}

// unenforcedAfTo warns about what the dataplane does not do of a rule with af-to.
func (r *resolver) unenforcedAfTo(in *ast.Rule, lowered *Rule) {
	if in.AfTo != nil && in.Anchor == nil {
		if what, instead := lowered.AfToRefused(); what != "" && lowered.Divert.Kind == NoDivert { // else the divert clause says so
			r.faults.UnenforcedBut(in.AfTo.Span, what, instead)
		}
	}
}
