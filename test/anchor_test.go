package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// anchoredRules leave it to anchors what the LAN may do.
const anchoredRules = `block
pass out on wan0 nat-to (wan0)
anchor "guests/*"
anchor "admin" in on lan0 {
	pass proto icmp
}
pass in on lan0 proto udp to port 7
`

// loadAnchor loads rules into an anchor from standard input, as a program does.
func loadAnchor(b *lib.Box, path, rules string) {
	b.Helper()
	b.Weir("anchor", "load", path, b.Rules(rules))
}

// web reports whether the LAN reaches a port beyond the box.
func web(b *lib.Box, port int) bool {
	b.Helper()
	_, err := b.Try(lab.LAN, "curl", "-s", "-m", "2", fmt.Sprintf("http://%s:%d/", wanHost, port))
	return err == nil
}

//	lan ─── fw ─── wan          weir anchor load guests/one, guests/two; flush
//
// What is loaded into an anchor counts at once. Other anchors and the rule file do not
// change, and a connection that a rule made goes on without the rule.
func TestAnchorAtRunTime(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.ServeHello(lab.WAN, 80)
		b.ServeHello(lab.WAN, 81)
		b.WeirRun(anchoredRules)
		before := b.Weir("rules")
		if web(b, 80) {
			b.Error("port 80 is open before anything is loaded")
		}
		loadAnchor(b, "guests/one", "web = \"80\"\ntable <here> { 192.168.1.0/24 }\npass in on lan0 inet proto tcp from <here> to port $web\n")
		if !web(b, 80) || web(b, 81) {
			b.Error("guests/one does not open port 80 alone")
		}
		loadAnchor(b, "guests/two", "pass in on lan0 inet proto tcp to port 81\n")
		if !web(b, 80) || !web(b, 81) {
			b.Error("guests/two does not open port 81, or takes port 80 away")
		}
		flow := b.Flood(lab.LAN, wanHost)
		loadAnchor(b, "admin", "block in on lan0 inet proto icmp\n")
		if out, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", wanHost); err == nil {
			b.Errorf("admin blocks ping, but:\n%s", out)
		}
		time.Sleep(300 * time.Millisecond)
		flow.AllAnswered(20)

		const listed = "admin                           1 rule, loaded at run time\n" +
			"guests/one                      1 rule, loaded at run time\n" +
			"guests/two                      1 rule, loaded at run time\n"
		if got := b.Weir("anchor", "list", "-v"); got != listed {
			b.Errorf("weir anchor list -v:\n%s", got)
		}
		if got := b.Weir("anchor", "show", "guests/two"); got != "pass in on lan0 inet proto tcp from any to any port = 81 flags S/SA\n" {
			b.Errorf("weir anchor show guests/two:\n%s", got)
		}
		printed := b.Weir("rules")
		for _, part := range []string{"anchor \"guests/*\" all\n", "load anchor \"guests/one\" {\n  pass in on lan0 inet proto tcp from <here> to any port = 80 flags S/SA\n}\n"} {
			if !strings.Contains(printed, part) {
				b.Errorf("weir rules lacks %q:\n%s", part, printed)
			}
		}
		b.Weir("anchor", "flush", "guests/*")
		b.Weir("anchor", "flush", "admin")
		if web(b, 80) || web(b, 81) {
			b.Error("ports are open after the flush")
		}
		b.Weir("load", b.Rules(anchoredRules))
		if got := b.Weir("rules"); got != before {
			b.Errorf("after a flush and a load the rules are\n%s", got)
		}
		b.Ping(lab.LAN, wanHost, 2)
	})
}

//	lan ─── fw ─── wan          weir load, kill -9, weir run, with rules in anchors
//
// What is loaded into an anchor outlives loads of the rule file and the daemon. A file with
// rules for the anchor resets it.
func TestAnchorsOutlive(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.ServeHello(lab.WAN, 80)
		daemon := b.WeirRun(anchoredRules)
		loadAnchor(b, "guests/one", "pass in on lan0 inet proto tcp to port 80\n")
		other := strings.Replace(anchoredRules, "port 7", "port 9", 1)
		b.Weir("load", b.Rules(other))
		if !web(b, 80) {
			b.Error("a load of the rule file has lost the anchor's rules")
		}
		daemon.Kill()
		if !web(b, 80) {
			b.Error("the anchor's rules ended with the daemon")
		}
		daemon = b.WeirRun(anchoredRules)
		if !web(b, 80) {
			b.Error("a new daemon has lost the anchor's rules")
		}
		if said, status := b.WeirStatus("load", b.Rules("table <here> const { 192.0.2.1 }\nset limit states 0\n")); status != 1 {
			b.Errorf("a wrong file: status %d:\n%s", status, said)
		}
		if said, status := b.WeirStatus("anchor", "load", "guests/one", b.Rules("pass in on lan0\nset skip on lo\n")); status != 1 || !strings.Contains(said, ":2:") {
			b.Errorf("an option in an anchor: status %d:\n%s", status, said)
		}
		if !web(b, 80) {
			b.Error("a refused load has changed something")
		}
		b.Weir("load", b.Rules(anchoredRules+"anchor \"guests\" {\n anchor \"one\" {\n pass in on lan0 inet proto tcp to port 82\n }\n}\n"))
		if web(b, 80) {
			b.Error("a file with rules for the anchor does not reset it")
		}
		daemon.Kill()
		b.WeirRun(anchoredRules)
	})
}

//	fw: eight programs load an anchor each, at once, again and again, under traffic
//
// Of writers at once none is lost, and no packet is.
func TestAnchorWriters(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "xdp")
	b.WeirRun(anchoredRules)
	b.Ping(lab.LAN, wanHost, 1)
	flood := b.Flood(lab.LAN, wanHost)
	const writers, rounds = 8, 4
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range rounds {
				loadAnchor(b, fmt.Sprintf("guests/%d", w), fmt.Sprintf("pass in on lan0 inet proto tcp to port %d\n", 1000*w+n))
			}
		})
	}
	all.Wait()
	flood.AllAnswered(50)
	printed := b.Weir("rules")
	for w := range writers {
		if want := fmt.Sprintf("load anchor \"guests/%d\" {\n  pass in on lan0 inet proto tcp from any to any port = %d flags S/SA\n}\n", w, 1000*w+rounds-1); !strings.Contains(printed, want) {
			b.Errorf("weir rules lacks\n%s", want)
		}
	}
	b.Weir("anchor", "flush", "*")
	b.Weir("load", b.Rules(printed))
	if again := b.Weir("rules"); again != printed {
		b.Errorf("loaded again, the printed rules are\n%s", again)
	}
}

//	lan ─── fw ─── wan      fw: the commands of fail2ban's action for pf
//
// A program defines a table in an anchor with one load, and rules that name it with the
// next. As in pf, the table stays, also when its rules go.
func TestFail2ban(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	b.ServeHello(lab.WAN, 80)
	b.WeirRun("block\nanchor \"f2b/*\"\npass on lan0\npass out on wan0 nat-to (wan0)\n")
	link := filepath.Join(b.TempDir(), "pfctl")
	if err := os.Symlink(string(weir), link); err != nil {
		b.Fatal(err)
	}
	pfctl := link + " -a f2b/web"
	sh := func(script string) string {
		b.Helper()
		return b.Run(lab.FW, "sh", "-c", strings.ReplaceAll(script, "PFCTL", pfctl))
	}
	sh("echo 'table <f2b-web> persist counters' | PFCTL -f-")
	sh("echo 'block quick proto tcp from <f2b-web> to any port 80' | PFCTL -f-")
	sh("PFCTL -sr | grep -q f2b-web")
	if !web(b, 80) {
		b.Error("port 80 is closed before anybody is banned")
	}
	sh("PFCTL -t f2b-web -T add " + lanHost)
	if web(b, 80) {
		b.Error("banned, but port 80 is open")
	}
	b.Weir("load", b.Rules("block\nanchor \"f2b/*\"\npass on lan0 no state\npass out on wan0 nat-to (wan0)\n"))
	if web(b, 80) {
		b.Error("after a load of the rule file nobody is banned")
	}
	if got := sh("PFCTL -t f2b-web -T show"); strings.TrimSpace(got) != lanHost {
		b.Errorf("the table holds %q", got)
	}
	sh("PFCTL -t f2b-web -T delete " + lanHost)
	if !web(b, 80) {
		b.Error("not banned any more, but port 80 is closed")
	}
	sh("PFCTL -t f2b-web -T add " + lanHost)
	sh("PFCTL -sr 2>/dev/null | grep -v f2b-web | PFCTL -f-")
	sh("PFCTL -t f2b-web -T flush")
	if !web(b, 80) {
		b.Error("the action has ended, but port 80 is closed")
	}
	sh("PFCTL -t f2b-web -T kill")
	if got := b.Weir("table", "list"); strings.Contains(got, "f2b-web") {
		b.Errorf("killed, but weir table list prints\n%s", got)
	}
	if got := b.Run(lab.FW, "sh", "-c", link+" -sA; "+link+" -a f2b -sA; true"); strings.Contains(got, "web") {
		b.Errorf("the anchor is left:\n%s", got)
	}
}

//	fw: rules in three anchors, kill -9, a rule file with which one of them does not fit
//
// The box starts without that anchor, and says where its rules are.
func TestAnchorsLeftOut(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	const main = "block\nanchor x\nanchor y\nanchor z\npass proto icmp\n"
	daemon := b.WeirRun(main)
	const large = "table <many> { 198.51.100.1 198.51.100.3 198.51.100.5 198.51.100.7 }\npass in from <many>\n"
	for _, path := range []string{"x", "z"} {
		loadAnchor(b, path, "pass in proto udp to port 7\n")
	}
	loadAnchor(b, "y", large)
	daemon.Kill()
	daemon = b.WeirRun("set limit table-entries 3\n" + main)
	for path, want := range map[string]string{"x": "pass in proto udp from any to any port = 7\n", "y": "", "z": "pass in proto udp from any to any port = 7\n"} {
		if got := b.Weir("anchor", "show", path); got != want {
			b.Errorf("anchor %s has\n%swant\n%s", path, got, want)
		}
	}
	said := daemon.Said()
	file := regexp.MustCompile(`anchor=y file=(\S+)`).FindStringSubmatch(said)
	if file == nil {
		b.Fatalf("the daemon does not name the file of the anchor's rules:\n%s", said)
	}
	if text, err := os.ReadFile(file[1]); err != nil || string(text) != large {
		b.Errorf("%s: %q, %v", file[1], text, err)
	}
	b.Weir("load", b.Rules(main))
	b.Weir("anchor", "load", "y", file[1])
	daemon.Kill()
	if said, status := b.WeirStatus("run", "-f", b.Rules("block\nanchor x\nwrong\n")); status != 1 || !strings.Contains(said, ":3:") {
		b.Errorf("a wrong file: status %d:\n%s", status, said)
	}
	b.WeirRun(main)
	if got := b.Weir("anchor", "show", "y"); !strings.Contains(got, "pass in") {
		b.Errorf("anchor y has\n%s", got)
	}
}

//	fw: anchors loaded again, in braces, during weir load --confirm; pfctl -v -f -
//
// A load counts as a new one, whatever was loaded before. A rollback loses no anchor.
func TestAnchorsAgain(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	const main = "set limit tables 3\nblock\nanchor x\nanchor y\nanchor n\npass proto icmp\n"
	b.WeirRun(main)
	shows := func(path, want string) {
		b.Helper()
		if got := b.Weir("anchor", "show", path); got != want {
			b.Errorf("anchor %s has\n%swant\n%s", path, got, want)
		}
	}
	const inside = "block drop in inet from 198.51.100.6 to any\n"
	for range 2 { // the second time it is flushed before
		loadAnchor(b, "n", "anchor \"in\" {\n"+inside+"}\n")
		shows("n/in", inside)
		b.Weir("anchor", "flush", "n/in")
		shows("n/in", "")
	}

	const listed = "table <mine> { 198.51.100.7 }\nblock in quick from <mine>\n"
	loadAnchor(b, "x", listed)
	b.Weir("table", "delete", "-a", "x", "-t", "mine", "198.51.100.7")
	loadAnchor(b, "x", listed)
	if got := strings.TrimSpace(b.Weir("table", "show", "-a", "x", "-t", "mine")); got != "198.51.100.7" {
		b.Errorf("loaded again, the table holds %q", got)
	}

	const blocks = "block drop in quick from <mine> to any\n"
	b.Weir("load", "--confirm", "6s", b.Rules("block\nanchor x { pass in proto udp }\nanchor y\npass proto icmp\n"))
	shows("x", "pass in proto udp all\n")
	loadAnchor(b, "y", "pass in proto tcp to port 9\n")
	if said, status := b.WeirStatus("anchor", "load", "y", b.Rules("table <a> {}\ntable <b> {}\ntable <c> {}\npass in from { <a> <b> <c> }\n")); status != 1 || !strings.Contains(said, "unless weir confirm comes") {
		b.Errorf("rules with which a rollback is impossible: status %d:\n%s", status, said)
	}
	b.Until(lib.StartPatience, "the load is rolled back", func() bool { return b.Weir("anchor", "show", "x") == blocks })
	shows("y", "pass in proto tcp from any to any port = 9 flags S/SA\n")

	rules := b.Rules(main)
	b.Run(lab.FW, "sh", "-c", "cat "+rules+" | "+string(weir)+" pfctl -v -f -")
	if got := b.Weir("rules"); !strings.Contains(got, "block drop all\n") {
		b.Errorf("after pfctl -v -f - the rules are\n%s", got)
	}
}

//	lan ─── fw ─── wan          pfctl -n, -v, -D with -a; weir anchor load -n, -D
//
// A program that fills an anchor may set macros from outside, and may ask first whether its
// rules would load beside those in force. Asking changes nothing.
func TestAnchorAsked(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.ServeHello(lab.WAN, 80)
		b.ServeHello(lab.WAN, 81)
		const rules = "pass in on lan0 inet proto tcp to port $web\n"
		const printed = "pass in on lan0 inet proto tcp from any to any port = 80 flags S/SA\n"
		file := b.Rules(rules)
		if got := b.Weir("pfctl", "-a", "guests/one", "-n", "-v", "-D", "web=80", "-f", file); got != printed {
			b.Errorf("-nv without a daemon prints\n%s", got)
		}
		if said, status := b.WeirStatus("pfctl", "-a", "guests/one", "-n", "-f", b.Rules("set limit states 1\n")); status != 1 || !strings.Contains(said, ":1:") {
			b.Errorf("an option in an anchor, without a daemon: status %d:\n%s", status, said)
		}
		b.WeirRun("set limit tables 1\n" + anchoredRules)
		if said, status := b.WeirStatus("anchor", "load", "-n", "guests/one", b.Rules("table <a> { 192.0.2.1 }\ntable <b> { 192.0.2.2 }\npass from { <a>, <b> }\n")); status != 1 {
			b.Errorf("rules with more tables than the rule file allows: status %d:\n%s", status, said)
		}
		if got := b.Weir("anchor", "load", "-n", "-D", "web=80", "guests/one", file); got != printed {
			b.Errorf("anchor load -n prints\n%s", got)
		}
		if web(b, 80) || b.Weir("anchor", "list") != "admin\n" {
			b.Error("a question whether rules would load has loaded them")
		}
		if got := b.Weir("pfctl", "-a", "guests/one", "-v", "-D", "web=80", "-f", file); got != printed {
			b.Errorf("-v prints\n%s", got)
		}
		if !web(b, 80) || web(b, 81) {
			b.Error("-D web=80 does not open port 80 alone")
		}
		b.Weir("load", b.Rules("# another text\n"+anchoredRules))
		if !web(b, 80) {
			b.Error("a load of the rule file has lost the macro of the anchor")
		}
		b.Weir("anchor", "load", "-D", "web=81", "guests/one", file)
		if web(b, 80) || !web(b, 81) {
			b.Error("-D web=81 does not open port 81 alone")
		}
		b.Weir("pfctl", "-a", "uncalled", "-f", b.Rules("nat on wan0 inet from 192.168.1.0/24 to any -> (wan0)\n"+printed))
		if got := b.Weir("pfctl", "-a", "uncalled", "-sr"); got != printed {
			b.Errorf("-sr of an anchor that nothing evaluates:\n%s", got)
		}
		if got := b.Weir("pfctl", "-a", "uncalled", "-sn"); !strings.HasPrefix(got, "nat on wan0 inet from 192.168.1.0/24") || strings.Contains(got, "pass") {
			b.Errorf("-sn of an anchor that nothing evaluates:\n%s", got)
		}
		const rdr = "rdr pass on wan0 inet proto tcp from any to any port = 90 -> 192.168.1.10\n"
		if said := b.Weir("pfctl", "-a", "guests/one", "-f", b.Rules(rdr+printed)); !strings.Contains(said, "these rdr rules do nothing: no rdr-anchor names their anchor") {
			b.Errorf("rdr in an anchor of filter rules: it says\n%s", said)
		}
		if got := b.Weir("anchor", "list", "-v"); !strings.Contains(got, "  2 rules, loaded at run time; some of them are never evaluated\n") {
			b.Errorf("anchor list -v of rules of which nothing evaluates some:\n%s", got)
		}
		if got := b.Weir("pfctl", "-a", "guests/one", "-sn"); got != rdr {
			b.Errorf("-sn of rules that nothing evaluates:\n%s", got)
		}
		if got := b.Weir("anchor", "show", "guests/one"); got != rdr+printed {
			b.Errorf("anchor show prints\n%s", got)
		}
		if got := b.Weir("pfctl", "-vsA"); got != "  admin\n  guests\n  guests/one\n  uncalled\n" {
			b.Errorf("-vsA prints\n%s", got)
		}
	})
}

//	lan ── curl ──▶ wan          anchor "ops" in quick { … }, then rules that block
//
// What a rule inside a quick anchor passes is not blocked by the rules behind it. Without
// quick it is. What no rule inside decides meets the rules behind it.
func TestQuickAnchor(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		rules := func(quick string) string {
			return b.Rules("pass out on wan0 nat-to (wan0)\nanchor \"ops\" in " + quick + " on lan0 {\n\tpass proto tcp to port 80\n}\n" +
				"pass in on lan0 proto tcp to port 81\nblock in on lan0 proto tcp to port { 80, 82 }\n")
		}
		for _, port := range []uint16{80, 81, 82} {
			b.ServeHello(lab.WAN, port)
		}
		open := func(when, want string) {
			b.Helper()
			got := ""
			for _, port := range []int{80, 81, 82} {
				if web(b, port) {
					got += fmt.Sprint(port, " ")
				}
			}
			if got != want {
				b.Errorf("%s the LAN reaches ports %q, not %q", when, got, want)
			}
		}
		daemon := b.WeirRun(rules("quick"))
		open("by a quick anchor", "80 81 ")
		b.Weir("load", rules(""))
		open("by an anchor without quick", "81 ")
		b.Weir("load", rules("quick"))
		loadAnchor(b, "ops", "block return in proto tcp to port 81\npass in proto tcp to port 82\n")
		open("by what a program has loaded into the quick anchor", "82 ")
		daemon.Kill()
		open("without a daemon", "82 ")
	})
}
