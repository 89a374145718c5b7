package test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/lab"
	"weir/test/lib"
)

// openRules translate what leaves, let one port in, and say whether pfctl may open the box.
const openRules = `
set skip on lo
set pfctl-may-open %s
table <known> { 192.0.2.1 }
match out on wan0 inet from 192.168.1.0/24 nat-to (wan0)
block return
block in quick from <known>
pass in on lan0 inet proto tcp to port 2201
pass out on wan0
`

// whoAsks returns what wan's port 8001 says of who asks there, or "" if it is not reached.
func whoAsks(b *lib.Box) string {
	out, err := b.Try(lab.LAN, "socat", "-T", "2", "-u", "TCP4:"+wanHost+":8001,connect-timeout=2", "-")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// startOpen starts weir with openRules, a connection, and a server that the rules block.
func startOpen(b *lib.Box) (daemon *lib.Process, rules string, talk *talk) {
	b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
	b.Listen(lab.WAN, 8001, "socat", "TCP4-LISTEN:8001,fork,reuseaddr", "SYSTEM:echo $SOCAT_PEERADDR")
	rules = b.Rules(fmt.Sprintf(openRules, "yes"))
	daemon = b.WeirRun(rules)
	talk = startTalk(b, "talk", lab.WAN, "TCP4-LISTEN:2201", lab.LAN, "TCP4:"+wanHost+":2201", 2201)
	talk.say(0, "before")
	return daemon, rules, talk
}

// pfctlSays runs weir pfctl and checks what it says and its exit status.
func pfctlSays(b *lib.Box, want string, status int, args ...string) {
	b.Helper()
	if said, got := b.WeirStatus(append([]string{"pfctl"}, args...)...); got != status || !strings.Contains(said, want) {
		b.Errorf("pfctl %s: status %d, want %d and %q; it says:\n%s", strings.Join(args, " "), got, status, want, said)
	}
}

// asksAs checks as whom lan reaches a port that the rules block. "": not at all.
func asksAs(b *lib.Box, want, when string) {
	b.Helper()
	if got := whoAsks(b); got != want {
		b.Errorf("%s wan is asked by %q, want %q", when, got, want)
	}
}

//	lan ─── an idle connection, new ones ───▶ fw, NAT ─▶ wan      fw: pfctl -d, -e
//
// With set pfctl-may-open yes, pfctl -d disables weir: everything passes untranslated. With
// -e, with a load, and with a start the rules are in force again, and connections go on.
func TestPfctlDisables(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		daemon, rules, talk := startOpen(b)
		asksAs(b, "", "at first")
		pfctlSays(b, "pfctl: pf already enabled", 1, "-e")
		pfctlSays(b, "pf enabled\nToken : ", 0, "-E")
		pfctlSays(b, "pf stays enabled", 0, "-X", "1")
		pfctlSays(b, "pf disabled", 0, "-d")
		asksAs(b, lanHost, "after -d")
		pfctlSays(b, "pf not enabled", 1, "-d")
		pfctlSays(b, "pf not enabled", 1, "-X", "1")
		pfctlSays(b, "Status: Disabled for 0 days", 0, "-s", "info")
		pfctlSays(b, "Disabled", 1, "-s", "Running")
		pfctlSays(b, "pass in on lan0", 0, "-s", "rules")
		if said, status := b.WeirStatus("info"); status != 1 || !strings.Contains(said, "Everything passes, and nothing is translated") {
			b.Errorf("weir info: status %d, it says:\n%s", status, said)
		}
		for name, n := range b.Hooks() {
			if n.Hook != "none" || !strings.Contains(n.Why, "pfctl -e") {
				b.Errorf("%s has the hook %s (%s)", name, n.Hook, n.Why)
			}
		}
		if n := len(b.States("port", "2201")); n != 1 {
			b.Errorf("%d states of the connection while pf is disabled", n)
		}
		b.Run(lab.FW, "ip", "link", "add", "later0", "type", "veth", "peer", "name", "later1") // and a new interface gets no programs
		pfctlSays(b, "pf enabled", 0, "-e")
		asksAs(b, "", "after -e")
		talk.say(0, "after -e")
		talk.say(1, "so am I")
		b.Until(lib.StartPatience, "the new interface has programs", func() bool { return b.Hooks()["later0"].Hook != "none" })

		b.Weir("pfctl", "-d")
		asksAs(b, lanHost, "after -d again")
		pfctlSays(b, "Token : ", 0, "-a", "own", "-E", "-f", b.Rules("pass in quick on nothing0\n"))
		asksAs(b, "", "after -E with the rules of an anchor")
		b.Weir("pfctl", "-d")
		asksAs(b, lanHost, "after -d, once more")
		if said, status := b.WeirStatus("load", b.Rules("nonsense\n")); status != 1 {
			b.Errorf("a wrong file loads: %s", said)
		}
		asksAs(b, lanHost, "after a load that failed")
		b.Weir("load", rules)
		asksAs(b, "", "after a load")
		talk.say(0, "after the load")

		b.Weir("load", "--confirm", "1h", rules)
		b.Weir("pfctl", "-d")
		if said, _ := b.WeirStatus("info"); !strings.Contains(said, "Status: Disabled") || !strings.Contains(said, "Rollback: ") {
			b.Errorf("-d has confirmed a load, or is not said:\n%s", said)
		}
		daemon.Kill()
		asksAs(b, lanHost, "without the daemon")
		pfctlSays(b, "Status: Disabled for 0 days", 0, "-s", "info")
		daemon = b.WeirRun(rules)
		asksAs(b, "", "after a start")
		if !b.Info().Enabled {
			b.Errorf("pf is still disabled:\n%s", daemon.Said())
		}
		talk.say(0, "after the start")
	})
}

//	lan ─── an idle connection, new ones ───▶ fw, NAT ─▶ wan      fw: pfctl -F, load --confirm
//
// pfctl -F takes rules away. -e brings them back, and so does whatever loads a file.
func TestPfctlFlushes(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		_, rules, talk := startOpen(b)
		pfctlSays(b, "rules cleared", 0, "-F", "rules")
		asksAs(b, lanHost, "after -F rules")
		talk.say(0, "its state stays")
		if said := b.Weir("pfctl", "-s", "rules"); said != "" {
			b.Errorf("after -F rules these are left:\n%s", said)
		}
		if said := b.Weir("info"); !strings.Contains(said, "0 rules") || !strings.Contains(said, "flushed by pfctl: rules") {
			b.Errorf("weir info says:\n%s", said)
		}
		b.Weir("table", "add", "-t", "known", "192.0.2.2")
		pfctlSays(b, "pf enabled", 0, "-e")
		asksAs(b, "", "after -e")
		if said := b.Weir("table", "show", "-t", "known"); !strings.Contains(said, "192.0.2.2") {
			b.Errorf("the table has lost what was added:\n%s", said)
		}

		b.Weir("load", "--confirm", "2s", b.Rules(blocked))
		pfctlSays(b, "weir stop", 1, "-F", "all") // these rules do not allow it
		b.Until(lib.StartPatience, "the rules before are back", func() bool { return inForce(b) == rules })
		b.Weir("load", "--confirm", "3s", b.Rules(fmt.Sprintf(openRules, "yes")))
		pfctlSays(b, "pf disabled", 0, "-d")
		pfctlSays(b, "rules cleared", 0, "-F", "rules")
		asksAs(b, lanHost, "while a load waits")
		b.Until(lib.StartPatience, "the rules before are back, and enabled", func() bool {
			said, status := b.WeirStatus("info")
			return status == 0 && strings.Contains(said, "Ruleset: "+rules)
		})
		asksAs(b, "", "after the rollback")
		talk.say(0, "still there")

		b.Weir("pfctl", "-F", "nat", "-q") // FreeBSD's lists; these rules have none
		asksAs(b, "", "after -F nat")
		b.Weir("pfctl", "-q", "-F", "Reset")
		asksAs(b, "", "after -F Reset")
		pfctlSays(b, "states cleared", 0, "-F", "all")
		asksAs(b, lanHost, "after -F all")
		if tables := b.Weir("table", "list"); tables != "" {
			b.Errorf("after -F all these tables are left:\n%s", tables)
		}
		if n := len(b.States("port", "2201")); n != 0 {
			b.Errorf("after -F all the connection has %d states", n)
		}
		b.Weir("load", b.Rules(fmt.Sprintf(openRules, "no")))
		asksAs(b, "", "after a load")
		for _, args := range [][]string{{"-d"}, {"-F", "all"}, {"-F", "rules"}, {"-F", "nat"}, {"-F", "Reset"}, {"-F", "ethernet"}} {
			pfctlSays(b, "weir stop", 1, args...)
		}
	})
}
