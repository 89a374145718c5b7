package ast

import "weir/pf/token"

// ScrubRule is a scrub rule as FreeBSD has them: packets that the first such
// rule matches are cleaned before any other rule is asked. What it asks of
// packets is in its Rule.
type ScrubRule struct {
	Rule
	Keyword       token.Span // from no on
	No            bool       // packets that match are not cleaned
	NoDF          bool
	RandomID      bool
	ReassembleTCP bool
	MinTTL        *Word
	MaxMSS        *Word
	SetTOS        *Count
	Fragment      string // reassemble, no reassemble, crop or drop-ovl; empty: not given
}
