package token

import "fmt"

// Pos is a place in the sources of a FileSet, which are at most 2 GiB. The zero value is
// NoPos. It is small because an expanded rule has about twenty of them.
type Pos int32

// NoPos is the place of anything without a source.
const NoPos Pos = 0

// IsValid reports whether p is a place.
func (p Pos) IsValid() bool { return p != NoPos }

// Span is the text from Pos up to, but not including, End.
type Span struct {
	Pos, End Pos
}

// IsValid reports whether s is a place.
func (s Span) IsValid() bool { return s.Pos.IsValid() }

// Start returns the place where the span starts.
func (s Span) Start() Pos { return s.Pos }

// Whole returns the span itself. With Start it gives access to the place of every type
// that embeds a Span.
func (s Span) Whole() Span { return s }

// To returns the span from the start of s to the end of t.
func (s Span) To(t Span) Span {
	if !t.IsValid() {
		return s
	}
	if !s.IsValid() {
		return t
	}
	return Span{s.Pos, t.End}
}

// Overlaps reports whether the spans share text.
func (s Span) Overlaps(t Span) bool { return s.Pos < t.End && t.Pos < s.End }

// Position is a Pos in the form for people.
type Position struct {
	File   string
	Line   int // from 1; 0 if the place is unknown
	Column int // in bytes, from 1
}

// String returns file:line:column, or line:column if the file has no name.
func (p Position) String() string {
	switch {
	case p.Line == 0 && p.File == "":
		return "-"
	case p.Line == 0:
		return p.File
	case p.File == "":
		return fmt.Sprintf("%d:%d", p.Line, p.Column)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}
