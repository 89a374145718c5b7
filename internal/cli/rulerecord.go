package cli

import (
	"weir/pf/ast"
	"weir/pf/resolve"
)

// ruleRecord is a rule in the JSON of check: its text, and where it comes from.
type ruleRecord struct {
	Number int    `json:"number"`         // number as in weir rules; an anchor's rules follow it wherever it is called
	List   string `json:"list,omitempty"` // ether, nat, rdr, binat or scrub: FreeBSD's list of that name, which has its own numbers
	Text   string `json:"text"`
	Anchor string `json:"anchor,omitempty"` // path of the anchor that it calls
	Label  string `json:"label,omitempty"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// ruleRecords returns the rules. It returns none if the file is refused.
func ruleRecords(rs *resolve.Ruleset) []ruleRecord {
	records := []ruleRecord{}
	if rs == nil {
		return records
	}
	for _, l := range rs.Ethers() {
		if !l.IsPast {
			record := recordOf(rs, &l.Rule)
			record.List = "ether"
			records = append(records, record)
		}
	}
	for _, kind := range []resolve.TranslationKind{resolve.NatRule, resolve.RdrRule, resolve.BinatRule} {
		for _, l := range rs.First {
			if l.Of == nil || l.Of.Kind != kind || kind == resolve.BinatRule && l.Direction == ast.In {
				continue // not shown, of another list, or the other part of a binat rule
			}
			record := recordOf(rs, &l.Rule)
			record.List = kind.String()
			records = append(records, record)
		}
	}
	for _, l := range rs.Scrubs() {
		record := recordOf(rs, &l.Rule)
		record.List = "scrub"
		records = append(records, record)
	}
	for _, r := range rs.Rules {
		records = append(records, recordOf(rs, r))
	}
	return records
}

func recordOf(rs *resolve.Ruleset, r *resolve.Rule) ruleRecord {
	at := rs.Source.Files.Position(r.Pos)
	record := ruleRecord{Number: r.Nr, Text: r.Text, Label: r.Label, File: at.File, Line: at.Line, Column: at.Column}
	if r.Anchor != nil {
		record.Anchor = r.Anchor.Path
	}
	return record
}
