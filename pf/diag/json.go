package diag

import (
	"maps"
	"slices"

	"weir/pf/token"
)

// Record is a diagnostic in JSON, for editors.
type Record struct {
	Severity   string `json:"severity"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion,omitempty"`
	Unenforced string `json:"unenforced,omitempty"` // a construct that is read but not enforced
	Place
	Related []RelatedRecord `json:"related,omitempty"`
}

// RelatedRecord is a Related in JSON.
type RelatedRecord struct {
	Note string `json:"note,omitempty"`
	Place
}

// Place is a span in JSON. Lines and columns count from 1; columns count bytes; the end
// is exclusive.
type Place struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	EndLine   int    `json:"end_line"`
	EndColumn int    `json:"end_column"`
}

// Records returns all errors and warnings in the order of Sort.
func (l *List) Records() []Record {
	sorted := List{Files: l.Files, Items: slices.Clone(l.Items)}
	sorted.Sort()
	records := make([]Record, 0, len(sorted.Items))
	for i := range sorted.Items {
		d := &sorted.Items[i]
		r := Record{Severity: d.Severity.String(), Message: d.Message, Suggestion: d.Suggest, Unenforced: d.Construct, Place: l.place(l.Files.Use(d.Span))}
		if l.Files.InMacro(d.Span.Pos) {
			r.Related = append(r.Related, RelatedRecord{Note: inMacro, Place: l.place(l.Files.Spelling(d.Span))})
		}
		for _, other := range d.Related {
			r.Related = append(r.Related, RelatedRecord{Note: other.Note, Place: l.place(l.Files.Use(other.Span))})
		}
		for file := l.Files.File(l.Files.Use(d.Span).Pos); file != nil && file.Included.IsValid(); file = l.Files.File(file.Included.Pos) {
			r.Related = append(r.Related, RelatedRecord{Note: "included here", Place: l.place(file.Included)})
		}
		records = append(records, r)
	}
	return records
}

// Constructs returns the constructs that are read but not enforced, in alphabetical
// order.
func (l *List) Constructs() []ConstructRecord {
	constructs := []ConstructRecord{}
	for _, name := range slices.Sorted(maps.Keys(l.places)) {
		constructs = append(constructs, ConstructRecord{name, l.places[name]})
	}
	return constructs
}

// ConstructRecord is a construct that is read but not enforced, in JSON.
type ConstructRecord struct {
	Construct string `json:"construct"`
	Places    int    `json:"places"` // number of places, counted after lists are expanded
}

func (l *List) place(sp token.Span) Place {
	start, end := l.Files.Position(sp.Pos), l.Files.Position(sp.End)
	return Place{start.File, start.Line, start.Column, end.Line, end.Column}
}
