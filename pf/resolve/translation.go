package resolve

import (
	"fmt"
	"slices"

	"weir/pf/ast"
	"weir/pf/printer"
	"weir/pf/token"
)

// TranslationKind is the list to which a translation rule belongs.
type TranslationKind uint8

// Kinds of translation rules.
const (
	NatRule   TranslationKind = iota // the source of outgoing packets
	RdrRule                          // the destination of incoming packets
	BinatRule                        // From becomes Target on the way out, Target becomes From on the way in
)

// String returns the kind's word.
func (k TranslationKind) String() string {
	return [...]string{NatRule: "nat", RdrRule: "rdr", BinatRule: "binat"}[k]
}

// TranslationRule is one rule of FreeBSD's translation lists, or an anchor in such a
// list. For incoming packets the rules of rdr and then those of binat are evaluated, for
// outgoing ones those of binat and then those of nat. The first rule that matches ends
// its list.
//
// Of the embedded Rule, the conditions, Log and Tag are used, and by its kind Nat or Rdr,
// which are nil with No and in an anchor. Nr counts the rules of its list; ListRules sets
// it. An anchor's rules count each time the anchor is evaluated.
type TranslationRule struct {
	Rule
	Kind   TranslationKind
	No     bool    // translates nothing, and ends the list
	Pass   bool    // the filter rules are skipped
	Binat  Address // with binat: one network, as long as From's
	Path   string  // path of the anchor whose rules are evaluated here; empty: this is a rule
	Inside []*TranslationRule
}

// translationRule expands a translation rule as rule expands a filter rule.
func (r *resolver) translationRule(in *ast.Translation) {
	before := r.faults.Errors()
	r.checkTranslation(in)
	l := r.lists(&in.Rule)
	target := r.targets(in.Target, "->")
	if in.Kind == ast.NatRule && r.faults.Errors() == before && in.Target != nil && in.Target.StaticPort {
		r.staticPort(&target.pool)
	}
	if in.Kind == ast.BinatRule && r.faults.Errors() == before {
		r.binatHosts(l, target)
	}
	if r.faults.Errors() > before {
		return
	}
	said, warned := false, false
	l.accept = func(out *ast.Rule, _ [listed]int) bool {
		t := *in
		t.Rule = *out
		if in.Target != nil && !r.fitTarget(&t, target, l) {
			return false
		}
		if in.Kind == ast.RdrRule && in.Target != nil && !warned {
			warned = r.warnLoopback6(&t.Rule, t.Target.Hosts, l)
		}
		if in.Target != nil && !said {
			said = r.unenforcedPool(&targets{pool: *t.Target, hosts: t.Target.Hosts})
		}
		r.addTranslation(&t)
		return true
	}
	r.expand(&in.Rule, l)
}

// checkTranslation checks what does not depend on the elements of lists.
func (r *resolver) checkTranslation(in *ast.Translation) {
	r.textsGiven(&in.Rule)
	r.log(in.Log)
	r.unenforcedCount("RTable", in.RTable)
	if in.Ruleset != nil {
		r.checkTranslationAnchor(in)
		return
	}
	if in.Target == nil {
		return
	}
	if p := in.Target; p.MapE != nil && p.Type != ast.NoPoolType {
		r.faults.Errorf(p.MapE.Span, "map-e-portset and %s exclude each other", p.Type)
	}
	if in.Kind != ast.NatRule {
		r.onlyNat(in.Target)
	} else {
		r.sourcePorts(in.Target)
	}
	if in.Kind == ast.BinatRule {
		r.checkBinat(in)
	}
}

// checkTranslationAnchor checks the conditions of an anchor in the lists. As in FreeBSD's
// pfctl, rdr-anchor has at most one port, and binat-anchor has neither addresses nor
// several protocols.
func (r *resolver) checkTranslationAnchor(in *ast.Translation) {
	switch in.Kind {
	case ast.RdrRule:
		if ports := in.From.Ports; len(ports) > 0 {
			r.faults.Errorf(ports[0].Span, "rdr-anchor cannot match a source port; its rules can")
		}
		for i, p := range in.To.Ports {
			if i > 0 || p.Op != ast.PortEqual {
				r.faults.Errorf(p.Span, "rdr-anchor takes one port; its rules take others")
				break
			}
		}
	case ast.BinatRule:
		if len(in.Protos) > 1 {
			r.conflict(in.Protos[1].Span, "binat-anchor takes one protocol", in.Protos[0].Span)
		}
		for _, e := range []*ast.Endpoint{&in.From, &in.To} {
			if at := firstAsked(e); at.IsValid() {
				r.faults.Errorf(at, "binat-anchor cannot match addresses or ports; its rules can")
			}
		}
	}
}

// firstAsked returns the place of the first address or port, if there is one.
func firstAsked(e *ast.Endpoint) (at token.Span) {
	switch {
	case len(e.Hosts) > 0 && e.Hosts[0].Kind != ast.HostAny:
		return e.Hosts[0].Span
	case len(e.Ports) > 0:
		return e.Ports[0].Span
	}
	return at
}

// onlyNat rejects the options of a target that choose a source port.
func (r *resolver) onlyNat(p *ast.Pool) {
	for _, o := range []struct {
		given bool
		name  string
	}{{p.StaticPort, "static-port"}, {p.EndpointIndependent, "endpoint-independent"}, {p.MapE != nil, "map-e-portset"}} {
		if o.given {
			r.faults.Errorf(p.Span, "%s is allowed only after the target of nat", o.name)
		}
	}
}

// sourcePorts checks that a target has only one option that chooses source ports.
func (r *resolver) sourcePorts(p *ast.Pool) {
	switch {
	case p.MapE != nil && p.StaticPort:
		r.faults.Errorf(p.MapE.Span, "map-e-portset and static-port exclude each other")
	case p.Port == nil:
	case p.MapE != nil:
		r.conflict(p.MapE.Span, "map-e-portset and a port exclude each other", p.Port.Span)
	}
}

// checkBinat checks that one network is exchanged for one.
func (r *resolver) checkBinat(in *ast.Translation) {
	if in.Target.Port != nil {
		r.faults.Errorf(in.Target.Port.Span, "binat translates addresses and no ports")
	}
	if in.Target.Type != ast.NoPoolType || in.Target.Sticky {
		r.faults.Errorf(in.Target.Span, "binat translates to one address or network: there is nothing to choose")
	}
	for _, hosts := range [][]ast.Host{in.From.Hosts, in.Target.Hosts} {
		for i := range hosts {
			h := &hosts[i]
			switch {
			case h.Kind == ast.HostTable:
				r.faults.Errorf(h.Span, "binat translates one address or network, not those of a table")
			case h.Not:
				r.faults.Errorf(h.Span, "binat translates one address or network, not all others")
			}
		}
	}
	for _, ports := range [][]ast.Port{in.From.Ports, in.To.Ports} {
		if len(ports) > 0 {
			r.faults.Errorf(ports[0].Span, "binat translates addresses; it cannot match ports")
		}
	}
}

// binatHosts checks that a binat has one source, at most one destination and one target.
// As in FreeBSD, only targets of the rule's family count. With no there is no target.
func (r *resolver) binatHosts(l *lists, target *targets) {
	r.binatSingle(l.from)
	r.binatSingle(l.to)
	if len(l.from) == 1 {
		r.binatAddress(&l.from[0])
	}
	for i := 0; target != nil && i < len(target.hosts); i++ {
		r.binatAddress(&target.hosts[i])
	}
}

// binatSingle rejects several hosts.
func (r *resolver) binatSingle(hosts []ast.Host) {
	switch {
	case len(hosts) < 2:
	case hosts[0].Span == hosts[1].Span:
		r.faults.Errorf(hosts[0].Span, "binat takes one address or network; this has several")
	default:
		r.conflict(hosts[1].Span, "binat takes one address or network, not several", hosts[0].Span)
	}
}

// binatAddress rejects what is more than one address or network.
func (r *resolver) binatAddress(h *ast.Host) {
	switch h.Kind {
	case ast.HostAny, ast.HostPrefix:
	case ast.HostDynamic:
		if changing(h) {
			r.faults.Errorf(h.Span, "binat takes one address of an interface: (%s:0)", h.Name)
		}
	default:
		r.faults.Errorf(h.Span, "binat translates one address or network")
	}
}

// fitTarget sets the part of the target that has the combination's family. It returns
// false if there is none, so that the combination is left out.
func (r *resolver) fitTarget(t *ast.Translation, target *targets, l *lists) bool {
	if t.Family == ast.AnyFamily {
		t.Family = r.firstFamily(target.hosts)
	}
	pool := target.pool
	pool.Hosts = target.ofFamily(t.Family)
	t.Target = &pool
	if r.listed += len(pool.Hosts) - 1; r.listed > maxListed {
		r.faults.Errorf(pool.Span, "the lists to translate to come to more than %d addresses here", maxListed)
		return false
	}
	if len(pool.Hosts) == 0 {
		l.whySpan, l.why, l.whyNot = pool.Span, "this has no address of the rule's family", t.FamilySpan
		return false
	}
	switch t.Kind {
	case ast.NatRule:
		natPorts(&pool)
	case ast.RdrRule:
		if !r.rdrPorts(&pool, &t.Rule) {
			return false
		}
	case ast.BinatRule:
		return r.fitBinat(t)
	}
	if pool.Type == ast.Bitmask && (len(pool.Hosts) > 1 || changing(&pool.Hosts[0])) {
		r.faults.Errorf(pool.Span, "bitmask takes one network, not several addresses")
	}
	if pool.Type == ast.NoPoolType && (len(pool.Hosts) > 1 || changing(&pool.Hosts[0])) {
		pool.Type = ast.RoundRobin
	}
	return true
}

// ofFamily returns the addresses of a family, and those without a family. All rules share
// the result.
func (t *targets) ofFamily(family ast.Family) []ast.Host {
	if hosts, ok := t.byFamily[family]; ok {
		return hosts
	}
	var hosts []ast.Host
	for _, h := range t.hosts {
		if f := familyOf(&h); f == ast.AnyFamily || family == ast.AnyFamily || f == family {
			hosts = append(hosts, h)
		}
	}
	if t.byFamily == nil {
		t.byFamily = make(map[ast.Family][]ast.Host)
	}
	t.byFamily[family] = slices.Clip(hosts)
	return t.byFamily[family]
}

// firstFamily returns the family that a rule gets from its target. As in pf, the first
// address decides.
func (r *resolver) firstFamily(target []ast.Host) ast.Family {
	family := ast.AnyFamily
	for i := range target {
		f := familyOf(&target[i])
		if family != ast.AnyFamily && f != ast.AnyFamily && f != family {
			r.faults.Warnf(target[i].Span, "this address is never used: the rule is for %s, because of its first translation address; write inet or inet6 to choose", family)
			return family
		}
		family = max(family, f)
	}
	return family
}

// fitBinat checks that both networks of a binat have the same length.
func (r *resolver) fitBinat(t *ast.Translation) bool {
	if len(t.Target.Hosts) > 1 {
		r.conflict(t.Target.Hosts[1].Span, "binat translates to one address or network", t.Target.Hosts[0].Span)
		return false
	}
	if len(t.From.Hosts) == 0 {
		return true
	}
	from, to := &t.From.Hosts[0], &t.Target.Hosts[0]
	if from.Kind == ast.HostPrefix && to.Kind == ast.HostPrefix && from.Prefix.Bits() != to.Prefix.Bits() {
		r.conflict(to.Span, fmt.Sprintf("binat exchanges networks of one length, not /%d for /%d", from.Prefix.Bits(), to.Prefix.Bits()), from.Span)
		return false
	}
	return true
}

// addTranslation appends an expanded translation rule.
func (r *resolver) addTranslation(t *ast.Translation) {
	fitBits(&t.Rule)
	asks := t.Rule
	if t.Kind != ast.RdrRule || t.Ruleset != nil {
		asks.From.Ports, asks.To.Ports = nil, nil // allowed without a protocol: any that has ports
	}
	if r.consistent(&asks) && r.rdrConsistent(t) && r.texts(&t.Rule) {
		if t.Kind == ast.RdrRule {
			r.sctpPorts(&t.Rule, t.Target)
		}
		r.translations = append(r.translations, t)
		r.total++
	}
}

// rdrConsistent checks that rdr's ports can be computed from the rule's port.
func (r *resolver) rdrConsistent(t *ast.Translation) bool {
	if t.Kind != ast.RdrRule || t.Ruleset != nil {
		return true
	}
	if t.Target != nil && t.Target.Port != nil && (len(t.Protos) == 0 || !hasPorts(t.Protos[0].Number)) {
		r.faults.Errorf(t.Target.Port.Span, "ports need proto tcp or udp")
		return false
	}
	for _, p := range t.To.Ports {
		if p.Op != ast.PortEqual && p.Op != ast.PortRange {
			r.faults.Errorf(p.Span, "rdr takes a port or a range a:b")
			return false
		}
	}
	return true
}

// translationLists lowers those translation rules of a scope whose list is evaluated, and those of
// the anchors that they call.
func (f *flattener) translationLists(s *scope, evaluated func(ast.TranslationKind) bool) []*TranslationRule {
	outer := f.resolver.scope
	f.resolver.scope = s
	defer func() { f.resolver.scope = outer }()
	var rules []*TranslationRule
	for _, t := range s.translations {
		if t.Kind == ast.DummynetRule || !evaluated(t.Kind) {
			continue // no dummynet rules are read
		}
		if f.translated++; f.translated > f.maxRules {
			f.faults.Errorf(t.Span, "the configuration expands to more than %d translation rules here, with those of the anchors it calls", f.maxRules)
			return rules
		}
		rule := f.lowerTranslation(t)
		rule.Scope = s.path
		f.inTables(s, &rule.Rule)
		if t.Ruleset != nil {
			f.callAnchor(s, t, rule)
		}
		rules = append(rules, rule)
	}
	return rules
}

// listOf is the translation rules of one kind in one anchor.
type listOf struct {
	kind ast.TranslationKind
	path string
}

// warnOfIdleLists warns of translation rules in anchors that no anchor of their kind evaluates.
func (f *flattener) warnOfIdleLists() {
	var named map[listOf]bool
	for _, path := range sortedKeys(f.anchors) {
		warned := make(map[ast.TranslationKind]bool)
		for _, t := range f.anchors[path].translations {
			list := listOf{t.Kind, path}
			if t.Kind == ast.DummynetRule || warned[t.Kind] || f.listed[list] {
				continue
			}
			warned[t.Kind] = true
			if named == nil {
				named = f.namedLists()
			}
			kind := [...]TranslationKind{ast.NatRule: NatRule, ast.RdrRule: RdrRule, ast.BinatRule: BinatRule}[t.Kind]
			if named[list] {
				f.faults.Warnf(t.Keyword, "these %s rules do nothing: the %s-anchor that names their anchor is not evaluated itself", kind, kind)
			} else {
				f.faults.Warnf(t.Keyword, "these %s rules do nothing: no %s-anchor names their anchor", kind, kind)
			}
		}
	}
}

// namedLists returns what the anchors in anchors name, also those that are not evaluated.
func (f *flattener) namedLists() map[listOf]bool {
	named := make(map[listOf]bool)
	for _, s := range f.anchors {
		for _, t := range s.translations {
			if t.Ruleset == nil {
				continue
			}
			path, all, ok := s.callee(t.Ruleset.Text)
			switch {
			case !ok:
			case all:
				for _, inside := range f.in(path) {
					named[listOf{t.Kind, inside}] = true
				}
			default:
				named[listOf{t.Kind, path}] = true
			}
		}
	}
	return named
}

// callAnchor sets the rules of an anchor's own kind that it evaluates.
func (f *flattener) callAnchor(s *scope, t *ast.Translation, rule *TranslationRule) {
	path, all, ok := s.callee(t.Ruleset.Text)
	if !ok {
		f.faults.Errorf(t.Ruleset.Span, "this leads out of the configuration: there are too many ..")
		return
	}
	rule.Path = path
	called := []string{path}
	if all {
		called, rule.Path = f.in(path), path+"/*"
	}
	for _, path := range called {
		f.listed[listOf{t.Kind, path}] = true
		body := f.anchors[path]
		switch {
		case body == nil || f.translated > f.maxRules:
		case f.open[path]:
			f.faults.Errorf(t.Ruleset.Span, "the anchor %q calls itself", path)
		case len(f.open) >= maxCalls:
			f.faults.Errorf(t.Span, "anchor calls are nested more than %d deep", maxCalls)
		default:
			f.open[path] = true
			same := func(k ast.TranslationKind) bool { return k == t.Kind }
			rule.Inside = append(rule.Inside, f.translationLists(body, same)...)
			delete(f.open, path)
		}
	}
}

// lowerTranslation converts an expanded translation rule to the form that is evaluated.
func (r *resolver) lowerTranslation(in *ast.Translation) *TranslationRule {
	out := &TranslationRule{
		Rule: *r.lower(0, &in.Rule),
		Kind: [...]TranslationKind{ast.NatRule: NatRule, ast.RdrRule: RdrRule, ast.BinatRule: BinatRule}[in.Kind],
		No:   in.No,
		Pass: in.Pass,
	}
	switch {
	case in.Target == nil:
	case in.Kind == ast.NatRule:
		out.Nat = r.lowerPool(in.Target, in.Family)
	case in.Kind == ast.RdrRule:
		out.Rdr = r.lowerPool(in.Target, in.Family)
	default:
		out.Binat = poolAddress(&in.Target.Hosts[0])
	}
	out.Text = printer.Translation(in)
	return out
}
