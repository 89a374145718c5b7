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

// scan returns the tokens of a text as "kind text", and the reported faults.
func scan(src string) (tokens []string, faults string) {
	files := token.NewFileSet()
	file := files.AddFile("in", []byte(src))
	list := diag.List{Files: files}
	s := scanner.New(file, list.Errorf)
	for t := s.Next(); t.Kind != token.EOF; t = s.Next() {
		tokens = append(tokens, strings.TrimSpace(t.Kind.String()+" "+t.Text))
	}
	var b strings.Builder
	for _, d := range list.Items {
		fmt.Fprintln(&b, d.Message)
	}
	return tokens, b.String()
}

func TestScanner(t *testing.T) {
	for _, test := range []struct {
		src    string
		tokens string // separated by |
		faults string
	}{
		{"pass in", "word pass|word in", ""},
		{"10/8 10.0.0.1/32", "number 10|/ /|number 8|word 10.0.0.1|/ /|number 32", ""},
		{"80:* fe80::1%em0 ::1 :network", "word 80:*|word fe80::1%em0|word ::1|word :network", ""},
		{"!=!= <=<>< >< -> - = ! < >", "!= !=|!= !=|<= <=|<> <>|< <|>< ><|-> ->|- -|= =|! !|< <|> >", ""},
		{"a{b}c(d),e", "word a|{ {|word b|} }|word c|( (|word d|) )|, ,|word e", ""},
		{"a#b\nc", "word a|end of line|word c", ""},
		{"a # b \\\nc\nd", "word a|end of line|word d", ""},
		{"a \\\n b", "word a|word b", ""},
		{"a \\\r\n b\r\nc", "word a|word b|end of line|word c", ""},
		{"em\\\n0", "word em0", ""},
		{"a\\\n", "word a", ""},
		{"$a $b_1:0", "macro a|macro b_1|word :0", ""},
		{"a$b", "word a$b", ""},
		{`"a b" 'c "d"' "e\"f" "g\h" "i\ j"`, `string a b|string c "d"|string e"f|string g\h|string i j`, ""},
		{"\"a\nb\\\nc\" d", "string abc|word d", ""},
		{"\"\" x", "string|word x", ""},
		{"\"a", "error", "string is not closed: it runs to the end of the file\n"},
		{"\ufeffa\nb", "word a|end of line|word b", ""},
		{"\"a\x00b\" c\nd", "error|end of line|word d", "NUL byte in a string\n"},
		{"\"a\xffb\" c", "error|word c", "the byte \"\\xff\" in a string is not UTF-8\n"},
		{"\"a\x1b[2Jb\" c", "error|word c", "the control character \"\\x1b\" in a string would reach terminals\n"},
		{"\"a\u009bb\"", "error", "the control character \"\\xc2\" in a string would reach terminals\n"},
		{"\"a\tb\"", "string a\tb", ""},
		{"'\xc3\n\xa9'", "error", "the byte \"\\xc3\" in a string is not UTF-8\n"},
		{"\"\u00e9\ufffd\" # \xff", "string \u00e9\ufffd", ""},
		{"a \\ b", "word a|word b", ""},
		{"p\\ass \\in \\{80\\}\\", "word pass|word in|{ {|number 80|} }", ""},
		{"\\# a \\b\n\\\"c\\d\"", "end of line|string c\\d", ""},
		{"# a\\\\\nb # c\\\\\\\nd\ne", "end of line|word b|end of line|word e", ""},
		{"a \\\\ b", "word a|error|word b", "unexpected backslash\n"},
		{"a\x00b", "word a|error|word b", "unexpected character \"\\x00\"\n"},
		{"\u00e9t\u00e9", "error|word t|error", "unexpected character \"\u00e9\"\nunexpected character \"\u00e9\"\n"},
		{"50% ^ [x]", "word 50%|character ^|character [|word x]", ""},
		{"; x { \npass;x", "end of line|word pass;x", ""},
		{"007 99999999999999999999 5x", "number 007|number 99999999999999999999|word 5x", ""},
	} {
		tokens, faults := scan(test.src)
		if diff := cmp.Diff(test.tokens, strings.Join(tokens, "|")); diff != "" {
			t.Errorf("%q: tokens (-want +got):\n%s", test.src, diff)
		}
		if diff := cmp.Diff(test.faults, faults); diff != "" {
			t.Errorf("%q: faults (-want +got):\n%s", test.src, diff)
		}
	}
}

// TestComments checks that comments are kept, with their places.
func TestComments(t *testing.T) {
	files := token.NewFileSet()
	file := files.AddFile("in", []byte("# one\npass # two \\\n goes on  \nblock\n"))
	s := scanner.New(file, nil)
	for s.Next().Kind != token.EOF {
	}
	var got []string
	for _, c := range s.Comments {
		got = append(got, fmt.Sprintf("%v %q", files.Position(c.Pos), c.Text))
	}
	want := []string{`in:1:1 "# one"`, `in:2:6 "# two \\\n goes on"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
