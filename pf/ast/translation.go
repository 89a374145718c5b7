package ast

import "weir/pf/token"

// TranslationKind is the list that a translation rule of FreeBSD's stands in.
type TranslationKind uint8

// Kinds of translation rules.
const (
	NatRule   TranslationKind = iota // the source of outgoing packets
	RdrRule                          // the destination of incoming packets
	BinatRule                        // one network for another, both ways
)

// String is the kind's word.
func (k TranslationKind) String() string {
	return [...]string{NatRule: "nat", RdrRule: "rdr", BinatRule: "binat"}[k]
}

// Translation is a translation rule as FreeBSD has them, or an anchor of such
// rules. They are lists of their own, asked before the filter rules, and the
// first of a list that matches is the only one that translates. What a rule
// asks of packets is in its Rule, of which Log is what it logs by itself.
type Translation struct {
	Rule
	Kind    TranslationKind
	Keyword token.Span // from no on
	No      bool       // packets that match stay as they are
	Pass    bool       // packets that match are not shown to the filter rules
	Target  *Pool      // behind ->; nil with No and in an anchor
	Ruleset *Word      // of nat-anchor and its like: the anchor whose rules of this kind are asked; else nil
}
