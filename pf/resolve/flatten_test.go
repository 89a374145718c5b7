package resolve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/pf/ast"
	"weir/pf/resolve"
)

// TestFlatten checks the order of anchors' rules, their tables, and that a rule has the
// conditions of the anchors around it.
func TestFlatten(t *testing.T) {
	for _, test := range []struct {
		name, src string
		want      []string
	}{
		{"nested", `
pass
anchor a {
	block
	anchor b {
		pass in
	}
}
match`, []string{"0", "1 a to 5", "2", "3 a/b to 5", "4 in", "5"}},
		{"called twice", "anchor a { pass in }\nanchor a\nanchor \"/a\"",
			[]string{"0 a to 2", "1 in", "2 a to 4", "3 in", "4 a to 6", "5 in"}},
		{"called from above and below", "anchor a { anchor \"../b\" }\nanchor b { block }",
			[]string{"0 a to 3", "1 b to 3", "2", "3 b to 5", "4"}},
		{"all in one, by name", "anchor h { anchor z { pass in }\n anchor m { pass out }\n block }\nanchor \"h/*\"",
			[]string{"0 h to 6", "1 h/z to 3", "2 in", "3 h/m to 5", "4 out", "5", "6 h/* to 9", "7 out", "8 in"}},
		{"none there", "anchor x\nanchor \"x/*\"", []string{"0 x to 1", "1 x/* to 2"}},
		{"asked by all", "anchor in on em0 inet proto tcp from 10/8 to any port 22 tagged x {\n block\n anchor from 10.1/16 { pass } }",
			[]string{
				"0 _0 to 4 in on em0 inet proto 6 from 10.0.0.0/8 to 22 tagged x", "1 in on em0 inet proto 6 from 10.0.0.0/8 to 22 tagged x",
				"2 _0/_1 to 4 in on em0 inet proto 6 from 10.1.0.0/16 to 22 tagged x", "3 in on em0 inet proto 6 from 10.1.0.0/16 to 22 tagged x",
			}},
		{"never", "anchor in on em0 from 10/8 {\n pass out\n anchor on em1 { pass }\n pass on ! em1\n pass from 11/8\n anchor { block }\n pass from ! 10/8 }",
			[]string{
				"0 _0 to 4 in on em0 inet from 10.0.0.0/8", "1 in on em0 inet from 10.0.0.0/8",
				"2 _0/_2 to 4 in on em0 inet from 10.0.0.0/8", "3 in on em0 inet from 10.0.0.0/8",
			}},
		{"tables", "table <t> { 10.0.0.1 }\nanchor a {\n table <t> { 10.0.0.2 }\n table <u> { 10.0.0.3 }\n block from <t> to <u>\n anchor b { block from <t> to <u> } }\npass from <t>",
			[]string{"0 a to 4", "1 from t@a to u@a", "2 a/b to 4", "3 from t to u", "4 from t"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for i, r := range load(t, test.src).Rules {
				var w strings.Builder
				fmt.Fprint(&w, r.Nr)
				if r.Nr != i {
					t.Errorf("rule %d has the number %d", i, r.Nr)
				}
				if r.Anchor != nil {
					fmt.Fprintf(&w, " %s to %d", r.Anchor.Path, r.Anchor.End)
				}
				asks(&w, r)
				got = append(got, w.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// asks writes the conditions of a rule.
func asks(w *strings.Builder, r *resolve.Rule) {
	fmt.Fprint(w, [...]string{"", " in", " out"}[r.Direction])
	if !r.Interface.Any {
		fmt.Fprintf(w, " on %s", r.Interface.Name)
	}
	fmt.Fprint(w, map[ast.Family]string{ast.Inet: " inet", ast.Inet6: " inet6"}[r.Family])
	if r.Proto != 0 {
		fmt.Fprintf(w, " proto %d", r.Proto)
	}
	endpoint(w, "from", &r.From)
	endpoint(w, "to", &r.To)
	if r.Tagged != "" {
		fmt.Fprintf(w, " tagged %s", r.Tagged)
	}
}

func endpoint(w *strings.Builder, word string, e *resolve.Endpoint) {
	switch {
	case e.Addr.Kind == resolve.TableAddress:
		fmt.Fprintf(w, " %s %s", word, e.Addr.Table)
	case e.Addr.Kind == resolve.PrefixAddress:
		fmt.Fprintf(w, " %s %v", word, e.Addr.Prefix)
	case e.Port.Op != ast.AnyPort:
		fmt.Fprintf(w, " %s %d", word, e.Port.Low)
	}
}

// TestNotFlat checks that exactly those anchors are not flat whose conditions do not fit
// their rules.
func TestNotFlat(t *testing.T) {
	for src, want := range map[string]bool{
		"anchor in on em0 from 10/8 { pass out from 11/8 }":                                 false,
		"anchor on egress { pass on em0 }":                                                  true,
		"anchor on egress { pass on egress }":                                               false,
		"anchor x on egress":                                                                false,
		"anchor on egress { }":                                                              false,
		"anchor on ! em0 { pass on ! em1 }":                                                 true,
		"anchor on ! em0 { pass on em1 }":                                                   false,
		"anchor quick { pass }":                                                             false,
		"anchor quick { pass quick }":                                                       false,
		"anchor quick { match in tag x }":                                                   false,
		"anchor from <t> { pass from <u> }":                                                 true,
		"anchor from <t> { pass }":                                                          false,
		"anchor from 10/8 { match out nat-to 192.0.2.1\n pass }":                            true,
		"anchor from 10/8 { pass out nat-to 192.0.2.1\n pass }":                             false,
		"anchor out { match out nat-to 192.0.2.1\n pass }":                                  false,
		"anchor tagged x { pass tag y\n pass }":                                             true,
		"anchor tagged x tag y { pass }":                                                    true,
		"anchor tagged x { pass tagged y }":                                                 true,
		"anchor tag y { pass }":                                                             false,
		"anchor proto tcp flags S/SA { pass }":                                              true,
		"anchor inet proto icmp icmp-type 8 { pass }":                                       true,
		"anchor proto tcp to port 1:9 { pass proto tcp to port 4:5 }":                       true,
		"anchor proto tcp to port 1:9 { pass proto tcp to port 5 }":                         false,
		"anchor proto tcp to port { 1 2 } { pass proto tcp to port 2 }":                     false,
		"anchor proto tcp to port 1:9 { pass in rdr-to 10.0.0.1 port 5:7 }":                 true,
		"anchor proto tcp to port 1:9 { pass in rdr-to 10.0.0.1 port 5 }":                   false,
		"anchor from 10/8 { pass from ! 10.1/16 }":                                          true,
		"anchor from 10.1/16 { pass from ! 10/8\n pass from ! 11/8\n pass from 10.1.1/24 }": false,
	} {
		rules, list := resolve.Load("in", []byte("table <t> { }\ntable <u> { }\n"+src), testHost(t))
		if list.Enforce(); rules == nil || list.HasErrors() {
			t.Fatalf("%s: %v", src, list.Err())
		}
		got := slices.ContainsFunc(rules.Rules, func(r *resolve.Rule) bool { return r.Anchor != nil && !r.Anchor.Flat })
		if got != want {
			t.Errorf("%s: not flat: %v, want %v", src, got, want)
		}
	}
}
