package model

import (
	"encoding/binary"

	"weir/internal/fw/state"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// A scrub is how one packet is normalised (step 16).
type scrub struct {
	noDF, randomID bool
	enters, leaves uint8 // least TTLs where it comes in, and where it leaves; 0: none
	maxMSS         uint16
	tos            resolve.SetTOS
}

// takeScrub adds what a rule asks for; values replace earlier ones.
func (c *crossing) takeScrub(r *resolve.Rule) {
	s := &r.Scrub
	c.scrub.NoDF = c.scrub.NoDF || s.NoDF
	c.scrub.RandomID = c.scrub.RandomID || s.RandomID
	c.scrub.ReassembleTCP = c.scrub.ReassembleTCP || s.ReassembleTCP
	if s.MinTTL != 0 {
		c.scrub.MinTTL = s.MinTTL
	}
	if s.MaxMSS != 0 {
		c.scrub.MaxMSS = s.MaxMSS
	}
	if s.SetTOS.Given {
		c.scrub.SetTOS = s.SetTOS
	}
}

// least returns the smaller of two values, of which 0 is none.
func least(a, b uint16) uint16 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// join returns what either asks for. The type of service is that of o, which comes later.
func (s scrub) join(o scrub) scrub {
	return scrub{s.noDF || o.noDF, s.randomID || o.randomID, max(s.enters, o.enters), max(s.leaves, o.leaves), least(s.maxMSS, o.maxMSS), s.tos.Then(o.tos)}
}

// scrubAt returns what the crossings of one packet ask for.
func scrubAt(in, out *crossing) scrub {
	var s scrub
	if in != nil {
		s = s.join(enters(&in.listed)).join(enters(&in.scrub))
	}
	if out != nil {
		s = s.join(leaves(&out.listed)).join(leaves(&out.scrub))
	}
	return s
}

// enters returns how rules normalise packets that come in, leaves those that leave.
func enters(s *resolve.Scrub) scrub {
	return scrub{s.NoDF, s.RandomID, s.MinTTL, 0, s.MaxMSS, s.SetTOS}
}
func leaves(s *resolve.Scrub) scrub {
	return scrub{s.NoDF, s.RandomID, 0, s.MinTTL, s.MaxMSS, s.SetTOS}
}

// keepScrub adds what the rules of a side ask for to both directions of a connection.
func (c *connection) keepScrub(side int, here *crossing) {
	for d := range c.Scrub {
		if side == d {
			c.addScrub(d, enters(&here.scrub).join(c.keptScrub(d)))
		} else {
			c.addScrub(d, c.keptScrub(d).join(leaves(&here.scrub)))
		}
	}
}

// addScrub notes how packets of a direction are normalised.
func (c *connection) addScrub(d int, s scrub) {
	c.Scrub[d] = state.Scrub{
		NoDF: s.noDF, RandomID: s.randomID, Enters: s.enters, Leaves: s.leaves, MaxMSS: s.maxMSS,
		HasTOS: s.tos.Given, TOS: s.tos.N, ReassembleTCP: c.Scrub[d].ReassembleTCP,
	}
}

// keepScrubs notes how the packets of a new connection are normalised, by the rules of the
// sides with state. FreeBSD's scrub rules choose packets of one direction, so they are
// evaluated for its replies, too: as they come, and then with their destination translated
// back. In each crossing they come before the others.
func (m *Model) keepScrubs(p *packet, c *connection, in, out *crossing, made *state.State) {
	came, left := c.Tuple[1], c.Tuple[1]
	left.Dst, left.DPort = c.Tuple[0].Src, c.Tuple[0].SPort
	var forth, back scrub
	var normal [2]bool
	if in.due && c.Flags&state.EvaluateIn == 0 {
		forth = scrubAt(in, nil)
	}
	if out.due && c.Flags&state.EvaluateOut == 0 {
		forth = forth.join(scrubAt(nil, out))
		reply := m.listedScrub(p, ast.In, out.iface, came)
		normal[1] = reply.ReassembleTCP
		back = enters(&reply).join(enters(&out.scrub))
	}
	if in.due && c.Flags&state.EvaluateIn == 0 {
		reply := m.listedScrub(p, ast.Out, in.iface, left)
		normal[0] = reply.ReassembleTCP
		back = back.join(leaves(&reply)).join(leaves(&in.scrub))
	}
	c.addScrub(0, forth)
	c.addScrub(1, back)
	m.keepNormal(p, c, in, out, normal, made)
}

// listedScrub returns what the first of FreeBSD's scrub rules that matches asks for a
// packet like p with another tuple.
func (m *Model) listedScrub(p *packet, direction ast.Direction, ifindex uint32, t state.Tuple) resolve.Scrub {
	a := m.ruleInputOf(p)
	a.direction, a.iface, a.tuple, a.began, a.tag = direction, m.box.byIndex(ifindex), t, t, ""
	if a.system != noSystem {
		a.system = unknownSystem // they are no SYNs
	}
	if t.Src.Is4() != p.tuple.Src.Is4() || t.Dst.Is4() != p.tuple.Dst.Is4() {
		return resolve.Scrub{} // replies to what af-to has translated
	}
	if a.iface == nil || m.skips(a.iface) {
		return resolve.Scrub{}
	}
	if l := m.firstScrub(&a); l != nil {
		return l.Rule.Scrub
	}
	return resolve.Scrub{}
}

// firstScrub returns the first of FreeBSD's scrub rules that matches, or nil.
func (m *Model) firstScrub(a *ruleInput) *resolve.ListRule {
	for _, l := range m.rules.Scrubs() {
		if m.matches(&l.Rule, a) {
			return l
		}
	}
	return nil
}

// listsPiece reports whether FreeBSD's scrub rules say that a fragment meets the rules for itself.
// No fragment shows its ports here, so that those of one packet meet the same rule.
func (m *Model) listsPiece(p *packet) bool {
	if p.fragment == fragmentNone || p.egress() || !m.rules.Options.FragmentsListed || m.skips(p.iface) {
		return false
	}
	a := m.ruleInputOf(p)
	a.fragment, a.tuple.SPort, a.tuple.DPort = true, 0, 0
	a.began = a.tuple
	l := m.firstScrub(&a)
	return l != nil && l.Pieces
}

// keptScrub returns what the rules have said of packets of direction d.
func (c *connection) keptScrub(d int) scrub {
	k := &c.Scrub[d]
	return scrub{k.NoDF, k.RandomID, k.Enters, k.Leaves, k.MaxMSS, resolve.SetTOS{Given: k.HasTOS, N: k.TOS}}
}

// scrubOf returns how packets of direction d are normalised.
func (c *connection) scrubOf(d int) scrub { return c.raise(d, c.keptScrub(d)) }

// scrubBetween returns how a packet of a connection is normalised: by the rules that it has
// met where it came in, by its connection, and by those where it leaves.
func (c *connection) scrubBetween(d int, in, out *crossing) scrub {
	return scrubAt(in, nil).join(c.scrubOf(d)).join(scrubAt(nil, out))
}

// tosAfter returns the type of service that rules see of a packet which got another one. For
// IPv6 it has no bits of congestion.
func (p *packet) tosAfter(s resolve.SetTOS) uint8 {
	const congestion = 3
	switch {
	case !s.Given:
		return p.tos
	case p.family == 6:
		return s.N &^ congestion
	}
	return s.N | p.tos&congestion
}

// normalise notes how a packet is normalised, and does what must be done first: whether
// its TTL ends here is asked after it was raised. The header changes when it goes on.
func (p *packet) normalise(s scrub) {
	p.scrub = s
	p.ttl = max(p.ttl, s.enters)
	if p.losesFIN {
		keep(func() { p.frame[p.l4+13] &^= flagFIN }, p.ip().l4Sum())
	}
	if p.tuple.Proto == protoTCP && p.fragment != fragmentLater && p.tcp.flags&flagSYN != 0 && s.maxMSS != 0 {
		keep(func() { lowerMSS(p.frame[p.l4+20:p.l4+p.tcp.header], s.maxMSS) }, p.ip().l4Sum())
	}
}

// lowerMSS lowers each MSS in a SYN's options.
func lowerMSS(options []byte, most uint16) {
	for len(options) > 0 && options[0] != 0 {
		size := 1
		if options[0] != 1 {
			if len(options) < 2 || options[1] < 2 || int(options[1]) > len(options) {
				return
			}
			size = int(options[1])
			if options[0] == 2 && size == 4 && binary.BigEndian.Uint16(options[2:]) > most {
				binary.BigEndian.PutUint16(options[2:], most)
			}
		}
		options = options[size:]
	}
}

// Where a packet's header is normalised.
type scrubPlace int

const (
	atHop scrubPlace = iota // it is redirected, and its TTL falls by one
	atUp                    // it goes up, and the stack may forward it
	atOut                   // it leaves the box
)

// ttlAfter returns a packet's new TTL.
func (s *scrub) ttlAfter(ttl uint8, at scrubPlace) uint8 {
	switch at {
	case atHop:
		return max(max(ttl, s.enters)-1, s.leaves)
	case atOut:
		return max(ttl, s.leaves)
	}
	ttl = max(ttl, s.enters)
	if ttl > 1 && s.leaves != 0 { // it will fall by one
		ttl = max(ttl, uint8(min(int(s.leaves)+1, 255)))
	}
	return ttl
}

// scrubHeader changes a packet's header as p.scrub says. A hop takes one from the TTL
// (RFC 1812, 5.3.1; RFC 8200, 3).
func (p *packet) scrubHeader(at scrubPlace) {
	ip := p.ip()
	if p.family == 6 {
		ip.header[7] = p.scrub.ttlAfter(ip.header[7], at)
		if t := p.scrub.tos; t.Given {
			ip.header[0] = ip.header[0]&0xf0 | t.N>>4
			ip.header[1] = ip.header[1]&0x3f | t.N<<4
		}
		return
	}
	const dontFragment = 0x40
	keep(func() {
		if t := p.scrub.tos; t.Given {
			ip.header[1] = ip.header[1]&3 | t.N
		}
		if p.scrub.noDF {
			ip.header[6] &^= dontFragment
		}
		if p.scrub.randomID && p.fragment == fragmentNone {
			put16(ip.header[4:], p.newID)
		}
		ip.header[8] = p.scrub.ttlAfter(ip.header[8], at)
	}, ip.headerSum())
}
