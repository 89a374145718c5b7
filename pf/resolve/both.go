package resolve

import (
	"slices"

	"weir/pf/ast"
)

// A merger is the result of merging the conditions of an anchor and of a rule in it.
type merger uint8

const (
	oneRule    merger = iota // one rule has both conditions
	notOneRule               // no single rule can have both
	neverBoth                // no packet matches both
)

// mergerOf adds an anchor's conditions to a rule in it, if one rule can hold both. Otherwise
// it leaves the rule unchanged.
func mergerOf(call, in *Rule) merger {
	out := *in
	verdict := max(
		mergeDirection(call, &out), mergeInterface(call, &out), mergeFamily(call, &out), mergeProto(call, &out),
		mergeTagged(call, &out),
		mergeAddress(&call.From.Addr, &out.From.Addr), mergePort(call.From.Port, &out.From.Port),
		mergeAddress(&call.To.Addr, &out.To.Addr), mergeToPort(call, &out),
	)
	if verdict == oneRule {
		*in = out
	}
	return verdict
}

// isNeutral reports whether both would leave all rules unchanged.
func isNeutral(call *Rule) bool {
	return call.Direction == ast.AnyDirection && call.Interface.Any && call.Family == ast.AnyFamily && call.Proto == 0 &&
		call.Tagged == "" && call.From == (Endpoint{}) && call.To == (Endpoint{})
}

// mergeable reports whether both knows all conditions of an anchor, and whether a packet
// still meets them after earlier rules of the body were evaluated. A match rule can
// translate the packet, and any rule can tag it.
func mergeable(call *Rule, body []*Rule) bool {
	if apart().Given(call) != "" {
		return false
	}
	translates := func(r *Rule) bool { return r.Action == ast.Match && (r.Nat != nil || r.Rdr != nil) }
	if (call.From != Endpoint{} || call.To != Endpoint{}) && slices.ContainsFunc(body, translates) {
		return false
	}
	tags := func(r *Rule) bool { return r.Tag != "" }
	return call.Tagged == "" || call.Tag == "" && !slices.ContainsFunc(body, tags)
}

func mergeDirection(call, out *Rule) merger {
	switch {
	case call.Direction == ast.AnyDirection || call.Direction == out.Direction:
	case out.Direction == ast.AnyDirection:
		out.Direction = call.Direction
	default:
		return neverBoth
	}
	return oneRule
}

func mergeFamily(call, out *Rule) merger {
	switch {
	case call.Family == ast.AnyFamily || call.Family == out.Family:
	case out.Family == ast.AnyFamily:
		out.Family = call.Family
	default:
		return neverBoth
	}
	return oneRule
}

func mergeProto(call, out *Rule) merger {
	switch {
	case call.Proto == 0 || call.Proto == out.Proto:
	case out.Proto == 0:
		out.Proto = call.Proto
	default:
		return neverBoth
	}
	return oneRule
}

func mergeTagged(call, out *Rule) merger {
	switch {
	case call.Tagged == "" || call.Tagged == out.Tagged && call.NotTagged == out.NotTagged:
	case out.Tagged == "":
		out.Tagged, out.NotTagged = call.Tagged, call.NotTagged
	default:
		return notOneRule
	}
	return oneRule
}

// mergeInterface treats interfaces with different names as different. It knows nothing
// about groups, because their members change.
func mergeInterface(call, out *Rule) merger {
	a, b := call.Interface, out.Interface
	switch {
	case a.Any || a == b:
	case b.Any:
		out.Interface = a
	case a.Group || b.Group:
		return notOneRule
	case a.Name == b.Name, !a.Not && !b.Not:
		return neverBoth
	case a.Not && b.Not:
		return notOneRule
	case b.Not:
		out.Interface = a
	}
	return oneRule
}

func mergeAddress(call, out *Address) merger {
	switch {
	case call.Kind == AnyAddress || *call == *out:
		return oneRule
	case out.Kind == AnyAddress:
		*out = *call
		return oneRule
	case call.Kind != PrefixAddress || out.Kind != PrefixAddress || call.Not && out.Not:
		return notOneRule
	case call.Not || out.Not:
		return mergeExcluded(call, out)
	case !call.Prefix.Overlaps(out.Prefix):
		return neverBoth
	case call.Prefix.Bits() > out.Prefix.Bits():
		*out = *call
	}
	return oneRule
}

// mergeExcluded merges two prefixes, one of which must not contain the address.
func mergeExcluded(call, out *Address) merger {
	asked, excluded := call, out
	if call.Not {
		asked, excluded = out, call
	}
	switch {
	case !asked.Prefix.Overlaps(excluded.Prefix):
		*out = *asked
		return oneRule
	case excluded.Prefix.Bits() <= asked.Prefix.Bits():
		return neverBoth
	}
	return notOneRule
}

func mergePort(call PortRange, out *PortRange) merger {
	switch {
	case call.Op == ast.AnyPort || call == *out:
	case out.Op == ast.AnyPort:
		*out = call
	case out.Op == ast.PortEqual && call.Match(out.Low):
	case call.Op == ast.PortEqual && out.Match(call.Low):
		*out = call
	case out.Op == ast.PortEqual || call.Op == ast.PortEqual:
		return neverBoth
	default:
		return notOneRule
	}
	return oneRule
}

// mergeToPort leaves a rule's ports alone if rdr-to computes its own ports from them.
func mergeToPort(call, out *Rule) merger {
	before := out.To.Port
	verdict := mergePort(call.To.Port, &out.To.Port)
	if out.To.Port != before && out.Rdr != nil && out.Rdr.PortHigh != 0 {
		return max(verdict, notOneRule)
	}
	return verdict
}
