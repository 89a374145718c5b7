package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/lab"
)

//	lan ─── ping ───▶ fw ─▶ wan      fw: pfctl, a link to weir, and what scripts cut out of its lines
//
// Names of addresses, statistics of addresses that have some, limits and creators are found where
// scripts for FreeBSD and OpenBSD look for them.
func TestPfctlLines(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
	b.WeirRun("set skip on lo\nset limit table-entries 300000\ntable <known> persist counters { " + lanHost + ", 127.0.0.1 }\n" +
		"table <plain> { 192.0.2.1 }\nblock\nblock in from <plain>\npass in on lan0 inet proto icmp from <known>\npass out on wan0\n")
	folder := asPfctl(b)
	says := func(want, script string) {
		b.Helper()
		if got := b.Run(lab.FW, "env", "PATH="+folder+":"+os.Getenv("PATH"), "sh", "-c", "{ "+script+"; } 2>&1; true"); got != want {
			b.Errorf("%s prints\n%swant\n%s", script, got, want)
		}
	}
	says("   127.0.0.1\n   "+lanHost+"\n", "pfctl -t known -T show")
	says("   127.0.0.1\t(localhost)\n", "pfctl -t known -r -T show | grep 127")
	says("   127.0.0.1\t(localhost)\n", "pfctl -t known -rvT show | grep '^   127'")
	says("0/1 addresses added.\n   127.0.0.1\t(localhost)\n", "pfctl -t known -rvvT add 127.0.0.1")

	b.Ping(lab.LAN, wanHost, 2)
	const packets = "pfctl -t known -vT show | awk '/In.Pass/ { n += $4 } END { print n }'"
	says("2\n", packets)
	says("1/2 stats cleared (dummy).\n2\n", "pfctl -t known -nT reset; "+packets)
	says("1/2 stats cleared.\nZ  "+lanHost+"\n0\n", "pfctl -t known -vT reset; "+packets)
	says("0/2 stats cleared.\n", "pfctl -t known -T reset")
	says("0/1 stats cleared.\n", "pfctl -t plain -T reset")
	says("pfctl: Table does not exist.\n", "pfctl -t none -T reset")

	says("300000\n", "pfctl -s memory | awk '/table-entries/ { print $4 }'")
	says("8192\n", "pfctl -sm | awk '$1 == \"frags\" { print $4 }'")
	says("Creator IDs:\n00000000\n", "pfctl -s creatorids")
	says("3\n", "pfctl -vvsTables | awk '/Addresses/ { s += $2 } END { print s }'")
	says("2\n", "pfctl -vvsTables | awk '/-C\\tknown$/ { getline; print $2 }'")
}

//	lan ── curl ──▶ wan      fw: anchors of 35,000 rules each, and what an anchor may not have
//
// The rules of all anchors together have a bound. A load above it, or of what belongs to the whole
// machine, is refused and leaves what was; a table of one anchor is not that of another.
func TestAnchorBounds(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	b.ServeHello(lab.WAN, 80)
	b.WeirRun(anchoredRules)
	loadAnchor(b, "guests/web", "pass in on lan0 inet proto tcp to port 80\n")
	many := func(proto string) string {
		var text strings.Builder
		for n := range 35000 {
			fmt.Fprintf(&text, "pass in inet proto %s from 10.%d.%d.1 to any port %d\n", proto, n>>8, n&255, n+1)
		}
		return b.Rules(text.String())
	}
	b.Weir("anchor", "load", "guests/one", many("udp"))
	before := b.Weir("anchor", "list", "-v")
	refused := func(why, file string) {
		b.Helper()
		if said, status := b.WeirStatus("anchor", "load", "guests/two", file); status != 1 || !strings.Contains(said, why) {
			b.Errorf("status %d, not for %q:\n%s", status, why, said)
		}
		if now := b.Weir("anchor", "list", "-v"); now != before {
			b.Errorf("a refused load leaves\n%swant\n%s", now, before)
		}
	}
	refused("weir has room for 65536", many("tcp"))
	for text, why := range map[string]string{
		"set limit states 5\n": "options are not allowed in anchors", "set skip on wan0\n": "options are not allowed in anchors",
		"queue q on wan0 bandwidth 1M default\n":                                           "queues are not defined in an anchor",
		"altq on wan0 cbq bandwidth 1Mb queue { q }\nqueue q bandwidth 50% cbq(default)\n": "queues are not defined in an anchor",
		"state limiter \"x\" id 1 limit 5\n":                                               "limiters are not defined in an anchor",
		"anchor \"/guests/web\" { block }\n":                                               "has a name, not a path",
		"wireguard wg0 key file \"/key\"\n":                                                "WireGuard interfaces are not defined in an anchor",
	} {
		refused(why, b.Rules(text))
	}
	if !web(b, 80) {
		b.Error("a refused load has closed port 80")
	}
	b.Weir("anchor", "flush", "guests/one")

	path := filepath.Join(b.TempDir(), "more.conf")
	write(b, path, "block in quick on lan0 proto tcp\n")
	loadAnchor(b, "guests/two", "load anchor \"/guests/web\" from \""+path+"\"\n")
	if got := b.Weir("anchor", "show", "guests/web"); !strings.HasPrefix(got, "pass in on lan0") || !web(b, 80) {
		b.Errorf("an anchor has replaced the rules of another:\n%s", got)
	}
	loadAnchor(b, "guests/two", "table <mine> { "+lanHost+" }\npass in on lan0 inet proto udp from <mine> to port 9\n")
	loadAnchor(b, "guests/three", "block in quick on lan0 from <mine>\n")
	if !web(b, 80) {
		b.Error("an anchor reaches a table of another")
	}
	tableSays(b, 0, "", "-a", "guests/three", "-t", "mine", "show")
}
