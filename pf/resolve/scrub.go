package resolve

import "weir/pf/ast"

// A Scrub is how a rule normalises its packets.
type Scrub struct {
	NoDF     bool   // IPv4: DF is cleared
	RandomID bool   // IPv4: packets that are not fragments get a random id
	MinTTL   uint8  // a smaller TTL or hop limit is raised to it; 0: none is
	MaxMSS   uint16 // a larger MSS of a SYN is lowered to it; 0: none is
	SetTOS   SetTOS // set tos, which is scrub (set-tos) in FreeBSD
	// ReassembleTCP says that the timestamps of its TCP connections are checked, and get a random
	// offset, and that their TTLs do not fall.
	ReassembleTCP bool
}

// SetTOS is the type of service that packets get. The bits of congestion stay, unless N has
// them set.
type SetTOS struct {
	Given bool
	N     uint8
}

// Then returns what a packet gets that gets s and then another.
func (s SetTOS) Then(next SetTOS) SetTOS {
	if !next.Given {
		return s
	}
	next.N |= s.N & 3
	return next
}

// lowerScrub sets how a rule normalises its packets. As in pf, an anchor does not: its
// rules do.
func lowerScrub(in *ast.Rule, out *Rule) {
	s := in.Scrub
	if in.Anchor != nil {
		return
	}
	out.Scrub.SetTOS = lowerTOS(in.Set.TOS)
	if s == nil {
		return
	}
	out.Scrub.NoDF, out.Scrub.RandomID, out.Scrub.ReassembleTCP = s.NoDF, s.RandomID, s.ReassembleTCP
	if s.MinTTL != nil {
		out.Scrub.MinTTL = uint8(s.MinTTL.N)
	}
	if s.MaxMSS != nil {
		out.Scrub.MaxMSS = uint16(s.MaxMSS.N)
	}
}

func lowerTOS(n *ast.Count) SetTOS {
	if n == nil {
		return SetTOS{}
	}
	return SetTOS{true, uint8(n.N)}
}
