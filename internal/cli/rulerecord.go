package cli

import "weir/pf/resolve"

// ruleRecord is a rule in the JSON of check: its text, and where it comes from.
type ruleRecord struct {
	Number int    `json:"number"` // number as in weir rules; an anchor's rules follow it wherever it is called
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
	for _, r := range rs.Rules {
		at := rs.Source.Files.Position(r.Pos)
		record := ruleRecord{Number: r.Nr, Text: r.Text, Label: r.Label, File: at.File, Line: at.Line, Column: at.Column}
		if r.Anchor != nil {
			record.Anchor = r.Anchor.Path
		}
		records = append(records, record)
	}
	return records
}
