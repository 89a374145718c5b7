package ast

import "weir/pf/token"

// TranslationKind is the list to which a FreeBSD translation rule belongs.
type TranslationKind uint8

// Kinds of translation rules.
const (
	NatRule      TranslationKind = iota // the source of outgoing packets
	RdrRule                             // the destination of incoming packets
	BinatRule                           // one network for another, both ways
	DummynetRule                        // macOS's; only of anchors: its rules are not read
)

// String returns the kind's word.
func (k TranslationKind) String() string {
	return [...]string{NatRule: "nat", RdrRule: "rdr", BinatRule: "binat", DummynetRule: "dummynet"}[k]
}

// Translation is a translation rule as in FreeBSD, or an anchor of such rules. They are
// in lists of their own, which are evaluated before the filter rules. In each list only
// the first matching rule translates. A rule's conditions are in its Rule, whose Log is
// what the rule itself logs.
type Translation struct {
	Rule
	Kind    TranslationKind
	Keyword token.Span // from the word no on
	No      bool       // matching packets are not translated
	Pass    bool       // matching packets skip the filter rules
	Target  *Pool      // after ->; nil with No and in an anchor
	Ruleset *Word      // for nat-anchor and similar: the anchor whose rules of this kind are evaluated; else nil
}
