package resolve

import "weir/pf/ast"

// A Scrub is how a rule normalises its packets.
type Scrub struct {
	NoDF     bool   // IPv4: DF is cleared
	RandomID bool   // IPv4: packets that are not fragments get a random id
	MinTTL   uint8  // a smaller TTL or hop limit is raised to it; 0: none is
	MaxMSS   uint16 // a larger MSS of a SYN is lowered to it; 0: none is
}

// lowerScrub sets how a rule normalises its packets. As in pf, an anchor does not: its
// rules do.
func lowerScrub(in *ast.Rule, out *Rule) {
	s := in.Scrub
	if s == nil || in.Anchor != nil {
		return
	}
	out.Scrub = Scrub{NoDF: s.NoDF, RandomID: s.RandomID}
	if s.MinTTL != nil {
		out.Scrub.MinTTL = uint8(s.MinTTL.N)
	}
	if s.MaxMSS != nil {
		out.Scrub.MaxMSS = uint16(s.MaxMSS.N)
	}
}
