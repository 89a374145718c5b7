package scanner

import (
	"slices"
	"strconv"
	"strings"

	"weir/pf/diag"
	"weir/pf/token"
)

// Limits of all uses of macros in a configuration.
const (
	MaxExpansion = 16 << 20 // bytes
	maxWords     = 1 << 18  // tokens: these bytes could be 8 million tokens of one letter
)

// Stream returns the tokens of a configuration with its macros replaced, and the tokens
// of included files in their place.
type Stream struct {
	files   *token.FileSet
	list    *diag.List
	scanner *Scanner
	outer   []*Scanner // files that include the current one
	read    []Comment  // comments of finished files
	macros  map[string]*macro
	used    map[string]bool
	inner   *Scanner    // text of the macro in use
	use     token.Token // use of that macro
	left    *budget     // shared by all streams of the configuration
}

// budget is what macros may still expand to.
type budget struct{ bytes, words int }

// macro is a macro's value and its place.
type macro struct {
	text  string
	from  []token.Origin
	fixed bool // set from outside, so the configuration cannot change it
}

// NewStream makes a stream of one of files. Faults go to list.
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

// Separate makes a stream of another file of the configuration. It knows only the macros
// that were set from outside.
func (s *Stream) Separate(file *token.File) *Stream {
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

// Include continues with the tokens of file. A line end follows them, and then the text
// after the include statement.
func (s *Stream) Include(file *token.File) {
	s.outer = append(s.outer, s.scanner)
	s.scanner = New(file, s.list.Errorf)
}

// Depth returns how many files include the current one.
func (s *Stream) Depth() int { return len(s.outer) }

// leave returns to the file that includes the current one.
func (s *Stream) leave() {
	s.read = append(s.read, s.scanner.Comments...)
	last := len(s.outer) - 1
	s.scanner, s.outer = s.outer[last], s.outer[:last]
}

// Fix sets a macro to text, whose source is file. The configuration cannot change it.
func (s *Stream) Fix(name string, file *token.File, text string) {
	from := file.Pos(len(file.Src) - len(text))
	s.macros[name] = &macro{text: text, from: []token.Origin{{Pos: from}}, fixed: true}
}

// Next returns the next token, which is never of kind Macro.
func (s *Stream) Next() token.Token {
	for {
		if s.inner != nil {
			t := s.inner.Next()
			switch {
			case t.Kind == token.EOF:
				s.inner = nil
			case s.charge(0, 1):
				return s.join(t)
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

// Define sets the macro name to the values, of kinds Word, Number and String, with blanks
// between them. A later definition replaces an earlier one for the text after it. It
// returns the value as text.
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

// add appends an origin, unless the last one implies it.
func (m *macro) add(at int, pos token.Pos) {
	if n := len(m.from); n > 0 && pos-m.from[n-1].Pos == token.Pos(at-m.from[n-1].At) {
		return
	}
	m.from = append(m.from, token.Origin{At: at, Pos: pos})
}

// origins returns where the text of a value comes from. It ignores escapes in a string
// inside another macro's text, whose places are then a few bytes off.
func (s *Stream) origins(v token.Token) []token.Origin {
	source := s.files.Text(v.Span)
	switch {
	case v.Kind != token.String:
		return []token.Origin{{Pos: v.Pos}}
	case len(source) < 2:
		return []token.Origin{{Pos: v.Pos + 1}}
	}
	_, from := unquote(source[1:len(source)-1], source[0])
	for i := range from {
		from[i].Pos += v.Pos + 1
	}
	return from
}

// enter starts reading the text of a macro, if it is defined.
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
	s.inner.leads = func(name string) bool { return s.leads(name, use.Text, make(map[string]bool)) }
	return true
}

// leads reports whether a macro's value contains another macro, or one that contains it.
func (s *Stream) leads(from, to string, seen map[string]bool) bool {
	m := s.macros[from]
	if from == to || m == nil || seen[from] {
		return from == to
	}
	seen[from] = true
	for _, part := range strings.Split(m.text, "$")[1:] {
		end := 0
		for end < len(part) && isName(part[end]) {
			end++
		}
		if s.leads(part[:end], to, seen) {
			return true
		}
	}
	return false
}

// charge counts the expansion of the macro in use. Above the limit nothing more is read.
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

// join joins text directly after a macro to the macro's last word, as in $if:network.
// Another macro there is a separate word.
func (s *Stream) join(t token.Token) token.Token {
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
	slices.Sort(names) // so that the suggestion among equally near names is always the same
	return names
}
