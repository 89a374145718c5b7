package model

import (
	"encoding/binary"

	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// A scrub is how one packet is normalised (step 16).
type scrub struct {
	noDF, randomID bool
	enters, leaves uint8 // least TTLs where it comes in, and where it leaves; 0: none
	maxMSS         uint16
}

// takeScrub adds what a rule asks for; values replace earlier ones.
func (c *crossing) takeScrub(r *resolve.Rule) {
	s := &r.Scrub
	c.scrub.NoDF = c.scrub.NoDF || s.NoDF
	c.scrub.RandomID = c.scrub.RandomID || s.RandomID
	if s.MinTTL != 0 {
		c.scrub.MinTTL = s.MinTTL
	}
	if s.MaxMSS != 0 {
		c.scrub.MaxMSS = s.MaxMSS
	}
}

// least returns the smaller of two values, of which 0 is none.
func least(a, b uint16) uint16 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// join returns what either asks for.
func (s scrub) join(o scrub) scrub {
	return scrub{s.noDF || o.noDF, s.randomID || o.randomID, max(s.enters, o.enters), max(s.leaves, o.leaves), least(s.maxMSS, o.maxMSS)}
}

// scrubAt returns what the crossings of one packet ask for.
func scrubAt(in, out *crossing) scrub {
	var s scrub
	if in != nil {
		s = s.join(scrub{in.scrub.NoDF, in.scrub.RandomID, in.scrub.MinTTL, 0, in.scrub.MaxMSS})
	}
	if out != nil {
		s = s.join(scrub{out.scrub.NoDF, out.scrub.RandomID, 0, out.scrub.MinTTL, out.scrub.MaxMSS})
	}
	return s
}

// keepScrub adds what the rules of a side ask for to a connection.
func (c *connection) keepScrub(side int, here *crossing) {
	kept := &c.Scrub
	kept.NoDF = kept.NoDF || here.scrub.NoDF
	kept.RandomID = kept.RandomID || here.scrub.RandomID
	kept.MinTTL[side] |= here.scrub.MinTTL
	kept.MaxMSS = least(kept.MaxMSS, here.scrub.MaxMSS)
}

// keepScrubs does so for the sides with state of a new connection.
func (c *connection) keepScrubs(in, out *crossing) {
	if in.due && c.Flags&state.EvaluateIn == 0 {
		c.keepScrub(0, in)
	}
	if out.due && c.Flags&state.EvaluateOut == 0 {
		c.keepScrub(1, out)
	}
}

// scrubOf returns how packets of direction d are normalised.
func (c *connection) scrubOf(d int) scrub {
	k := &c.Scrub
	return scrub{k.NoDF, k.RandomID, k.MinTTL[d], k.MinTTL[1-d], k.MaxMSS}
}

// normalise notes how a packet is normalised, and does what must be done first: whether
// its TTL ends here is asked after it was raised. The header changes when it goes on.
func (p *packet) normalise(s scrub) {
	p.scrub = s
	p.ttl = max(p.ttl, s.enters)
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
		return
	}
	const dontFragment = 0x40
	keep(func() {
		if p.scrub.noDF {
			ip.header[6] &^= dontFragment
		}
		if p.scrub.randomID && p.fragment == fragmentNone {
			put16(ip.header[4:], p.newID)
		}
		ip.header[8] = p.scrub.ttlAfter(ip.header[8], at)
	}, ip.headerSum())
}
