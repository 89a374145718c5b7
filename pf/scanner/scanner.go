package scanner

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"weir/pf/token"
)

// Comment is the text of a comment, from # to the end of the line.
type Comment struct {
	token.Span
	Text string
}

// Scanner reads one text.
type Scanner struct {
	Comments []Comment // comments read so far

	text   string
	base   token.Pos              // of text[0]
	inside bool                   // inside a macro's text, in which $ has no meaning
	leads  func(name string) bool // inside: whether that macro contains the one that is read
	off    int
	report func(sp token.Span, format string, args ...any)
}

// byteOrderMark is the mark that some editors write before UTF-8 text.
const byteOrderMark = "\ufeff"

// New makes a scanner of a file. It passes faults to report, and returns a token of kind
// Bad for the faulty text. It skips a byte-order mark at the start.
func New(file *token.File, report func(token.Span, string, ...any)) *Scanner {
	s := &Scanner{text: string(file.Src), base: file.Pos(0), report: report}
	if strings.HasPrefix(s.text, byteOrderMark) {
		s.off = len(byteOrderMark)
	}
	return s
}

// span returns the place of text[from:to].
func (s *Scanner) span(from, to int) token.Span {
	return token.Span{Pos: s.base + token.Pos(from), End: s.base + token.Pos(to)}
}

// peek returns the byte n bytes ahead, or 0 after the end.
func (s *Scanner) peek(n int) byte {
	if s.off+n >= len(s.text) {
		return 0
	}
	return s.text[s.off+n]
}

// backslash returns the length of what a backslash here drops, or 0: itself, and a line
// end behind it. As in pf, a backslash before any other character has no meaning. Of two,
// the second stays.
func (s *Scanner) backslash() int {
	switch {
	case s.peek(0) != '\\', s.peek(1) == '\\':
		return 0
	case s.peek(1) == '\n':
		return 2
	case s.peek(1) == '\r' && s.peek(2) == '\n':
		return 3
	}
	return 1
}

// Next returns the next token. At the end it returns EOF every time.
func (s *Scanner) Next() token.Token {
	s.skip()
	start := s.off
	if start >= len(s.text) {
		return s.make(token.EOF, start, "")
	}
	switch c := s.text[start]; {
	case c == '\n':
		s.off++
		return s.make(token.Newline, start, "")
	case c == '"' || c == '\'':
		return s.quoted(c)
	case c == '$' && !s.inside && isName(s.peek(1)):
		return s.macro()
	case c == '$' && isName(s.peek(1)):
		return s.macroInside()
	case isAlnum(c) || c == ':' || c == '_':
		return s.word()
	}
	return s.sign()
}

func (s *Scanner) make(kind token.Kind, start int, text string) token.Token {
	return token.Token{Kind: kind, Text: text, Span: s.span(start, s.off)}
}

func (s *Scanner) illegal(start int, format string, args ...any) token.Token {
	t := s.make(token.Bad, start, "")
	s.report(t.Span, format, args...)
	return t
}

// skip skips blanks, what backslashes drop, and a comment.
func (s *Scanner) skip() {
	for s.off < len(s.text) {
		switch c := s.text[s.off]; {
		case c == ' ' || c == '\t' || c == '\r':
			s.off++
		case s.backslash() > 0:
			s.off += s.backslash()
		case c == '#', c == ';': // FreeBSD allows both
			s.comment()
		default:
			return
		}
	}
}

// comment skips to the end of the line. As in pf, a backslash there continues the
// comment.
func (s *Scanner) comment() {
	start := s.off
	for s.off < len(s.text) && s.text[s.off] != '\n' {
		if s.peek(0) == '\\' && s.peek(1) == '\\' {
			s.off += 2 // the first of two says nothing about what follows
			continue
		}
		s.off += max(1, s.backslash())
	}
	text := strings.TrimRight(s.text[start:s.off], " \t\r")
	s.Comments = append(s.Comments, Comment{s.span(start, start+len(text)), text})
}

func (s *Scanner) macro() token.Token {
	start := s.off
	for s.off++; isName(s.peek(0)); s.off++ {
	}
	return s.make(token.Macro, start, s.text[start+1:s.off])
}

func (s *Scanner) macroInside() token.Token {
	start := s.off
	for s.off++; isName(s.peek(0)); s.off++ {
	}
	if name := s.text[start+1 : s.off]; s.leads(name) {
		return s.illegal(start, "the value of the macro contains itself, by $%s", name)
	}
	return s.illegal(start, "%s inside a quoted macro value is not replaced; write it outside of the quotes", s.text[start:s.off])
}

// word reads a word. It drops backslashes and continued line ends inside it.
func (s *Scanner) word() token.Token {
	start := s.off
	text := s.rest("")
	return s.make(wordKind(text), start, text)
}

// rest reads the rest of a word up to one of the bytes in stop. It is empty if the word
// has ended.
func (s *Scanner) rest(stop string) string {
	start, joined := s.off, ""
	for s.off < len(s.text) {
		if n := s.backslash(); n > 0 && inWord(s.peek(n)) && s.off > start {
			joined += s.text[start:s.off]
			s.off += n
			start = s.off
			continue
		}
		if c := s.text[s.off]; !inWord(c) || strings.IndexByte(stop, c) >= 0 {
			break
		}
		s.off++
	}
	return joined + s.text[start:s.off]
}

// wordKind distinguishes numbers from other words.
func wordKind(text string) token.Kind {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return token.Word
		}
	}
	return token.Number
}

// quoted reads a string. As in pf, it drops line ends inside it.
func (s *Scanner) quoted(quote byte) token.Token {
	start := s.off
	for s.off++; s.off < len(s.text); s.off++ {
		switch s.text[s.off] {
		case quote:
			raw := s.text[start+1 : s.off]
			s.off++
			if at := invalid(raw); at >= 0 {
				s.report(s.span(start+1+at, start+2+at), "the byte %q in a string is not UTF-8", raw[at:at+1])
				return s.make(token.Bad, start, "")
			}
			if at := control(raw); at >= 0 {
				s.report(s.span(start+1+at, start+2+at), "the control character %q in a string would reach terminals", raw[at:at+1])
				return s.make(token.Bad, start, "")
			}
			text, _ := unquote(raw, quote)
			return s.make(token.String, start, text)
		case '\\':
			if s.peek(1) == quote {
				s.off++
			}
		case 0:
			at := s.off
			s.off += len(s.text[at:])
			if end := strings.IndexByte(s.text[at:], '\n'); end >= 0 {
				s.off = at + end
			}
			t := s.make(token.Bad, start, "")
			s.report(s.span(at, at+1), "NUL byte in a string")
			return t
		}
	}
	s.off = len(s.text)
	t := s.make(token.Bad, start, "")
	where := "it runs to the end of the file"
	if s.inside {
		where = "it runs to the end of the macro"
	}
	s.report(token.Span{Pos: t.Pos, End: t.Pos + 1}, "string is not closed: %s", where)
	return t
}

// invalid returns the position of the first byte that is not UTF-8, or -1. Strings are
// written as JSON, which would make all such bytes the same.
func invalid(text string) int {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// control returns the position of the first control character other than blanks and line
// ends, or -1.
func control(text string) int {
	return strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' })
}

// unquote returns the value of a string from its source between the quotes, with the origins
// of its parts.
func unquote(raw string, quote byte) (string, []token.Origin) {
	from := []token.Origin{{}}
	if !strings.ContainsAny(raw, "\\\n") {
		return raw, from
	}
	var b strings.Builder
	for i := 0; i < len(raw); {
		n := dropped(raw[i:], quote)
		if i += n; n > 0 {
			from = append(from, token.Origin{At: b.Len(), Pos: token.Pos(i)})
			if escape := n == 1 && raw[i-1] == '\\'; !escape {
				continue
			}
		}
		b.WriteByte(raw[i])
		i++
	}
	return b.String(), from
}

// dropped returns the number of bytes without a value at the start of raw: a line end,
// continued or not, or the backslash before an escaped character.
func dropped(raw string, quote byte) int {
	switch {
	case raw == "":
		return 0
	case raw[0] == '\n':
		return 1
	case strings.HasPrefix(raw, "\\\n"):
		return 2
	case strings.HasPrefix(raw, "\\\r\n"):
		return 3
	case strings.HasPrefix(raw, "\r\n"):
		return 2
	case raw[0] == '\\' && len(raw) > 1 && (raw[1] == quote || raw[1] == ' ' || raw[1] == '\t'):
		return 1
	}
	return 0
}

// signs has those of two characters first.
var signs = []struct {
	text string
	kind token.Kind
}{
	{"!=", token.NotEqual}, {"<=", token.LessEqual}, {">=", token.GreaterEqual},
	{"<>", token.Outside}, {"><", token.Inside}, {"->", token.Arrow},
	{"{", token.LeftBrace}, {"}", token.RightBrace}, {"(", token.LeftParen}, {")", token.RightParen},
	{",", token.Comma}, {"/", token.Slash}, {"!", token.Not}, {"=", token.Equal},
	{"<", token.Less}, {">", token.Greater}, {"-", token.Minus},
}

func (s *Scanner) sign() token.Token {
	start := s.off
	for _, sign := range signs {
		if strings.HasPrefix(s.text[start:], sign.text) {
			s.off += len(sign.text)
			return s.make(sign.kind, start, sign.text)
		}
	}
	c := s.text[start]
	s.off++
	switch {
	case c == '\\':
		return s.illegal(start, "unexpected backslash")
	case c < ' ' || c >= 0x7f:
		for s.off < len(s.text) && s.text[s.off] >= 0x80 {
			s.off++
		}
		return s.illegal(start, "unexpected character %q", s.text[start:s.off])
	}
	return s.make(token.Char, start, s.text[start:s.off])
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// isName reports whether c may be in a macro's name.
func isName(c byte) bool { return isAlnum(c) || c == '_' }

// inWord reports whether c continues a word.
func inWord(c byte) bool {
	return isAlnum(c) || c > ' ' && c < 0x7f && strings.IndexByte("(){}<>!=/#,\"'\\", c) < 0
}
