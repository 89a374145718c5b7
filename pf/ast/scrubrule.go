package ast

import "weir/pf/token"

// ScrubRule is a scrub rule as in FreeBSD: packets are normalised by the first one that
// matches, before any other rule is evaluated. Its conditions are in its Rule.
type ScrubRule struct {
	Rule
	Keyword       token.Span // from the word no on
	No            bool       // matching packets are not normalised
	NoDF          bool
	RandomID      bool
	ReassembleTCP bool
	MinTTL        *Word
	MaxMSS        *Word
	SetTOS        *Count
	Ruleset       *Word  // scrub-anchor, macOS's: the anchor whose scrub rules are evaluated; else nil
	Fragment      string // reassemble, no reassemble, crop or drop-ovl; empty: not given
}
