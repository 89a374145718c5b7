package scanner

import (
	"slices"
	"strings"

	"weir/pf/diag"
	"weir/pf/token"
)

// MaxExpansion is the number of bytes that all uses of macros in a
// configuration may come to.
const MaxExpansion = 16 << 20

// Stream gives the tokens of a configuration with its macros replaced.
type Stream struct {
	files   *token.FileSet
	list    *diag.List
	scanner *Scanner
	macros  map[string]*macro
	pending []token.Token // of a macro's use, not yet given out
	left    int           // bytes that macros may still come to
}

// macro is a name and the tokens that it stands for.
type macro struct {
	name   token.Token
	text   string
	pieces []piece
}

// piece is a part of a macro's value whose text stands in one place.
type piece struct {
	span   token.Span
	tokens []token.Token
}

// NewStream makes a stream of a file of files. Faults go to list.
func NewStream(files *token.FileSet, file *token.File, list *diag.List) *Stream {
	return &Stream{
		files:   files,
		list:    list,
		scanner: New(file, list.Errorf),
		macros:  make(map[string]*macro),
		left:    MaxExpansion,
	}
}

// Comments gives the comments read so far.
func (s *Stream) Comments() []Comment { return s.scanner.Comments }

// Next gives the next token; never one of kind Macro.
func (s *Stream) Next() token.Token {
	for {
		if len(s.pending) > 0 {
			t := s.pending[0]
			s.pending = s.pending[1:]
			return t
		}
		t := s.scanner.Next()
		if t.Kind != token.Macro {
			return t
		}
		if bad := s.expand(t); bad.Kind == token.Bad {
			return bad
		}
	}
}

// Define sets the macro name to the values, of kinds Word, Number and String.
// A later definition replaces an earlier one for the text behind it. It
// returns the value as text.
func (s *Stream) Define(name token.Token, values []token.Token) string {
	m := &macro{name: name}
	texts := make([]string, 0, len(values))
	for _, v := range values {
		texts = append(texts, v.Text)
		m.pieces = append(m.pieces, s.piece(v))
	}
	m.text = strings.Join(texts, " ")
	s.macros[name.Text] = m
	return m.text
}

// piece takes one value of a macro apart into tokens.
func (s *Stream) piece(v token.Token) piece {
	if v.Kind != token.String {
		return piece{v.Span, []token.Token{v}}
	}
	sub := &Scanner{text: v.Text, inside: true, report: s.list.Errorf}
	if source := s.files.Text(v.Span); len(source) < 2 {
		sub.whole = v.Span // quoted inside another macro: its parts have no place of their own
	} else {
		sub.base = v.Pos + 1
		_, sub.shifts = cook(source[1:len(source)-1], source[0])
	}
	p := piece{span: v.Span}
	for t := sub.Next(); t.Kind != token.EOF; t = sub.Next() {
		p.tokens = append(p.tokens, t)
	}
	return p
}

// expand puts the tokens of a use of a macro into pending, each with a
// position that leads to the use and to the definition. It returns a token of
// kind Bad if there is nothing to put there.
func (s *Stream) expand(use token.Token) token.Token {
	bad := token.Token{Kind: token.Bad, Span: use.Span}
	m := s.macros[use.Text]
	if m == nil {
		s.list.Add(diag.Diagnostic{
			Span:    use.Span,
			Message: "macro " + quote(use.Text) + " is not defined",
			Suggest: diag.Nearest(use.Text, s.names()),
		})
		return bad
	}
	if s.left -= len(m.text) + 1; s.left < 0 {
		s.list.Errorf(use.Span, "macros come to more than %d MiB", MaxExpansion>>20)
		s.scanner.off = len(s.scanner.text)
		return bad
	}
	for _, p := range m.pieces {
		base := s.files.Expand(use.Span, p.span.Pos, int(p.span.End-p.span.Pos))
		for _, t := range p.tokens {
			t.Span = token.Span{Pos: base + t.Pos - p.span.Pos, End: base + t.End - p.span.Pos}
			s.pending = append(s.pending, t)
		}
	}
	s.glue(use)
	return token.Token{}
}

// glue joins text right behind a use of a macro to the macro's last word, as
// in $if:network. Another macro there is a word of its own.
func (s *Stream) glue(use token.Token) {
	if len(s.pending) == 0 {
		return
	}
	last := &s.pending[len(s.pending)-1]
	if last.Kind != token.Word && last.Kind != token.Number {
		return
	}
	if tail := s.scanner.rest("$"); tail != "" {
		last.Text += tail
		last.Kind = wordKind(last.Text)
		last.Span = token.Span{Pos: use.Pos, End: use.End + token.Pos(len(tail))}
	}
}

// names gives the macros' names, for suggestions.
func (s *Stream) names() []string {
	names := make([]string, 0, len(s.macros))
	for name := range s.macros {
		names = append(names, name)
	}
	slices.Sort(names) // so that of equally near names the same is always suggested
	return names
}

func quote(s string) string { return `"` + s + `"` }
