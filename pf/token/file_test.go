package token_test

import (
	"testing"

	"weir/pf/token"
)

func TestPosition(t *testing.T) {
	files := token.NewFileSet()
	first := files.AddFile("a", []byte("one\ntwo\n"))
	second := files.AddFile("b", []byte("x"))
	for _, test := range []struct {
		pos  token.Pos
		want string
	}{
		{first.Pos(0), "a:1:1"},
		{first.Pos(3), "a:1:4"},
		{first.Pos(4), "a:2:1"},
		{first.Pos(8), "a:3:1"}, // end of the file
		{second.Pos(0), "b:1:1"},
		{second.Pos(1), "b:1:2"},
		{token.NoPos, "-"},
		{second.Pos(2), "-"}, // after all files
	} {
		if got := files.Position(test.pos).String(); got != test.want {
			t.Errorf("position %d: %s, want %s", test.pos, got, test.want)
		}
	}
	if got := files.File(second.Pos(1)); got != second {
		t.Errorf("file of b's end: %v", got)
	}
}

func TestLine(t *testing.T) {
	f := token.NewFileSet().AddFile("a", []byte("one\r\n\ntwo"))
	for n, want := range map[int]string{0: "", 1: "one", 2: "", 3: "two", 4: ""} {
		if got := string(f.Line(n)); got != want {
			t.Errorf("line %d: %q, want %q", n, got, want)
		}
	}
}

// TestExpand follows a position through a macro whose text is in two places, one of them
// the use of another macro.
func TestExpand(t *testing.T) {
	files := token.NewFileSet()
	//                                     0         1         2
	//                                     0123456789012345678901234567
	file := files.AddFile("a", []byte("in=\"abc\"\nout=xy $in\nuse $out"))
	span := func(from, to int) token.Span { return token.Span{Pos: file.Pos(from), End: file.Pos(to)} }

	inner := files.Expand(span(16, 19), []token.Origin{{At: 0, Pos: file.Pos(4)}}, 3)
	outer := files.Expand(span(24, 28), []token.Origin{{At: 0, Pos: file.Pos(13)}, {At: 3, Pos: inner}}, 6) // "xy abc"

	for _, test := range []struct {
		name       string
		span       token.Span
		use, spell string
	}{
		{"a file's own text", span(20, 23), "use", "use"},
		{"text of the macro", token.Span{Pos: outer, End: outer + 2}, "$out", "xy"},
		{"text of the macro's macro", token.Span{Pos: outer + 3, End: outer + 6}, "$out", "abc"},
		{"a part of it", token.Span{Pos: outer + 4, End: outer + 5}, "$out", "b"},
		{"the macro's macro where it is defined", token.Span{Pos: inner, End: inner + 3}, "$in", "abc"},
		{"from a file's text into a macro's", token.Span{Pos: file.Pos(20), End: outer + 2}, "use $out", ""},
	} {
		if got := files.Text(files.Use(test.span)); got != test.use {
			t.Errorf("%s: use %q, want %q", test.name, got, test.use)
		}
		if test.spell == "" {
			continue
		}
		if got := files.Text(files.Spelling(test.span)); got != test.spell {
			t.Errorf("%s: spelling %q, want %q", test.name, got, test.spell)
		}
	}
	if !files.InMacro(outer) || files.InMacro(file.Pos(20)) {
		t.Error("InMacro confuses files and macros")
	}
}

func TestSpan(t *testing.T) {
	a, b := token.Span{Pos: 1, End: 4}, token.Span{Pos: 6, End: 8}
	if got := a.To(b); got != (token.Span{Pos: 1, End: 8}) {
		t.Errorf("To: %v", got)
	}
	if got := a.To(token.Span{}); got != a {
		t.Errorf("To nothing: %v", got)
	}
	if got := (token.Span{}).To(b); got != b {
		t.Errorf("nothing To: %v", got)
	}
	if a.Overlaps(b) || !a.Overlaps(token.Span{Pos: 3, End: 6}) {
		t.Error("Overlaps is wrong")
	}
}
