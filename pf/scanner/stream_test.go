package scanner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/pf/diag"
	"weir/pf/scanner"
	"weir/pf/token"
)

// stream reads a text in which each line "name = values" defines a macro. It returns the
// tokens of the other lines, with the text at their use and at their definition.
func stream(t *testing.T, src string) []string {
	t.Helper()
	files := token.NewFileSet()
	list := &diag.List{Files: files}
	s := scanner.NewStream(files, files.AddFile("in", []byte(src)), list)
	var got []string
	for line := next(s); line != nil; line = next(s) {
		if len(line) > 2 && line[1].Kind == token.Equal {
			s.Define(line[0].Text, line[2:])
			continue
		}
		for _, tok := range line {
			got = append(got, fmt.Sprintf("%s %q use %q text %q", tok.Kind, tok.Text, files.Text(files.Use(tok.Span)), files.Text(files.Spelling(tok.Span))))
		}
	}
	if err := list.Err(); err != nil {
		got = append(got, err.Error())
	}
	return got
}

// next returns the tokens of a line, or nil at the end.
func next(s *scanner.Stream) []token.Token {
	line := []token.Token{}
	for {
		switch t := s.Next(); t.Kind {
		case token.Newline:
			return line
		case token.EOF:
			if len(line) == 0 {
				return nil
			}
			return line
		default:
			line = append(line, t)
		}
	}
}

// TestStream checks that a token from a macro knows where the macro was used and where
// the token's text is.
func TestStream(t *testing.T) {
	for _, test := range []struct {
		name, src string
		want      []string
	}{
		{"word", "a = em0\non $a", []string{`word "on" use "on" text "on"`, `word "em0" use "$a" text "em0"`}},
		{"string", "a = \"x y\"\n$a", []string{`word "x" use "$a" text "x"`, `word "y" use "$a" text "y"`}},
		{"string with dropped bytes", "a = \"x\\\n  \\\"y z\\\" 80\"\n$a", []string{
			`word "x" use "$a" text "x"`, `string "y z" use "$a" text "\"y z\\\""`, `number "80" use "$a" text "80"`,
		}},
		{"macro in a macro", "a = \"x y\"\nb = $a 5\n$b", []string{
			`word "x" use "$b" text "x"`, `word "y" use "$b" text "y"`, `number "5" use "$b" text "5"`,
		}},
		{"text behind", "a = em0\n($a:network)", []string{
			`( "(" use "(" text "("`, `word "em0:network" use "$a:network" text "$a:network"`, `) ")" use ")" text ")"`,
		}},
		{"number behind", "a = 8\n$a.1/$a $a$a", []string{
			`word "8.1" use "$a.1" text "$a.1"`, `/ "/" use "/" text "/"`,
			`number "8" use "$a" text "8"`, `number "8" use "$a" text "8"`, `number "8" use "$a" text "8"`,
		}},
		{"sign at the end", "a = \"{ x }\"\n${", []string{`character "$" use "$" text "$"`, `{ "{" use "{" text "{"`}},
		{"later definition", "a = x\n$a\na = y\n$a", []string{`word "x" use "$a" text "x"`, `word "y" use "$a" text "y"`}},
		{"empty", "a = \"\"\nx $a y", []string{`word "x" use "x" text "x"`, `word "y" use "y" text "y"`}},
		{"recursion", "a = \"$b\"\nb = \"x $a\"\n$a", []string{
			`error "" use "$a" text "$b"`,
			"in:3:1: the value of the macro contains itself, by $b\n    3 | $a\n      | ^^\n    1 | a = \"$b\"\n      |      ~~ in this macro",
		}},
		{"undefined", "abc = x\n$abd", []string{
			`error "" use "$abd" text "$abd"`,
			"in:2:1: macro \"abd\" is not defined; did you mean \"abc\"?\n    2 | $abd\n      | ^^^^",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, stream(t, test.src)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestStreamIsBounded checks that macros of macros cannot fill the memory.
func TestStreamIsBounded(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "m0 = %s\n", strings.Repeat("x", 1000))
	for i := range 60 {
		fmt.Fprintf(&b, "m%d = $m%d $m%d\n", i+1, i, i)
	}
	files := token.NewFileSet()
	list := &diag.List{Files: files}
	s := scanner.NewStream(files, files.AddFile("in", []byte(b.String())), list)
	for line := next(s); line != nil; line = next(s) {
		if len(line) > 2 && line[1].Kind == token.Equal && line[len(line)-1].Kind != token.Bad {
			s.Define(line[0].Text, line[2:])
		}
	}
	if err := list.Err(); err == nil || !strings.Contains(err.Error(), "macros come to more than 16 MiB") {
		t.Errorf("err = %v", err)
	}
}
