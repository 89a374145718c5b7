package resolve

import (
	"fmt"
	"strings"
	"testing"

	"weir/pf/parser"
	"weir/pf/source"
)

// TestBounds checks that small inputs with a large result are rejected with an error at
// the place that exceeds the limit.
func TestBounds(t *testing.T) {
	many := func(n int, item string) string { return strings.Repeat(item+" ", n) }
	for _, test := range []struct {
		name, src, want string
	}{
		{"one rule", "pass from { " + many(40, "10.0.0.1") + "} to { " + many(40, "10.0.0.2") + "}",
			"in:1:1: the configuration expands to more than 1000 rules here"},
		{"product beyond 64 bits", "pass proto { " + many(9000, "tcp") + "} from { " + many(9000, "10.0.0.1") + "} to { " +
			many(9000, "10.0.0.2") + "} port { " + many(9000, "1") + "}",
			"in:1:1: the configuration expands to more than 1000 rules here"},
		{"several rules", strings.Repeat("pass from { "+many(400, "10.0.0.1")+"}\n", 4),
			"in:3:1: the configuration expands to more than 1000 rules here"},
		{"binat-to", "pass inet from { " + many(20, "10.0.0.1") + "} to { " + many(40, "10.0.0.2") + "} binat-to 10.0.0.3",
			"in:1:1: the configuration expands to more than 1000 rules here"},
		{"lists to choose from", "pass in to { " + many(900, "10.0.0.1") + "} rdr-to { " + many(9000, "10.0.0.2") + "}",
			"in:1:8116: the lists to choose from become tables of more than 4194304 addresses here"},
		{"lists to translate to", "rdr inet from any to { " + many(900, "10.0.0.1") + "} -> { " + many(9000, "10.0.0.2") + "}",
			"in:1:8126: the lists to translate to come to more than 4194304 addresses here"},
		{"translation rules", "nat from { " + many(1100, "10.0.0.1") + "} -> 192.0.2.1",
			"in:1:1: the configuration expands to more than 1000 rules here"},
		{"anchors that ask anchors", "nat-anchor a0\n" + nestedAnchors(12),
			"in:4:2: the configuration expands to more than 1000 translation rules here, with those of the anchors it calls"},
		{"antispoof", strings.Repeat("antispoof for em1\n", 300),
			"in:251:1: the configuration expands to more than 1000 rules here"},
		{"antispoof of a list", "antispoof for { " + many(300, "em1") + "}\nantispoof for { " + many(200, "em1 tun0") + "(em1) lo0 }",
			"in:1:1: the configuration expands to more than 1000 rules here"},
		{"antispoof of lists", strings.Repeat("antispoof for { "+many(100, "em1")+"}\n", 3),
			"in:3:1: the configuration expands to more than 1000 rules here"},
		{"nested anchors", strings.Repeat("anchor {\n", 10_000), "in:65:8: anchors are nested more than 64 deep"},
		{"anchors that call anchors", calls(20), "in:38:1: the configuration expands to more than 1000 rules here, with those of the anchors it calls"},
		{"nested lists", "pass from " + strings.Repeat("{", 10_000), "in:1:75: lists are nested more than 64 deep"},
		{"parentheses", "pass keep state " + strings.Repeat("(", 10_000), `in:1:18: expected an option of the state, found "("`},
		{"macros of macros", "m0 = " + strings.Repeat("x", 1000) + "\n" + chain(30) + "pass from { $m30 }",
			"in:15:7: macros come to more than 16 MiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			host, err := ReadHost("testdata/host.json")
			if err != nil {
				t.Fatal(err)
			}
			rules, list := LoadWith("in", []byte(test.src), host, Settings{MaxRules: 1000})
			if rules != nil {
				t.Fatalf("accepted with %d rules", len(rules.Rules))
			}
			message, _, _ := strings.Cut(list.Err().Error(), "\n")
			if message != test.want {
				t.Errorf("%s, want %s", message, test.want)
			}
		})
	}
}

// TestCountedBeforeExpansion checks that nothing is expanded if a statement would have too many
// rules. Expanding a million of them would take seconds.
func TestCountedBeforeExpansion(t *testing.T) {
	host, err := ReadHost("testdata/host.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"pass from { " + strings.Repeat("10.0.0.1 ", 1001) + "}",
		"antispoof for { " + strings.Repeat("em1 ", 300) + "}",
	} {
		file, _ := parser.ParseInput(&source.Input{Name: "in", Text: []byte(statement)})
		r := newResolver(file, host, Settings{MaxRules: 1000})
		r.inScope(r.main, file.Stmts)
		if len(r.main.rules) != 0 || !r.faults.HasErrors() {
			t.Errorf("%.20s…: %d rules before the error", statement, len(r.main.rules))
		}
	}
}

// nestedAnchors defines anchors that each ask the next one twice.
func nestedAnchors(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "anchor a%d {\n\tnat-anchor \"/a%d\"\n\tnat-anchor \"/a%d\"\n}\n", i, i+1, i+1)
	}
	return b.String()
}

// calls writes anchors that each call the next one twice.
func calls(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "anchor a%d { anchor \"/a%d\"\nanchor \"/a%d\" }\n", i, i+1, i+1)
	}
	return b.String()
}

// chain defines macros that are each twice as long as the one before.
func chain(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "m%d = $m%d $m%d\n", i+1, i, i)
	}
	return b.String()
}

// TestManyErrors checks that a file with thousands of faults is rejected quickly, and
// that its errors are counted.
func TestManyErrors(t *testing.T) {
	var names strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&names, "nosuch%d ", i)
	}
	_, list := Load("in", []byte("pass proto tcp to port { "+names.String()+"}"), nil)
	if text := list.Err().Error(); !strings.HasSuffix(text, "\n8990 more errors") {
		t.Errorf("ends with %q", text[len(text)-40:])
	}
}

// More rules than weir holds are refused at the first that is too many, and as many as it
// holds are not.
func TestRulesHeld(t *testing.T) {
	src := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "pass from 10.%d.%d.%d\n", i>>16, i>>8&255, i&255)
		}
		return b.String()
	}
	if rules, list := Load("in", []byte(src(MaxHeld)), nil); rules == nil {
		t.Error(list.Err())
	}
	rules, list := Load("in", []byte(src(MaxHeld+1)), nil)
	if want := "in:65537:1: these are 65537 rules; weir has room for 65536"; rules != nil || !strings.HasPrefix(list.Err().Error(), want) {
		t.Errorf("got %v, want %s", list.Err(), want)
	}
}
