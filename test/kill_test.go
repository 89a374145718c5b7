package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// killRules translate what leaves, and answer what they block.
const killRules = `
set skip on lo
match out on wan0 inet nat-to (wan0)
block return
pass in on lan0 inet proto tcp to port 5201 label "bulk"
pass in on lan0 inet proto tcp to port 2201 label "talk"
pass in on lan0 inet proto icmp
pass out on wan0
`

//	lan ═══ iperf3, a talk, ping ═══▶ fw, NAT ─▶ wan      fw: weir kill, weir flush
//
// A connection whose state is killed meets the rules with its next packet, which has no
// SYN: it is blocked, and here reset. Others go on.
func TestKill(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.WeirRun(b.Rules(killRules))
		b.Listen(lab.WAN, 5201, "iperf3", "-s", "-1")
		bulk := b.Start(lab.LAN, "iperf3", "-c", wanHost, "-t", "90")
		talk := startTalk(b, "talk", lab.WAN, "TCP4-LISTEN:2201,fork", lab.LAN, "TCP4:"+wanHost+":2201", 2201)
		talk.say(0, "before")
		b.Ping(lab.LAN, wanHost, 1)
		b.Until(10*time.Second, "iperf3 sends", func() bool {
			all := b.States("port", "5201", "label", "bulk")
			return len(all) == 2 && all[0].Src.Bytes+all[1].Src.Bytes > 1<<20
		})
		first := strings.SplitN(b.Weir("states", "--sort", "bytes", "--top", "1"), "\n", 2)[0]
		if !strings.Contains(first, ":5201") {
			b.Errorf("the largest connection is %s", first)
		}
		if rates := b.Weir("states", "--sort", "rate", "--top", "1"); !strings.Contains(rates, ":5201") || strings.Contains(rates, " 0.000 Mbit/s") {
			b.Errorf("the fastest connection is %s", rates)
		}
		follow := b.WeirCommand("states", "-f", "--sort", "rate", "port", "5201")
		b.Until(15*time.Second, "states -f prints a second time", func() bool {
			return strings.Count(follow.Said(), "Mbit/s") >= 4 && strings.Contains(follow.Said(), "\n\n")
		})
		follow.Interrupt()
		follow.Wait(10*time.Second, 0)
		if got := b.Weir("kill", "-n", lanHost, wanHost, "port", "5201"); got != "2 states killed (dummy)\n" {
			b.Errorf("kill -n says %q", got)
		}
		if got := b.Weir("kill", lanHost, wanHost, "port", "5201"); got != "2 states killed\n" {
			b.Errorf("kill says %q", got)
		}
		b.Until(20*time.Second, "iperf3 ends", func() bool { return !bulk.Running() })
		if !strings.Contains(bulk.Said(), "Connection reset") && !strings.Contains(bulk.Said(), "error") {
			b.Errorf("iperf3 says:\n%s", bulk.Said())
		}
		talk.say(0, "still there")
		talk.say(1, "so am I")
		all := b.States("port", "2201")
		if len(all) != 1 || len(all[0].Labels) != 1 || all[0].Labels[0] != "talk" || len(all[0].Leaves) != 2 {
			b.Fatalf("the talk is %+v", all)
		}
		handle, err := all[0].Handle.MarshalText()
		if err != nil || !strings.Contains(b.Weir("states", "-vv", "port", "2201"), "id: "+string(handle)) {
			b.Errorf("-vv does not print the id %s", handle)
		}
		for _, none := range [][]string{
			{"host", "192.0.2.1"}, {"from", wanHost}, {"label", "other"}, {"id", "1"}, {"on", "lo", "port", "2201"}, {"proto", "udp"},
		} {
			if got := b.Weir(append([]string{"kill"}, none...)...); got != "0 states killed\n" {
				b.Errorf("kill %v says %q", none, got)
			}
		}
		if got := b.Weir("kill", "id", string(handle), "on", "wan0", "host", fwWAN); got != "1 state killed\n" {
			b.Errorf("kill by id and by the translated address says %q", got)
		}
		if !talk.silent(0, "after it was killed") {
			b.Error("the connection goes on, though its state was killed")
		}
		for what, want := range map[string]string{"rules": "weir stop", "all": "weir stop", "Tables": "weir table flush", "nat": "weir load"} {
			if said, status := b.WeirStatus("flush", what); status != 1 || !strings.Contains(said, want) {
				b.Errorf("flush %s: status %d, %s", what, status, said)
			}
		}
		if said, status := b.WeirStatus("kill"); status != 2 || !strings.Contains(said, "weir flush states") {
			b.Errorf("kill without a condition: status %d, %s", status, said)
		}
		b.Weir("flush", "states")
		if left := b.States(); len(left) != 0 {
			b.Errorf("after flush states there are %d", len(left))
		}
		b.Ping(lab.LAN, wanHost, 1)
	})
}

//	lan ─── ssh session ───▶ fw      fw: weir flush states
//
// The state of the session that asks stays, unless --force is given.
func TestFlushSparesTheSession(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	b.WeirRun(b.Rules("set skip on lo\nblock return\npass in on lan0 inet proto tcp to port { 2201, 2202 }\n"))
	mine := startTalk(b, "mine", lab.FW, "TCP4-LISTEN:2201", lab.LAN, "TCP4:"+fwLAN+":2201", 2201)
	other := startTalk(b, "other", lab.FW, "TCP4-LISTEN:2202", lab.LAN, "TCP4:"+fwLAN+":2202", 2202)
	mine.say(0, "before")
	other.say(0, "before")
	all := b.States("port", "2201")
	if len(all) != 1 {
		b.Fatalf("%d states of the session", len(all))
	}
	session := fmt.Sprintf("SSH_CONNECTION=%s %d %s 2201", lanHost, all[0].Src.Port, fwLAN)
	flush := func(args ...string) string {
		return b.Run(lab.FW, "env", append([]string{session, string(weir), "flush", "states"}, args...)...)
	}
	if got := flush(); got != "1 state killed; that of this session stays (--force kills it too)\n" {
		b.Errorf("flush states says %q", got)
	}
	mine.say(0, "after")
	if !other.silent(0, "after") {
		b.Error("the other connection goes on")
	}
	if got := flush("--force"); got != "1 state killed\n" {
		b.Errorf("flush states --force says %q", got)
	}
}

//	lan ─── ping, UDP without answers ───▶ fw ─▶ wan      fw: pfctl -s labels
//
// A rule counts what crosses interfaces in and out, as in pf. A rule without a direction meets a forwarded
// packet twice.
func TestLabelsCountByDirection(t *testing.T) {
	weir.Both(t, func(b *lib.Box) {
		b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
		b.WeirRun(b.Rules(`set skip on lo
block
pass inet proto icmp label "pings"
pass in on lan0 inet proto udp label "asks"
pass out on wan0 inet proto udp label "leaves"
pass in on wan0 inet proto udp no state label "bare"
`))
		b.Ping(lab.LAN, wanHost, 3) // 84 bytes each
		b.Start(lab.WAN, "socat", "-u", "UDP4-RECV:9", "/dev/null")
		b.Until(5*time.Second, "somebody listens", func() bool { return strings.Contains(b.Run(lab.WAN, "ss", "-Hlun"), ":9 ") })
		for range 2 {
			b.Run(lab.LAN, "sh", "-c", "printf 12345678 | socat -u - UDP4:"+wanHost+":9")
		}
		b.Run(lab.WAN, "sh", "-c", "printf 12345678 | socat -u - UDP4:"+lanHost+":9") // blocked at lan0
		labels := b.Weir("pfctl", "-s", "labels")
		for name, want := range map[string]string{
			"pings": " 12 1008 6 504 6 504 2\n", "asks": " 2 72 2 72 0 0 2\n", "leaves": " 2 72 0 0 2 72 2\n",
			"bare": " 1 36 1 36 0 0 0\n",
		} {
			if !regexp.MustCompile("(?m)^" + name + ` \d+` + want).MatchString(labels) {
				b.Errorf("%s is not%sin\n%s", name, want, labels)
			}
		}
		b.Weir("pfctl", "-z")
		b.Ping(lab.LAN, wanHost, 1)
		if labels := b.Weir("pfctl", "-s", "labels"); !strings.Contains(labels, " 4 336 2 168 2 168 2\n") {
			b.Errorf("after -z:\n%s", labels)
		}
	})
}

//	lan ─── ping ───▶ fw ─▶ wan      fw: pfctl, a link to weir
//
// Scripts that call pfctl work: here what fail2ban's and sshguard's actions call.
func TestPfctl(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
	text := "set skip on lo\ntable <sshguard> persist\nblock\nblock in quick from <sshguard>\npass in on lan0 inet proto icmp label \"pings\"\npass out on wan0\n"
	rules := b.Rules(text)
	b.WeirRun(rules)
	link := filepath.Join(b.TempDir(), "pfctl")
	if err := os.Symlink(string(weir), link); err != nil {
		b.Fatal(err)
	}
	pfctl := func(want string, args ...string) {
		b.Helper()
		if got := b.Run(lab.FW, "sh", "-c", "{ "+link+" "+strings.Join(args, " ")+"; } 2>&1"); !strings.Contains(got, want) {
			b.Errorf("pfctl %s prints:\n%s\nwant:\n%s", strings.Join(args, " "), got, want)
		}
	}
	b.Ping(lab.LAN, wanHost, 1)
	pfctl("1/1 addresses added.\n", "-q -t sshguard -T show;", link, "-t sshguard -T add", lanHost)
	pfctl("killed 1 states from 1 sources and 0 destinations\n", "-k", lanHost)
	if _, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", wanHost); err == nil {
		b.Error("the address is in the table, and its state was killed, but ping passes")
	}
	pfctl("1/1 addresses deleted.\n", "-t sshguard -Td", lanHost)
	b.Ping(lab.LAN, wanHost, 1)
	pfctl("block drop all\nblock drop in quick from <sshguard> to any\npass in on lan0 inet proto icmp all label \"pings\"\n", "-sr")
	pfctl("@1 block drop in quick from <sshguard:0> to any\n", "-vvsr")
	pfctl("pings ", "-sl")
	pfctl("-pa-r--\tsshguard\n", "-vsT")
	pfctl("  searches ", "-si")
	pfctl("  src-limit                              0            0.0/s\n", "-si")
	pfctl("tcp.established           86400s\n", "-st")
	pfctl("adaptive.start            60000 states\n", "-st")
	pfctl("nothing said\n", "-nz -F info 2>&1 | grep . || echo nothing said")
	pfctl("not cleared\n", "-sl | grep -q '^pings 0' || echo not cleared")
	pfctl("pf: rule counters cleared\n", "-zsl")
	pfctl("pings 0 0 0 ", "-sl")
	pfctl("pf: statistics cleared\n", "-F info")
	pfctl("0 states cleared\n", "-M -i lo -Fs")
	pfctl("changes nothing", "-x loud")
	pfctl("pfctl: Table does not exist.\n", "-t nowhere -T show || true")
	pfctl("all icmp "+lanHost, "-ss")
	pfctl("", "-nf", rules)
	pfctl("block drop all\n", "-vnf -", "<", rules)
	pfctl("syntax error", "-nf - </dev/null; echo pass bogus |", link, "-nf - || echo syntax error")
	pfctl("", "-f - <", rules)
	pfctl("1 states cleared\n", "-Fs")
	pfctl("weir stop", "-d || true")
	b.Ping(lab.LAN, wanHost, 1)
}

//	lan ─── connections ───▶ fw ─▶ wan      fw: weir kill -K, weir flush sources
//
// A source without states is forgotten. One with states stays, and its rate begins anew.
func TestKillSources(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
	b.WeirRun(b.Rules("set skip on lo\nset timeout src.track 600\nblock\npass out on wan0\n" +
		"pass in on lan0 inet proto icmp keep state (max-src-states 100)\n" +
		"pass in on lan0 inet proto tcp to port 8000 keep state (max-src-conn-rate 3/600)\n"))
	b.ServeHello(lab.WAN, 8000)
	fetches := func() bool {
		out, err := b.Try(lab.LAN, "curl", "-sS", "-m", "3", "http://"+wanHost+":8000/")
		return err == nil && out == "hello\n"
	}
	passed := 0
	for passed < 10 && fetches() {
		passed++
	}
	if passed < 2 || passed == 10 {
		b.Fatalf("%d connections pass with max-src-conn-rate 3", passed)
	}
	if got := b.Weir("kill", "-K", "192.0.2.1"); got != "0 sources forgotten\n" {
		b.Errorf("kill -K of another address says %q", got)
	}
	if got := b.Weir("kill", "-K", lanHost); got != "0 sources forgotten; 1 with states stay, and their rates begin anew\n" {
		b.Errorf("kill -K says %q", got)
	}
	if !fetches() {
		b.Error("the rate has not begun anew")
	}
	b.Ping(lab.LAN, wanHost, 1)
	if n := len(b.Sources()); n != 2 {
		b.Errorf("%d sources, want one for each rule", n)
	}
	b.Weir("flush", "states")
	b.Until(20*time.Second, "the states are released", func() bool { return b.Info().States.Current == 0 })
	if got := b.Weir("flush", "sources"); got != "2 sources forgotten\n" {
		b.Errorf("flush sources says %q", got)
	}
	b.Until(20*time.Second, "the sources are gone", func() bool { return len(b.Sources()) == 0 })
}

//	lan ─── ping ───▶ fw ─▶ wan      fw: the commands of fail2ban's action "pf", in its order
//
// fail2ban loads a table, then a rule, into an anchor of its own, and adds addresses to the
// table of the anchor. sshguard kills and adds in one call.
func TestPfctlForBans(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
	text := "set skip on lo\ntable <sshguard> persist\nblock\nblock in quick from <sshguard>\nanchor \"f2b/*\"\npass in on lan0 inet proto { icmp, tcp }\npass out on wan0\n"
	rules := b.Rules(text)
	a := b.WeirRun(rules)
	folder := b.TempDir()
	if err := os.Symlink(string(weir), filepath.Join(folder, "pfctl")); err != nil {
		b.Fatal(err)
	}
	shell := func(script string) string {
		b.Helper()
		return b.Run(lab.FW, "sh", "-ec", "PATH="+folder+":$PATH; pf='pfctl -a f2b/sshd'; "+script)
	}
	pings := func(when string, want bool) {
		b.Helper()
		if _, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", wanHost); (err == nil) != want {
			b.Errorf("%s: ping passes: %t, want %t", when, err == nil, want)
		}
	}
	pings("at first", true)
	shell(`echo "table <f2b-sshd> persist counters" | $pf -f-; echo "block quick proto { icmp, tcp } from <f2b-sshd> to any" | $pf -f-`)
	shell(`$pf -sr | grep -q f2b-sshd`)
	pings("nobody is banned", true)
	shell(`$pf -t f2b-sshd -T add ` + lanHost)
	pings("banned", false)
	if got := shell(`$pf -t f2b-sshd -T show; pfctl -sA; pfctl -vsA; pfctl -a f2b -sA`); got != "   "+lanHost+"\n  f2b\n  f2b\n  f2b/sshd\n  f2b/sshd\n" {
		b.Errorf("the table and the anchors are\n%s", got)
	}
	b.Weir("load", rules)
	pings("the rule file was loaded again", false)
	a.Kill()
	b.WeirRun(rules)
	pings("another daemon", false)
	shell(`$pf -t f2b-sshd -T delete ` + lanHost)
	pings("no longer banned", true)
	shell(`$pf -sr | { grep -v f2b-sshd || :; } | $pf -f-; $pf -t f2b-sshd -T flush; $pf -t f2b-sshd -T kill`)
	if got := shell(`$pf -sr`); got != "" {
		b.Errorf("the anchor still has the rules\n%s", got)
	}
	tableSays(b, 1, "weir: f2b-sshd: there is no such table\n", "-t", "f2b-sshd", "show")
	shell(`echo "block quick proto icmp" | $pf -f-`)
	pings("a rule in the anchor", false)
	shell(`$pf -Fr`)
	pings("flushed", true)
	shell("pfctl -q -k " + lanHost + " -t sshguard -T add " + lanHost + "/32")
	pings("sshguard", false)
	shell("pfctl -q -t sshguard -T del " + lanHost + "/32")
	pings("sshguard has released it", true)
}
