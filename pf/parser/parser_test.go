package parser_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/pf/parser"
	"weir/pf/printer"
)

// TestStatements checks that each statement has its own text, even after ones that do not
// parse, and that comments are kept.
func TestStatements(t *testing.T) {
	file, list := parser.Parse("in", []byte(`# first
x = "em0" # second
set skip on { lo0, lo1 }
pass in on $x proto tcp from any \
	to { 10.0.0.1, 10.0.0.2 } port ssh keep state # third
psas
set timeout { tcp.first 1
	udp.first 2 }
table <t> const { 10.0.0.1 } # fourth
antispoof quick for { em0 (em1) } inet label "l"
block drop out log
`))
	var got []string
	for _, s := range file.Stmts {
		got = append(got, fmt.Sprintf("%T %s", s, file.Files.Text(file.Files.Use(s.Whole()))))
	}
	want := []string{
		`*ast.Macro x = "em0"`,
		"*ast.Skip set skip on { lo0, lo1 }",
		"*ast.Rule pass in on $x proto tcp from any \\\n\tto { 10.0.0.1, 10.0.0.2 } port ssh keep state",
		"*ast.Timeout set timeout { tcp.first 1\n\tudp.first 2 }",
		"*ast.Table table <t> const { 10.0.0.1 }",
		`*ast.Antispoof antispoof quick for { em0 (em1) } inet label "l"`,
		"*ast.Rule block drop out log",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
	if list.Errors() != 1 {
		t.Errorf("%d errors, want 1: %v", list.Errors(), list.Err())
	}
	var comments []string
	for _, c := range file.Comments {
		comments = append(comments, c.Text)
	}
	if diff := cmp.Diff([]string{"# first", "# second", "# third", "# fourth"}, comments); diff != "" {
		t.Errorf("comments (-want +got):\n%s", diff)
	}
}

// TestPrintUnresolved checks the printed form of a file whose lists and names are still
// as written.
func TestPrintUnresolved(t *testing.T) {
	for src, want := range map[string]string{
		"pass": "pass all",
		"pass in quick on {em0,!em1} inet proto {tcp 17} from {10/8 !<t>} port {ssh 1:5 >9} to (em0:network) port != www flags any": "pass in quick on { em0, ! em1 } inet proto { tcp, 17 } " +
			"from { 10/8, ! <t> } port { = ssh, 1:5, > 9 } to (em0:network) port != www flags any",
		"match out from em1:0/24 nat-to {a b} port 5:9 static-port":     "match out from em1:0/24 to any nat-to { a, b } port 5:9 static-port",
		"match in rdr-to x port 80:* round-robin":                       "match in all rdr-to x port 80:* round-robin",
		"pass inet proto icmp icmp-type {8 unreach code 4} keep state":  "pass inet proto icmp all icmp-type { 8, unreach code 4 } keep state",
		"block icmp6-type 1 allow-opts label 'x y' tag a ! tagged 'b,'": `block drop all icmp6-type 1 allow-opts label "x y" tag a ! tagged "b,"`,
		"antispoof quick for {em0 (em1)} inet6 label l":                 `antispoof quick for { em0, (em1) } inet6 label "l"`,
		"table <t> persist {a !b}":                                      "table <t> persist { a !b }",
		"pass on 'in' tag \"\\\"'\"":                                    `pass on "in" all tag "\"'"`,
		"x = 'a\"b'":                                                    `x = 'a"b'`,
		"set skip on lo0":                                               "set skip on { lo0 }",
		"set implicit-pass no":                                          "set implicit-pass no",
	} {
		file, list := parser.Parse("in", []byte(src))
		if err := list.Err(); err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		var b strings.Builder
		if err := printer.Fprint(&b, file); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want+"\n", b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", src, diff)
		}
	}
}

// A file for another firewall is named as such, and a file for pf with an error is not.
func TestForeignFiles(t *testing.T) {
	for text, want := range map[string]string{
		"#!/usr/sbin/nft -f\nflush ruleset\n":                          "nftables",
		"table inet filter {\n  chain input {\n":                       "nftables",
		"add rule ip filter input tcp dport 22 accept\n":               "nftables",
		"*filter\n:INPUT DROP [0:0]\n-A INPUT -i lo -j ACCEPT\n":       "iptables",
		"iptables -A INPUT -p tcp --dport 22 -j ACCEPT\n":              "iptables",
		"sudo /usr/sbin/nft -e add rule inet filter input accept\n":    "nftables",
		"ipfw -q add 100 allow ip from any to any\n":                   "ipfw",
		"add 100 deny tcp from any to me 23\n":                         "ipfw",
		"table <t> { 10.0.0.0/8 }\npass in on eth0 prototype tcp\n":    "",
		"pass in on eth0 # iptables had no such thing\npass nothing\n": "",
	} {
		_, list := parser.Parse("in", []byte(text))
		named := ""
		for _, d := range list.Items {
			if whose, ok := strings.CutPrefix(d.Message, "this is a file for "); ok {
				named, _, _ = strings.Cut(whose, ";")
			}
		}
		if named != want || !list.HasErrors() {
			t.Errorf("%q: taken for %q, want %q", text, named, want)
		}
	}
}
