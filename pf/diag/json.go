package diag

import (
	"encoding/json"
	"io"
	"slices"

	"weir/pf/token"
)

// place is a span as editors want it.
type place struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	EndLine   int    `json:"end_line"`
	EndColumn int    `json:"end_column"`
}

type record struct {
	Severity   string `json:"severity"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion,omitempty"`
	place
	Related []relatedRecord `json:"related,omitempty"`
}

type relatedRecord struct {
	Note string `json:"note,omitempty"`
	place
}

// FprintJSON prints all errors and warnings as a JSON array, in the order of
// Sort.
func (l *List) FprintJSON(w io.Writer) error {
	sorted := List{Files: l.Files, Items: slices.Clone(l.Items)}
	sorted.Sort()
	records := make([]record, 0, len(sorted.Items))
	for i := range sorted.Items {
		d := &sorted.Items[i]
		r := record{Severity: d.Severity.String(), Message: d.Message, Suggestion: d.Suggest, place: l.place(l.Files.Use(d.Span))}
		if l.Files.InMacro(d.Span.Pos) {
			r.Related = append(r.Related, relatedRecord{Note: "in this macro", place: l.place(l.Files.Spelling(d.Span))})
		}
		for _, other := range d.Related {
			r.Related = append(r.Related, relatedRecord{Note: other.Note, place: l.place(l.Files.Use(other.Span))})
		}
		records = append(records, r)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(records)
}

func (l *List) place(sp token.Span) place {
	start, end := l.Files.Position(sp.Pos), l.Files.Position(sp.End)
	return place{start.File, start.Line, start.Column, end.Line, end.Column}
}
