package test

import (
	"strings"
	"testing"

	"weir/internal/lab"
	"weir/test/lib"
)

// The rules of two kinds that an anchor has, as they are printed.
const (
	kindRdr  = "rdr on lan0 inet proto tcp from <there> to any port = 8080 -> 203.0.113.1 port 80\n"
	kindPass = "pass in on lan0 inet proto tcp from <there> to any port = 80 flags S/SA\n"
	kindPing = "pass in on lan0 inet proto icmp all\n"
)

// kindText is the text of the anchor, and kindMain a rule file that evaluates it.
const (
	kindText = "table <there> persist { 192.0.2.1 }\n" + kindRdr + kindPass + kindPing
	kindMain = "rdr-anchor \"ops\"\nblock\npass out on wan0 nat-to (wan0)\nanchor \"ops\"\n"
)

// kindsAre checks which rules an anchor has, in all the ways in which they are shown.
func kindsAre(b *lib.Box, nat, rules string) {
	b.Helper()
	for _, shown := range []struct{ by, want string }{{"-sn", nat}, {"-sr", rules}} {
		if got := b.Weir("pfctl", "-a", "ops", shown.by); got != shown.want {
			b.Errorf("%s prints\n%s not\n%s", shown.by, got, shown.want)
		}
	}
	if got := b.Weir("anchor", "show", "ops"); got != nat+rules {
		b.Errorf("anchor show prints\n%s", got)
	}
	b.Weir("table", "test", "-t", "there", "-a", "ops", "192.168.1.10") // what a command has added stays
}

//	lan ── curl :8080 ──▶ fw ── rdr ──▶ wan :80          pfctl -a ops -F nat, -F rules
//
// An anchor loses the rules of one kind, and keeps the others with their counters, their states
// and the anchor's tables: one that was loaded at run time, and one whose rules stand in the
// rule file. This outlives the daemon. A load of the anchor, or of a file with its rules,
// brings back what was flushed.
func TestAnchorKinds(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.ServeHello(lab.WAN, 80)
		b.Tell("loaded at run time", func(b *lib.Box) {
			kinds(b, b.Rules(kindMain), func() { b.Weir("pfctl", "-a", "ops", "-f", b.Rules(kindText)) })
		})
		b.Tell("in the rule file", func(b *lib.Box) {
			main := b.Rules(kindMain + "load anchor \"ops\" from \"" + b.Rules(kindText) + "\"\n")
			kinds(b, main, func() { b.Weir("load", main) })
		})
	})
}

func kinds(b *lib.Box, main string, load func()) {
	b.Helper()
	daemon := b.WeirRun(main)
	begin := func() {
		load()
		b.Weir("table", "add", "-t", "there", "-a", "ops", "192.168.1.10")
		kindsAre(b, kindRdr, kindPass+kindPing)
	}
	begin()
	flow := b.Flood(lab.LAN, wanHost)
	b.Ping(lab.LAN, wanHost, 2)
	if !web(b, 8080) || !web(b, 80) {
		b.Error("the anchor's rules do not redirect and pass")
	}
	counted := b.Rule(strings.TrimSpace(kindPass))

	if said := b.Weir("pfctl", "-a", "ops", "-F", "nat"); said != "nat cleared\n" {
		b.Errorf("-F nat says\n%s", said)
	}
	kindsAre(b, "", kindPass+kindPing)
	if web(b, 8080) || !web(b, 80) {
		b.Error("after -F nat the anchor still redirects, or does not pass")
	}
	if now := b.Rule(strings.TrimSpace(kindPass)); now.StateCreations != counted.StateCreations+1 {
		b.Errorf("a rule that stays has %d states made, before %d and one more", now.StateCreations, counted.StateCreations)
	}
	daemon.Kill()
	daemon = b.WeirRun(main)
	kindsAre(b, "", kindPass+kindPing)

	begin()
	if said := b.Weir("pfctl", "-a", "ops", "-F", "rules"); said != "rules cleared\n" {
		b.Errorf("-F rules says\n%s", said)
	}
	kindsAre(b, kindRdr, "")
	if web(b, 80) {
		b.Error("after -F rules the anchor still passes")
	}
	b.Weir("pfctl", "-a", "ops", "-F", "nat")
	kindsAre(b, "", "")
	flow.AllAnswered(20)
	begin()
	b.Weir("pfctl", "-a", "ops", "-F", "nat")
	b.Weir("pfctl", "-a", "ops", "-F", "all")
	if got := b.Weir("anchor", "show", "ops"); got != "" {
		b.Errorf("after -F all the anchor has\n%s", got)
	}
	load()
	daemon.Kill()
	b.Weir("stop")
}

//	fw: pfctl -sn, -sr, -sl with and without -a '*'
//
// As in pf, the main ruleset is printed with the rules that evaluate anchors, and the rules in these
// only when they are asked for. What stands in the braces of an anchor without a name is printed with it.
func TestMainRulesetShown(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		const main = `nat-anchor "mini"
rdr-anchor "mini"
nat on wan0 inet from 192.168.1.0/24 to any -> 203.0.113.2
anchor "mini"
anchor "named" in {
	pass proto udp label "inside"
}
anchor in on lan0 {
	pass proto icmp
}
pass out label "outside"
`
		b.WeirRun(main)
		b.Weir("pfctl", "-a", "mini", "-f", b.Rules("rdr pass on wan0 inet proto tcp from any to any port = 90 -> 192.168.1.10\npass in inet proto tcp from any to any port = 90\n"))
		const (
			nat   = "nat-anchor \"mini\" all\nnat on wan0 inet from 192.168.1.0/24 to any -> 203.0.113.2\nrdr-anchor \"mini\" all\n"
			rules = "anchor \"mini\" all\nanchor \"named\" in all\nanchor in on lan0 all {\n  pass proto icmp all\n}\npass out all flags S/SA label \"outside\"\n"
		)
		for by, want := range map[string]string{"-sn": nat, "-sr": rules} {
			if got := b.Weir("pfctl", by); got != want {
				b.Errorf("%s prints\n%s", by, got)
			}
		}
		for anchor, label := range map[string]string{"": "outside ", "named": "inside ", "mini": ""} {
			args := []string{"pfctl", "-sl"}
			if anchor != "" {
				args = append(args, "-a", anchor)
			}
			if got := b.Weir(args...); !strings.HasPrefix(got, label) || strings.Count(got, "\n") != len(strings.Fields(label)) {
				b.Errorf("%q prints\n%s", args, got)
			}
		}
		for by, inside := range map[string]string{"-sn": "rdr pass on wan0", "-sr": "  pass proto udp all label \"inside\"\n", "-sl": "inside "} {
			if got := b.Weir("pfctl", "-a", "*", by); !strings.Contains(got, inside) {
				b.Errorf("-a '*' %s lacks %q:\n%s", by, inside, got)
			}
		}
	})
}

//	pfctl -a ports/web -f, then -F nat        fw: rdr-anchor "ports/*"
//
// An anchor whose last rules are flushed by their kind is gone, as in pf. Programs that forward ports to
// containers flush only translation rules.
func TestAnchorWithoutRulesGoes(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	b.WeirRun(b.Rules("rdr-anchor \"ports/*\"\npass\n"))
	load := func(text string) { b.Weir("pfctl", "-a", "ports/web", "-f", b.Rules(text)) }
	are := func(when, want string) {
		b.Helper()
		if got := b.Weir("pfctl", "-vs", "Anchors"); got != want {
			b.Errorf("%s the anchors are\n%s", when, got)
		}
	}
	const both = "  ports\n  ports/web\n"
	load(kindRdrAnywhere)
	are("with a rule", both)
	b.Weir("pfctl", "-a", "ports/web", "-F", "rules")
	are("after -F rules, which it has none of,", both)
	b.Weir("pfctl", "-a", "ports/web", "-F", "nat")
	are("after -F nat", "  ports\n")
	load(kindRdrAnywhere + kindPing)
	b.Weir("pfctl", "-a", "ports/web", "-F", "nat")
	are("with a filter rule", both)
	b.Weir("pfctl", "-a", "ports/web", "-F", "rules")
	are("after both", "  ports\n")
	load("table <kept> persist\n" + kindRdrAnywhere)
	b.Weir("pfctl", "-a", "ports/web", "-F", "nat")
	are("with a table", both)
}

// kindRdrAnywhere is a rule of an anchor without tables.
const kindRdrAnywhere = "rdr on lan0 inet proto tcp from any to any port = 8080 -> 203.0.113.1 port 80\n"
