package scanner_test

import (
	"strings"
	"testing"

	"weir/internal/testenv"
	"weir/pf/diag"
	"weir/pf/scanner"
	"weir/pf/token"
)

// FuzzScanner checks that every byte of a text belongs to at most one token, that tokens
// are in order, and that the text between them is only white space, comments or
// continuations: nothing is left out.
func FuzzScanner(f *testing.F) {
	for _, text := range testenv.RuleFiles(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		files := token.NewFileSet()
		file := files.AddFile("in", src)
		list := diag.List{Files: files}
		s := scanner.New(file, list.Errorf)
		at, comments := 0, 0
		for {
			tok := s.Next()
			start, end := file.Offset(tok.Pos), file.Offset(tok.End)
			if start < at || end < start || end > len(src) || end == start && tok.Kind != token.EOF {
				t.Fatalf("%v %q at %d to %d, behind %d of %d bytes", tok.Kind, tok.Text, start, end, at, len(src))
			}
			for _, c := range s.Comments[comments:] {
				if from := file.Offset(c.Pos); from < at || file.Offset(c.End) > start {
					t.Fatalf("comment %q at %d is not between the tokens that end at %d and start at %d", c.Text, from, at, start)
				}
				nothing(t, src[at:file.Offset(c.Pos)])
				at = file.Offset(c.End)
			}
			comments = len(s.Comments)
			nothing(t, src[at:start])
			if at = end; tok.Kind == token.EOF {
				break
			}
		}
		if at != len(src) {
			t.Fatalf("the end of the file is at %d of %d bytes", at, len(src))
		}
		expand(t, src)
	})
}

// nothing checks that text between tokens has no token in it.
func nothing(t *testing.T, between []byte) {
	t.Helper()
	if rest := strings.Trim(string(between), " \t\r\n\\"); rest != "" {
		t.Fatalf("no token holds %q", rest)
	}
}

// expand checks that a text's tokens after macro expansion end, and stay within their
// limit.
func expand(t *testing.T, src []byte) {
	t.Helper()
	files := token.NewFileSet()
	list := diag.List{Files: files}
	s := scanner.NewStream(files, files.AddFile("in", src), &list)
	for n := 0; ; n++ {
		switch tok := s.Next(); {
		case tok.Kind == token.EOF:
			return
		case tok.Kind == token.Macro:
			t.Fatal("the stream gives a macro")
		case n > len(src)+scanner.MaxExpansion:
			t.Fatal("the stream does not end")
		}
	}
}
