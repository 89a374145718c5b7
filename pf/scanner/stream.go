package scanner

import (
	"slices"
	"strconv"
	"strings"

	"weir/pf/diag"
	"weir/pf/token"
)

// What all uses of macros in a configuration may come to.
const (
	MaxExpansion = 16 << 20 // bytes
	maxWords     = 1 << 18  // tokens: of one letter each there could be 8 million in these bytes
)

// Stream returns the tokens of a configuration with its macros replaced, and
// those of files that it includes in their place.
type Stream struct {
	files   *token.FileSet
	list    *diag.List
	scanner *Scanner
	outer   []*Scanner // of the files that include the one that is being read
	read    []Comment  // of files that are read
	macros  map[string]*macro
	used    map[string]bool
	inner   *Scanner    // of the text of the macro that is being used
	use     token.Token // of that macro
	left    *budget     // of all streams of the configuration
}

// budget is what macros may still come to.
type budget struct{ bytes, words int }

// macro is what a name stands for, and where that stands.
type macro struct {
	text  string
	from  []token.Origin
	fixed bool // set from outside: the configuration cannot change it
}

// NewStream makes a stream of a file of files. Faults go to list.
func NewStream(files *token.FileSet, file *token.File, list *diag.List) *Stream {
	return &Stream{
		files:   files,
		list:    list,
		scanner: New(file, list.Errorf),
		macros:  make(map[string]*macro),
		used:    make(map[string]bool),
		left:    &budget{MaxExpansion, maxWords},
	}
}

// Apart makes a stream of another file of the configuration, in which only those
// macros are known that are set from outside.
func (s *Stream) Apart(file *token.File) *Stream {
	apart := NewStream(s.files, file, s.list)
	apart.left = s.left
	for name, m := range s.macros {
		if m.fixed {
			apart.macros[name] = m
		}
	}
	return apart
}

// Comments returns the comments read so far, file by file.
func (s *Stream) Comments() []Comment {
	all := slices.Clone(s.read)
	for _, outer := range s.outer {
		all = append(all, outer.Comments...)
	}
	return append(all, s.scanner.Comments...)
}

// Include returns the tokens of file next. Behind them there is a line end, and
// then what stands behind the include statement.
func (s *Stream) Include(file *token.File) {
	s.outer = append(s.outer, s.scanner)
	s.scanner = New(file, s.list.Errorf)
}

// Depth is how many files include the one that is being read.
func (s *Stream) Depth() int { return len(s.outer) }

// leave goes back to the file that includes the one that is read.
func (s *Stream) leave() {
	s.read = append(s.read, s.scanner.Comments...)
	last := len(s.outer) - 1
	s.scanner, s.outer = s.outer[last], s.outer[:last]
}

// Fix sets a macro to the text of file, which the configuration cannot change.
func (s *Stream) Fix(name string, file *token.File, text string) {
	from := file.Pos(len(file.Src) - len(text))
	s.macros[name] = &macro{text: text, from: []token.Origin{{Pos: from}}, fixed: true}
}

// Next returns the next token; never one of kind Macro.
func (s *Stream) Next() token.Token {
	for {
		if s.inner != nil {
			t := s.inner.Next()
			switch {
			case t.Kind == token.EOF:
				s.inner = nil
			case s.charge(0, 1):
				return s.glue(t)
			default:
				return token.Token{Kind: token.Bad, Span: s.use.Span}
			}
		}
		t := s.scanner.Next()
		if t.Kind == token.EOF && len(s.outer) > 0 {
			s.leave()
			t.Kind = token.Newline
		}
		if t.Kind != token.Macro {
			return t
		}
		if !s.enter(t) {
			return token.Token{Kind: token.Bad, Span: t.Span}
		}
	}
}

// Define sets the macro name to the values, of kinds Word, Number and String,
// with blanks between them. A later definition replaces an earlier one for the
// text behind it. It returns the value as text.
func (s *Stream) Define(name string, values []token.Token) string {
	var text strings.Builder
	m := &macro{}
	for i, v := range values {
		if i > 0 {
			text.WriteByte(' ')
		}
		for _, o := range s.origins(v) {
			m.add(text.Len()+o.At, o.Pos)
		}
		text.WriteString(v.Text)
	}
	m.text = text.String()
	if before := s.macros[name]; before == nil || !before.fixed {
		s.macros[name] = m
	}
	return m.text
}

// add appends an origin, unless it says what the last one says too.
func (m *macro) add(at int, pos token.Pos) {
	if n := len(m.from); n > 0 && pos-m.from[n-1].Pos == token.Pos(at-m.from[n-1].At) {
		return
	}
	m.from = append(m.from, token.Origin{At: at, Pos: pos})
}

// origins says where the text of a value stands. What a string in the text of
// another macro has escaped is not followed; its places are a few bytes off.
func (s *Stream) origins(v token.Token) []token.Origin {
	source := s.files.Text(v.Span)
	switch {
	case v.Kind != token.String:
		return []token.Origin{{Pos: v.Pos}}
	case len(source) < 2:
		return []token.Origin{{Pos: v.Pos + 1}}
	}
	_, from := cook(source[1:len(source)-1], source[0])
	for i := range from {
		from[i].Pos += v.Pos + 1
	}
	return from
}

// enter goes into the text of a macro, if there is such a macro.
func (s *Stream) enter(use token.Token) bool {
	m := s.macros[use.Text]
	s.used[use.Text] = true
	if m == nil {
		s.list.Add(diag.Diagnostic{
			Span:    use.Span,
			Message: "macro " + strconv.Quote(use.Text) + " is not defined",
			Suggest: diag.Nearest(use.Text, s.names()),
		})
		return false
	}
	s.use = use
	if !s.charge(len(m.text)+1, 0) {
		return false
	}
	s.inner = &Scanner{text: m.text, base: s.files.Expand(use.Span, m.from, len(m.text)), inside: true, report: s.list.Errorf}
	return true
}

// charge counts what the macro in use comes to. Where that is too much nothing
// more is read.
func (s *Stream) charge(bytes, words int) bool {
	s.left.bytes -= bytes
	s.left.words -= words
	switch {
	case s.left.bytes < 0:
		s.list.Errorf(s.use.Span, "macros come to more than %d MiB", MaxExpansion>>20)
	case s.left.words < 0:
		s.list.Errorf(s.use.Span, "macros come to more than %d words", maxWords)
	default:
		return true
	}
	for _, outer := range append(s.outer, s.scanner) {
		outer.off = len(outer.text)
	}
	s.inner = nil
	return false
}

// glue joins text right behind the use of a macro to the macro's last word, as
// in $if:network. Another macro there is a word of its own.
func (s *Stream) glue(t token.Token) token.Token {
	last := s.inner.off == len(s.inner.text)
	if !last || t.Kind != token.Word && t.Kind != token.Number {
		return t
	}
	if tail := s.scanner.rest("$"); tail != "" {
		t.Text += tail
		t.Kind = wordKind(t.Text)
		t.Span = token.Span{Pos: s.use.Pos, End: s.use.End + token.Pos(len(tail))}
	}
	return t
}

// Used reports whether a macro of that name was used so far.
func (s *Stream) Used(name string) bool { return s.used[name] }

// names returns the macros' names, for suggestions.
func (s *Stream) names() []string {
	names := make([]string, 0, len(s.macros))
	for name := range s.macros {
		names = append(names, name)
	}
	slices.Sort(names) // so that of equally near names the same is always suggested
	return names
}
