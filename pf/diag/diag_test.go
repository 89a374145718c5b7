package diag_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"weir/pf/diag"
	"weir/pf/token"
)

// source returns a list about one file, and a function that finds text in it.
func source(text string) (*diag.List, func(string) token.Span) {
	files := token.NewFileSet()
	f := files.AddFile("in", []byte(text))
	find := func(s string) token.Span {
		i := strings.Index(text, s)
		return token.Span{Pos: f.Pos(i), End: f.Pos(i + len(s))}
	}
	return &diag.List{Files: files}, find
}

func TestFprint(t *testing.T) {
	const text = "one two\n\tthree\tfour\nf\u00fcnf sechs\n"
	for _, test := range []struct {
		name string
		add  func(l *diag.List, find func(string) token.Span)
		want string
	}{
		{"a fault", func(l *diag.List, find func(string) token.Span) {
			l.Errorf(find("two"), "no %s", "good")
		}, "in:1:5: no good\n    1 | one two\n      |     ^^^\n"},
		{"tabs are kept", func(l *diag.List, find func(string) token.Span) {
			l.Errorf(find("four"), "no")
		}, "in:2:8: no\n    2 | \tthree\tfour\n      | \t     \t^^^^\n"},
		{"one mark for each character", func(l *diag.List, find func(string) token.Span) {
			l.Errorf(find("sechs"), "no")
		}, "in:3:7: no\n    3 | f\u00fcnf sechs\n      |      ^^^^^\n"},
		{"a related place on the line", func(l *diag.List, find func(string) token.Span) {
			l.Add(diag.Diagnostic{Span: find("two"), Message: "no", Related: []diag.Related{{Span: find("one")}}})
		}, "in:1:5: no\n    1 | one two\n      | ~~~ ^^^\n"},
		{"a related place elsewhere", func(l *diag.List, find func(string) token.Span) {
			l.Add(diag.Diagnostic{Span: find("sechs"), Message: "no", Related: []diag.Related{{Span: find("one"), Note: "seen here"}}})
		}, "in:3:7: no\n    3 | f\u00fcnf sechs\n      |      ^^^^^\n    1 | one two\n      | ~~~ seen here\n"},
		{"a fault at the end of the line", func(l *diag.List, find func(string) token.Span) {
			end := find("two").End
			l.Errorf(token.Span{Pos: end, End: end + 1}, "no")
		}, "in:1:8: no\n    1 | one two\n      |        ^\n"},
		{"a suggestion", func(l *diag.List, find func(string) token.Span) {
			l.Add(diag.Diagnostic{Span: find("two"), Message: "no", Suggest: "too"})
		}, "in:1:5: no; did you mean \"too\"?\n    1 | one two\n      |     ^^^\n"},
		{"errors in the order of the text, without warnings", func(l *diag.List, find func(string) token.Span) {
			l.Warnf(find("one"), "hm")
			l.Errorf(find("three"), "second")
			l.Errorf(find("two"), "first")
		}, "in:1:5: first\n    1 | one two\n      |     ^^^\nin:2:2: second\n    2 | \tthree\tfour\n      | \t^^^^^\n"},
		{"warnings without errors", func(l *diag.List, find func(string) token.Span) {
			l.Warnf(find("one"), "hm")
		}, "in:1:1: warning: hm\n    1 | one two\n      | ^^^\n"},
		{"the same only once", func(l *diag.List, find func(string) token.Span) {
			l.Errorf(find("two"), "no")
			l.Errorf(find("two"), "no")
		}, "in:1:5: no\n    1 | one two\n      |     ^^^\n"},
		{"nothing", func(*diag.List, func(string) token.Span) {}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			list, find := source(text)
			test.add(list, find)
			var b strings.Builder
			if err := list.Fprint(&b); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, b.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestIncluded checks that an error in an included file shows the include statements,
// outermost last.
func TestIncluded(t *testing.T) {
	files := token.NewFileSet()
	outer := files.AddFile("outer", []byte("\ninclude \"middle\"\n"))
	middle := files.AddFile("middle", []byte("\tinclude \"inner\" # last\n"))
	inner := files.AddFile("inner", []byte("bad"))
	middle.Included = token.Span{Pos: outer.Pos(1), End: outer.Pos(17)}
	inner.Included = token.Span{Pos: middle.Pos(1), End: middle.Pos(16)}
	list := &diag.List{Files: files}
	list.Errorf(token.Span{Pos: inner.Pos(0), End: inner.Pos(3)}, "no")
	want := `inner:1:1: no
    1 | bad
      | ^^^
      included by middle:1:2
    1 | 	include "inner" # last
      | 	~~~~~~~~~~~~~~~
      included by outer:2:1
    2 | include "middle"
      | ~~~~~~~~~~~~~~~~`
	if diff := cmp.Diff(want, list.Err().Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFull checks that errors beyond what a list keeps are still counted.
func TestFull(t *testing.T) {
	list, _ := source(strings.Repeat("x", 500))
	for i := range token.Pos(500) {
		list.Errorf(token.Span{Pos: i + 1, End: i + 2}, "no")
	}
	if !list.Full() || list.Errors() != 500 || len(list.Items) >= 500 {
		t.Errorf("full %v, %d errors, %d kept", list.Full(), list.Errors(), len(list.Items))
	}
	if text := list.Err().Error(); !strings.HasSuffix(text, "\n490 more errors") {
		t.Errorf("the rest is not counted: %s", text[len(text)-40:])
	}
}

func TestErr(t *testing.T) {
	list, find := source("one")
	list.Warnf(find("one"), "hm")
	if err := list.Err(); err != nil {
		t.Errorf("warnings are no error: %v", err)
	}
	list.Errorf(find("one"), "no")
	var failure *diag.Failure
	if !errors.As(list.Err(), &failure) || failure.List.Errors() != 1 {
		t.Errorf("err = %v", list.Err())
	}
}

func TestRecords(t *testing.T) {
	list, find := source("one two\nthree")
	list.Add(diag.Diagnostic{Span: find("two"), Message: "no", Suggest: "too", Related: []diag.Related{{Span: find("three"), Note: "here"}}})
	got, err := json.Marshal(list.Records())
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"severity":"error","message":"no","suggestion":"too","file":"in","line":1,"column":5,"end_line":1,"end_column":8,` +
		`"related":[{"note":"here","file":"in","line":2,"column":1,"end_line":2,"end_column":6}]}]`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNearest(t *testing.T) {
	words := []string{"quick", "queue", "pass", "port", "proto"}
	for word, want := range map[string]string{
		"quikc": "quick", "quick": "", "qui": "", "pas": "pass", "psas": "pass", "prot": "port", "prtoo": "proto",
		"x": "", "": "", "completely": "",
	} {
		if got := diag.Nearest(word, words); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// TestUnenforced checks that a construct that is read but not enforced gets one warning,
// and is refused at each place if it must be enforced.
func TestUnenforced(t *testing.T) {
	list := func() *diag.List {
		files := token.NewFileSet()
		base := files.AddFile("in", []byte("once prio once once\n")).Pos(0)
		l := &diag.List{Files: files}
		for _, at := range []token.Pos{10, 0, 15} {
			l.Unenforced(token.Span{Pos: base + at, End: base + at + 4}, "once")
		}
		l.Unenforced(token.Span{Pos: base + 5, End: base + 9}, "prio")
		return l
	}
	said := func(l *diag.List) (messages []string) {
		for _, r := range l.Records() {
			messages = append(messages, fmt.Sprintf("%d %s: %s", r.Column, r.Severity, r.Message))
		}
		return messages
	}
	folded := list()
	folded.Fold()
	want := []string{
		"1 warning: once is read, but this version does not enforce it (nor in 2 other places)",
		"6 warning: prio is read, but this version does not enforce it",
	}
	if diff := cmp.Diff(want, said(folded)); diff != "" {
		t.Errorf("folded (-want +got):\n%s", diff)
	}
	if folded.HasErrors() {
		t.Error("warnings refuse the file")
	}
	enforced := list()
	enforced.Enforce()
	want = []string{
		"1 error: this version does not enforce once", "6 error: this version does not enforce prio",
		"11 error: this version does not enforce once", "16 error: this version does not enforce once",
	}
	if diff := cmp.Diff(want, said(enforced)); diff != "" {
		t.Errorf("enforced (-want +got):\n%s", diff)
	}
	if !enforced.HasErrors() {
		t.Error("what is not enforced does not refuse the file")
	}
}

// The limit on printed warnings hides no construct that is not enforced.
func TestFprintUnenforced(t *testing.T) {
	text := strings.Repeat("x\n", 2*diag.MaxErrors) + "late\n"
	list, find := source(text)
	x := find("x")
	for i := range 2 * diag.MaxErrors {
		at := x.Pos + token.Pos(2*i)
		list.Unenforced(token.Span{Pos: at, End: at + 1}, fmt.Sprintf("construct%d", i))
		list.Warnf(token.Span{Pos: at, End: at + 1}, "hm")
	}
	list.Unenforced(find("late"), "the last")
	var b strings.Builder
	if err := list.Fprint(&b); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	if n := strings.Count(got, "does not enforce"); n != 2*diag.MaxErrors+1 {
		t.Errorf("%d of %d constructs are named", n, 2*diag.MaxErrors+1)
	}
	if strings.LastIndex(got, "does not enforce") > strings.Index(got, ": hm") {
		t.Error("a construct that is not enforced is named behind other warnings")
	}
	if !strings.HasSuffix(got, "10 more warnings\n") || strings.Count(got, ": hm\n") != diag.MaxErrors {
		t.Errorf("of the other warnings not the first ten are printed:\n%s", got)
	}
}

// A word as long as the file is not echoed whole.
func TestLongWord(t *testing.T) {
	list, find := source("x")
	list.Errorf(find("x"), "%q is no such thing", strings.Repeat("\u00e9", 1<<20))
	if got := list.Items[0].Message; len(got) > 700 || !strings.HasSuffix(got, "is no such thing") || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
