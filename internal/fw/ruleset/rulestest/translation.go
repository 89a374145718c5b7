package rulestest

import (
	"net/netip"

	"pgregory.net/rapid"

	"weir/pf/ast"
	"weir/pf/resolve"
)

// mostAnchors is how deep drawn anchors of translation rules may be.
const mostAnchors = 2

// DrawTranslations draws FreeBSD's translation lists, with anchors in them. Half of the
// time there are none.
func DrawTranslations(t *rapid.T) []*resolve.TranslationRule {
	if rapid.Bool().Draw(t, "no lists") {
		return nil
	}
	kinds := []resolve.TranslationKind{resolve.NatRule, resolve.RdrRule, resolve.BinatRule}
	var lists []*resolve.TranslationRule
	for range rapid.IntRange(1, 12).Draw(t, "translation rules") {
		lists = append(lists, drawListed(t, pick(t, kinds, "list"), 0))
	}
	return lists
}

func drawListed(t *rapid.T, kind resolve.TranslationKind, depth int) *resolve.TranslationRule {
	r := &resolve.TranslationRule{Kind: kind}
	r.Interface, r.Family = drawInterface(t), pick(t, []ast.Family{0, 0, 4, 6}, "family")
	if oneIn(t, 3, "asks ends") {
		r.From, r.To = drawEndpoint(t), drawEndpoint(t)
	}
	if oneIn(t, 4, "asks proto") {
		r.Proto = pick(t, protos, "proto")
	}
	r.Log = oneIn(t, 4, "log")
	r.Tag = pick(t, tags, "tag")
	if oneIn(t, 6, "asks tag") {
		r.Tagged, r.NotTagged = pick(t, tags[2:], "tagged"), rapid.Bool().Draw(t, "not tagged")
	}
	switch {
	case depth < mostAnchors && oneIn(t, 5, "anchor"):
		r.Path = "anchor"
		for range rapid.IntRange(0, 4).Draw(t, "inside") {
			r.Inside = append(r.Inside, drawListed(t, kind, depth+1))
		}
		if rapid.Bool().Draw(t, "asks nothing") {
			r.Rule = resolve.Rule{Interface: resolve.Interface{Any: true}, Tag: r.Tag}
		}
	case oneIn(t, 5, "no"):
		r.No = true
	default:
		r.Pass = oneIn(t, 4, "pass")
		drawTargets(t, r)
	}
	return r
}

// drawTargets draws what a rule translates to.
func drawTargets(t *rapid.T, r *resolve.TranslationRule) {
	switch r.Kind {
	case resolve.NatRule:
		r.Nat = drawTranslation(t)
		r.Nat.StaticPort = oneIn(t, 3, "static-port")
		r.Nat.EndpointIndependent = oneIn(t, 3, "endpoint-independent")
	case resolve.RdrRule:
		r.Rdr = drawTranslation(t)
	case resolve.BinatRule:
		is4 := rapid.Bool().Draw(t, "is4")
		network := drawPrefix(t, is4, "binat")
		r.From = resolve.Endpoint{Addr: drawExchanged(t, is4, network.Bits())}
		r.Binat = drawExchanged(t, is4, network.Bits())
		if r.Binat.Kind == resolve.AnyAddress {
			r.Binat = resolve.Address{Kind: resolve.PrefixAddress, Prefix: network}
		}
		r.To.Port = resolve.PortRange{}
		if r.From.Addr.Kind == resolve.PrefixAddress || r.Binat.Kind == resolve.PrefixAddress {
			r.Family = map[bool]ast.Family{true: ast.Inet, false: ast.Inet6}[is4]
		}
	}
}

// drawExchanged draws a side of a binat rule: any, the first address of an interface, or a
// network.
func drawExchanged(t *rapid.T, is4 bool, bits int) resolve.Address {
	switch rapid.IntRange(0, 5).Draw(t, "side of binat") {
	case 0:
		return resolve.Address{}
	case 1:
		return resolve.Address{Kind: resolve.InterfaceAddress, Interface: pick(t, names, "(if:0)"), NoAlias: true}
	}
	return resolve.Address{Kind: resolve.PrefixAddress, Prefix: netip.PrefixFrom(drawAddr(t, is4, "network"), bits).Masked()}
}
