package model

import (
	"net/netip"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// An ruleInput packet is one as the rules see it: as translated so far.
type ruleInput struct {
	direction ast.Direction
	iface     *Interface
	family    int
	tuple     state.Tuple
	began     state.Tuple // the tuple before the rules of this crossing
	tcpFlags  uint8
	icmpType  uint8
	icmpCode  uint8
	tag       string
	mark      uint32 // without weir's own bits
	keep      uint32 // bits of it that the in crossing has set
	tos       uint8
	prio      uint8
	fragment  bool           // for itself, without L4 header
	length    int            // bytes of the IP packet
	received  *Interface     // where it came into the box; nil: a packet of the box itself
	packet    state.Tuple    // as it came
	refused   *reason.Reason // by a limiter with (block)
	owner     Owner
	system    int // position of the sender's fingerprint; unknownSystem, noSystem
}

// A crossing is the result of the rules for one interface and direction.
type crossing struct {
	due       bool // false: there was nothing to evaluate (local packets have no out crossing)
	skipped   bool // set skip
	rule      *resolve.Rule
	stop      *resolve.Rule // the quick rule that ended the evaluation
	tag       string        // of the last tagging rule that matched, or the initial one
	nat       *target
	rdr       *target
	other     *familyChange // the packet after af-to
	rtable    uint32        // the routing table that the rules name; 0: none
	qos       qos
	scrub     resolve.Scrub
	listed    resolve.Scrub // of the first scrub rule in FreeBSD's list that matches
	matched   []uint32      // global numbers plus 1 of the rules that count the packet
	iface     uint32
	out       bool
	seen      state.Tuple  // the packet as match rules have left it
	log       bool         // a rule that matched logs
	follows   []uint32     // global numbers plus 1 of rules that are logged because of an earlier one
	following bool         // a rule with log (matches) has matched
	owner     Owner        // of the packet
	mark      resolve.Mark // set by match rules and the deciding one

	translation *resolve.TranslationRule // the rule of FreeBSD's lists that has translated, or nil
	logAll      bool                     // with log (all)
	hop         *hop                     // of route-to or reply-to of the deciding rule
	refused     *reason.Reason           // by a limiter with (block): no rule decides
	program     bool                     // it has divert-packet, and no program has the device open
	copied      bool                     // the deciding rule has dup-to
	copies      bool                     // and there is a next hop for the copies
	copyTo      hop                      // which is this one
}

// A target is a translation that applies, with its pool's next address.
type target struct {
	translation *resolve.Translation
	addr        netip.Addr // invalid: the pool has no address of the family
	dport       uint16     // rdr-to: the new port, or the present one
}

// passes reports whether the crossing passes the packet.
func (c *crossing) passes() bool {
	return c.refused == nil && (c.rule == nil || c.rule.Action != ast.Block)
}

// keeps reports whether the crossing makes a state: by its deciding rule, or because it
// translates.
func (c *crossing) keeps() bool {
	return c.rule != nil && c.rule.State == resolve.KeepState || c.nat != nil || c.rdr != nil || c.other != nil
}

// allowsOptions reports whether packets with IP options may cross.
func (c *crossing) allowsOptions() bool {
	return !c.due || c.skipped || c.rule != nil && c.rule.AllowOpts
}

// number returns the deciding rule's global number plus 1; 0: none.
func (m *Model) number(c *crossing) uint32 {
	if c.rule == nil {
		return 0
	}
	return m.ruleBase + uint32(m.numbers[c.rule]) + 1
}

// counts notes a match rule that counts the packet.
func (c *crossing) counts(number uint32) {
	if len(c.matched) < pathMatches {
		c.matched = append(c.matched, number)
	}
}

// passReason returns why a packet that met the rules may go on. The last crossing whose
// rules were evaluated decides.
func passReason(in, out *crossing) reason.Reason {
	last := in
	if out.due && !(out.skipped && in.due) {
		last = out
	}
	switch {
	case last.skipped:
		return reason.Skip
	case last.rule == nil:
		return reason.NoRule
	}
	return reason.Rule
}

// evaluate is step 5: the rules in order. The last match decides; a match with quick
// decides at once. match rules apply what they carry and decide nothing.
func (m *Model) evaluate(a ruleInput) crossing {
	c := crossing{due: true, tag: a.tag, owner: a.owner, iface: a.iface.Index, out: a.direction == ast.Out}
	if m.skips(a.iface) {
		c.skipped = true
		return c
	}
	a.began = a.tuple
	if l := m.firstScrub(&a); l != nil {
		c.listed = l.Rule.Scrub
		c.takeTable(&l.Rule)
		c.counts(m.ruleBase + uint32(m.numbers[&l.Rule]) + 1)
	}
	m.translateFirst(&c, &a)
	m.countLists(c.stop)
	if c.rule == nil { // else a translation rule with pass has decided
		m.filter(&c, &a)
	}
	if c.rule != nil {
		m.use(c.rule)
		c.logged(c.rule)
		c.matched = append(c.matched, m.number(&c))
		m.countEvaluated(c.rule, &a, c.seen)
	}
	return c
}

// use notes that a packet has matched a rule with once: it matches no other.
func (m *Model) use(r *resolve.Rule) {
	if r.Once && m.used != nil {
		m.used[r] = true
	}
}

// filter evaluates the filter rules.
func (m *Model) filter(c *crossing, a *ruleInput) {
	var open calls
	for nr := 0; nr < len(m.rules.Rules) && !open.end(nr, c); nr++ {
		r := m.rules.Rules[nr]
		m.ruleCounters[m.numbers[r]].Evaluations++
		matches := m.matches(r, a)
		if r.Anchor != nil {
			for skipped := nr + 1; !matches && skipped < r.Anchor.End; skipped++ { // as the dataplane counts
				m.ruleCounters[m.numbers[m.rules.Rules[skipped]]].Evaluations++
			}
			nr = open.call(r, matches, c)
		}
		if a.refused != nil {
			c.refused, c.rule, c.stop = a.refused, nil, r
			break
		}
		if !matches {
			continue
		}
		if r.Tag != "" {
			a.tag, c.tag = r.Tag, r.Tag
		}
		c.follow(r, m.ruleBase+uint32(m.numbers[r])+1)
		if r.Action == ast.Match {
			c.logged(r)
			c.qos.takes(r)
			c.takeScrub(r)
			c.takeTable(r)
			m.translate(c, r, a)
			c.setMark(r, a)
			c.counts(m.ruleBase + uint32(m.numbers[r]) + 1)
		} else {
			c.rule = r
		}
		if r.Quick {
			c.stop = r
			break
		}
	}
	c.seen = a.tuple
	if c.rule != nil && c.rule.Action == ast.Pass {
		c.qos.takes(c.rule)
		c.takeScrub(c.rule)
		c.takeTable(c.rule)
		if c.rule.AfTo != nil {
			m.translateFamily(c, a)
		} else {
			m.translate(c, c.rule, a)
		}
		c.setMark(c.rule, a)
		m.takeHop(c, a)
	}
}

// setMark notes the bits of the mark that a rule sets. Bits that the in crossing has set
// stay, because they have chosen the packet's route.
func (c *crossing) setMark(r *resolve.Rule, a *ruleInput) {
	mask := r.SetMark.Mask &^ a.keep
	set := resolve.Mark{N: r.SetMark.N & mask, Mask: mask}
	a.mark = set.On(a.mark)
	c.mark = resolve.Mark{N: set.On(c.mark.N), Mask: c.mark.Mask | mask}
}

// translate notes a rule's translation: rdr-to on in, nat-to on out. If the rule has a
// direction, the other combinations too. Later rules of the crossing see the new address.
func (m *Model) translate(c *crossing, r *resolve.Rule, a *ruleInput) {
	if r.Rdr != nil && (a.direction == ast.In || r.Direction == ast.Out) {
		c.rdr = &target{r.Rdr, m.takeAddress(r.Rdr, a.family, a.tuple.Src, a.tuple.Dst), rdrPort(r, a.tuple)}
		if c.rdr.addr.IsValid() {
			a.tuple.Dst, a.tuple.DPort = c.rdr.addr, c.rdr.dport
		}
	}
	if r.Nat != nil && (a.direction == ast.Out || r.Direction == ast.In) {
		c.nat = &target{r.Nat, m.takeAddress(r.Nat, a.family, a.tuple.Src, a.tuple.Src), 0}
		if c.nat.addr.IsValid() {
			a.tuple.Src = c.nat.addr
		}
	}
}

// source returns the source translation after both crossings, destination that of the
// destination; nil: there is none.
func source(in, out *crossing) *target {
	if in.other != nil {
		return &target{translation: in.rule.AfTo.From, addr: in.other.tuple.Src}
	}
	if out.nat != nil {
		return out.nat
	}
	return in.nat
}

func destination(in, out *crossing) *target {
	if out.rdr != nil {
		return out.rdr
	}
	return in.rdr
}

// rdrPort returns the destination port after rdr-to, whose range repeats.
func rdrPort(r *resolve.Rule, before state.Tuple) uint16 {
	if r.Rdr.PortLow == 0 || !translatesPorts(before.Proto) {
		return before.DPort
	}
	low, high := r.Rdr.PortLow, max(r.Rdr.PortLow, r.Rdr.PortHigh)
	return low + (before.DPort-r.To.Port.Low)%(high-low+1)
}

// verdict returns why the crossing drops the packet, or nil.
func (m *Model) verdict(c *crossing, p *packet) *reason.Reason {
	switch {
	case c.refused != nil:
		return c.refused
	case !c.passes() && m.unloaded:
		return reasonFor(reason.Unloaded)
	case !c.passes():
		return reasonFor(reason.Block)
	case c.nat != nil && !c.nat.addr.IsValid(), c.rdr != nil && !c.rdr.addr.IsValid():
		return reasonFor(reason.NATAddress)
	case c.other != nil && (!c.other.tuple.Src.IsValid() || !c.other.tuple.Dst.IsValid()):
		return reasonFor(reason.NATAddress)
	case p.options && !c.allowsOptions():
		return reasonFor(reason.Options)
	}
	return nil
}

func (m *Model) skips(i *Interface) bool {
	for _, name := range m.rules.Options.Skip {
		if i.is(name) {
			return true
		}
	}
	return false
}
