package cli

import "weir/pf/resolve"

// ruleRecord is a rule in the JSON of check: what it is printed as, and where it
// comes from.
type ruleRecord struct {
	Number int    `json:"number"` // as weir rules counts; the rules of an anchor stand behind it wherever it is called
	Text   string `json:"text"`
	Anchor string `json:"anchor,omitempty"` // the path of the anchor that it calls
	Label  string `json:"label,omitempty"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// ruleRecords gives the rules, none where the file is refused.
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
