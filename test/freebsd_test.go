package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// freebsdConf is a gateway as the FreeBSD Handbook builds it: translation lists first,
// which say what is translated, then the filter rules, which see the result.
const freebsdConf = `ext_if = "wan0"
int_if = "lan0"
web = "192.168.1.10"

set skip on lo0

no nat on $ext_if from any to 203.0.113.8
nat on $ext_if inet from ($int_if:network) to any -> ($ext_if:0)
nat pass on $ext_if inet6 proto { tcp, icmp6 } from ($int_if:network) to any -> ($ext_if)
no rdr on $ext_if inet proto tcp from 203.0.113.9 to any port 8080
rdr on $ext_if inet proto tcp from any to ($ext_if) port 8080 tag WEB -> $web port 80
rdr pass log on $ext_if inet6 proto tcp from any to ($ext_if) port 9000:9005 -> fd00:1::10 port 8000:*
binat on $ext_if inet from 192.168.1.20 to any -> 203.0.113.20

block all label "default"
pass in on $int_if from ($int_if:network) to any
pass out on $ext_if inet from { ($ext_if:0), 203.0.113.20 } to any label "out"
pass in on $ext_if tagged WEB
pass in on $ext_if inet proto tcp from any to 192.168.1.20 port 22
pass out on $int_if inet proto tcp to { $web, 192.168.1.20 }
pass out on $int_if inet6 proto tcp to fd00:1::10 port 8000:8005
`

//	lan ───────── fw ───────── wan
//	              weir run     nat, rdr, binat of FreeBSD
//
// FreeBSD's translation lists at work, as the Handbook's gateway uses them.
func TestFreeBSDGateway(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.Address(lab.LAN, "eth0", "192.168.1.20/24")
		b.Address(lab.FW, "wan0", "203.0.113.20/24")
		b.Address(lab.WAN, "eth0", "203.0.113.8/24", "203.0.113.9/24")
		b.WeirRun(freebsdConf)
		for _, part := range []struct {
			name string
			tell func(*lib.Box)
		}{
			{"nat", natOfFreeBSD},
			{"no nat", noNatOfFreeBSD},
			{"rdr", rdrOfFreeBSD},
			{"rdr pass", rdrPassOfFreeBSD},
			{"binat", binatOfFreeBSD},
			{"rules", rulesOfFreeBSD},
		} {
			b.Tell(part.name, part.tell)
		}
	})
}

// iperfThrough runs iperf3 from a host to another and returns what the server says.
func iperfThrough(b *lib.Box, from, to, server string, args ...string) string {
	b.Helper()
	p := b.Listen(server, 5201, "iperf3", "-s", "-1")
	b.Run(from, "iperf3", append([]string{"-c", to, "-n", "16M"}, args...)...)
	return p.Wait(10*time.Second, 0)
}

//	lan ───────── fw ───────── wan
//	ping, iperf3  nat          iperf3 -s
//
// Servers see the gateway's address, in both families. IPv6 skips the filter rules, which
// would block it.
func natOfFreeBSD(b *lib.Box) {
	for to, own := range map[string]string{wanHost: fwWAN, wanHost6: fwWAN6} {
		b.Ping(lab.LAN, to, 5)
		said := iperfThrough(b, lab.LAN, to, lab.WAN, "-R")
		if !strings.Contains(said, "Accepted connection from "+own) {
			b.Errorf("the server did not see %s:\n%s", own, said)
		}
	}
	b.Listen(lab.WAN, 7, "socat", "UDP6-LISTEN:7,fork", "EXEC:cat")
	if got := b.Run(lab.LAN, "sh", "-c", "echo hello | socat -t 1 - UDP6:["+wanHost6+"]:7"); got != "" {
		b.Errorf("UDP over IPv6 is neither translated nor passed, but was answered: %q", got)
	}
}

// Packets to one server are not translated, so the filter does not let them out.
func noNatOfFreeBSD(b *lib.Box) {
	out, err := b.Try(lab.LAN, "ping", "-n", "-c", "2", "-i", "0.1", "-W", "1", "203.0.113.8")
	if err == nil {
		b.Errorf("a packet went out untranslated:\n%s", out)
	}
}

//	lan          fw          wan
//	httpd ◀──── rdr ◀─────── curl
//
// A forwarded port, but not for one client. The filter passes what the rdr rule has
// tagged.
func rdrOfFreeBSD(b *lib.Box) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "index.html"), []byte("hello\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	b.Listen(lab.LAN, 80, "busybox", "httpd", "-f", "-p", "80", "-h", dir)
	url := "http://" + fwWAN + ":8080/index.html"
	if got := b.Run(lab.WAN, "curl", "-sS", "--max-time", "10", url); got != "hello\n" {
		b.Errorf("curl said %q", got)
	}
	out, err := b.Try(lab.WAN, "curl", "-sS", "--interface", "203.0.113.9", "--connect-timeout", "1", url)
	if err == nil || !strings.Contains(err.Error(), "exit status 28") {
		b.Errorf("no rdr: %v\n%s", err, out)
	}
}

// With pass the filter is not asked; the n-th port of the range becomes the n-th.
func rdrPassOfFreeBSD(b *lib.Box) {
	log := readLog(b)
	b.Listen(lab.LAN, 8003, "socat", "-t", "30", "TCP6-LISTEN:8003,fork", "EXEC:cat")
	if got := b.Run(lab.WAN, "sh", "-c", "echo hello | socat -t 5 - TCP6:["+fwWAN6+"]:9003"); got != "hello\n" {
		b.Errorf("the echo said %q", got)
	}
	b.AwaitSaid(log, "rule rdr 2/(match)")
	if said := log.Said(); !strings.Contains(said, ": pass in on wan0") {
		b.Errorf("weir log:\n%s", said)
	}
	if text := b.Weir("states", "-v", "port", "9003"); !strings.Contains(text, ", rule rdr 2, out rule ") {
		b.Errorf("the state does not tell the rule that passed it:\n%s", text)
	}
}

//	lan (192.168.1.20) ──── fw ──── wan
//	                  203.0.113.20
//
// One address for one, both ways; ports stay.
func binatOfFreeBSD(b *lib.Box) {
	said := iperfThrough(b, lab.LAN, wanHost, lab.WAN, "-B", "192.168.1.20", "--cport", "40000")
	if !strings.Contains(said, "Accepted connection from 203.0.113.20") || !strings.Contains(said, "203.0.113.20 port 40000") {
		b.Errorf("the server did not see 203.0.113.20 port 40000:\n%s", said)
	}
	b.Listen(lab.LAN, 22, "socat", "-t", "30", "TCP4-LISTEN:22,bind=192.168.1.20,fork", "EXEC:cat")
	if got := b.Run(lab.WAN, "sh", "-c", "echo hello | socat -t 5 - TCP4:203.0.113.20:22"); got != "hello\n" {
		b.Errorf("the echo said %q", got)
	}
}

// weir rules prints the lists as pfctl -sn does, and counts.
func rulesOfFreeBSD(b *lib.Box) {
	text := b.Weir("rules", "-vv")
	at := -1
	for _, line := range []string{
		"@0 no nat on wan0 inet from any to 203.0.113.8\n",
		"@1 nat on wan0 inet from (lan0:network) to any -> (wan0:0)\n",
		"@3 nat pass on wan0 inet6 proto ipv6-icmp from (lan0:network) to any -> (wan0) round-robin\n",
		"@0 no rdr on wan0 inet proto tcp from 203.0.113.9 to any port = 8080\n",
		"@2 rdr pass log on wan0 inet6 proto tcp from any to (wan0) port 9000:9005 -> fd00:1::10 port 8000:8005\n",
		"@0 binat on wan0 inet from 192.168.1.20 to any -> 203.0.113.20\n",
		"@0 block drop all label \"default\"\n",
	} {
		next := strings.Index(text, line)
		if next <= at {
			b.Errorf("%q is missing or in another place:\n%s", line, text)
		}
		at = next
	}
	for _, part := range []string{"no nat on", "nat on wan0 inet from (lan0", "tag WEB -> ", "rdr pass log", "binat on"} {
		if r := b.Rule(part); r.Packets == 0 || r.Evaluations == 0 {
			b.Errorf("%s counted nothing: %+v", r.Text, r)
		}
	}
	if r := b.Rule("rdr pass log"); r.StateCreations != 1 {
		b.Errorf("%s made %d states, not one", r.Text, r.StateCreations)
	}
}

// pfsenseConf is a file in the manner of those that pfSense writes: anchors for helpers,
// outbound NAT with a static port for IKE, a 1:1 translation of a network, and rules with
// labels and trackers.
const pfsenseConf = `set limit states 50000
set block-policy return
WAN = "{ wan0 }"
LAN = "{ lan0 }"
table <bogons> persist
table <tonatsubnets> { 127.0.0.0/8 192.168.1.0/24 }
no nat proto carp
no rdr proto carp
nat-anchor "natearly/*"
nat-anchor "natrules/*"
binat on $WAN inet from 192.168.1.16/28 to any -> 203.0.113.16/28
nat on $WAN inet from <tonatsubnets> to any port 500 -> 203.0.113.2/32 static-port
nat on $WAN inet from <tonatsubnets> to any -> 203.0.113.2/32 port 1024:65535
rdr-anchor "tftp-proxy/*"
rdr on wan0 inet proto tcp from any to 203.0.113.2 port 8080 -> 192.168.1.10 port 80
rdr-anchor "miniupnpd"
load anchor "miniupnpd" {
	rdr pass on wan0 inet proto udp from any to any port 6881 -> 192.168.1.10
}
anchor "userrules/*"
block in inet all ridentifier 1000000103 label "Default deny rule IPv4"
block quick from <bogons> to any label "bogons"
pass in quick on $LAN inet from 192.168.1.0/24 to any keep state ridentifier 7 label "USER_RULE: LAN"
pass in quick on $WAN inet proto tcp from any to 192.168.1.10 port 80 keep state label "USER_RULE: web"
pass in quick on $WAN inet proto icmp from any to 192.168.1.16/28 icmp-type echoreq label "USER_RULE: 1:1"
pass out inet all keep state allow-opts label "let out anything"
`

//	lan ─────── fw ─────── wan
//	192.168.1.20 = 203.0.113.20 (binat of /28)
//
// Rules as pfSense writes them: 1:1 translation of a network, and what a helper has put
// into an anchor.
func TestPfSense(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.Address(lab.LAN, "eth0", "192.168.1.20/24")
		b.Address(lab.FW, "wan0", "203.0.113.20/24")
		b.WeirRun(pfsenseConf)
		b.Listen(lab.WAN, 500, "socat", "UDP4-RECVFROM:500,fork", "SYSTEM:read x; echo $SOCAT_PEERADDR $SOCAT_PEERPORT")
		for from, want := range map[string]string{
			"192.168.1.10:500": fwWAN + " 500\n", "192.168.1.20:4500": "203.0.113.20 4500\n",
		} {
			got := b.Run(lab.LAN, "sh", "-c", "echo hello | socat -t 2 - UDP4:"+wanHost+":500,bind="+from)
			if got != want {
				b.Errorf("the server saw %q for %s, want %q", got, from, want)
			}
		}
		b.Ping(lab.WAN, "203.0.113.20", 3)
		b.Listen(lab.LAN, 6881, "socat", "UDP4-LISTEN:6881,fork", "EXEC:cat")
		if got := b.Run(lab.WAN, "sh", "-c", "echo hello | socat -t 2 - UDP4:"+fwWAN+":6881"); got != "hello\n" {
			b.Errorf("through the anchor's rdr came %q", got)
		}
		b.ServeHello(lab.LAN, 80)
		if got := b.Run(lab.WAN, "curl", "-sS", "--max-time", "10", "http://"+fwWAN+":8080/"); got != "hello\n" {
			b.Errorf("curl said %q", got)
		}
	})
}

// Loads that differ only in an anchor of the lists replace its rules in place. What the
// others have counted stays.
func TestTranslationAnchorsInPlace(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		file := func(inside string) string {
			return b.Rules("set skip on lo\nrdr-anchor \"helper\" on wan0\nload anchor \"helper\" {\n" + inside + "}\n" +
				"nat on wan0 inet from (lan0:network) to any -> (wan0)\nblock\nanchor \"helper\"\npass in on lan0\npass out on wan0\n")
		}
		forward := func(port string) string {
			return "rdr pass on wan0 inet proto tcp from any to (wan0) port " + port + " -> 192.168.1.10 port 80\n"
		}
		a := b.WeirRun(file(""))
		b.ServeHello(lab.LAN, 80)
		b.Ping(lab.LAN, wanHost, 2)
		counted := b.Rule("nat on").Packets
		for _, port := range []string{"8001", "8002"} {
			b.Weir("load", file(forward(port)))
		}
		b.Weir("load", file("pass out on lan0 proto tcp to port 80 label \"helper\"\n"+forward("8002")))
		if n := strings.Count(a.Said(), "replaced in place"); n != 3 {
			b.Errorf("%d of 3 loads were made in place:\n%s", n, a.Said())
		}
		if got := b.Run(lab.WAN, "curl", "-sS", "--max-time", "10", "http://"+fwWAN+":8002/"); got != "hello\n" {
			b.Errorf("curl said %q", got)
		}
		if r := b.Rule(`label "helper"`); r.Nr != 2 || r.StateCreations != 1 {
			b.Errorf("the anchor's filter rule is %+v", r)
		}
		if r := b.Rule("nat on"); r.Nr != 0 || counted == 0 || r.Packets < counted {
			b.Errorf("the nat rule is %+v, and had counted %d packets", r, counted)
		}
		if r := b.Rule("rdr pass on"); r.Nr != 1 || r.List != "rdr" {
			b.Errorf("the anchor's rule is %+v", r)
		}
	})
}

// macosConf is what macOS comes with, and what it loads into its anchor.
const (
	macosConf = `scrub-anchor "com.apple/*"
nat-anchor "com.apple/*"
rdr-anchor "com.apple/*"
dummynet-anchor "com.apple/*"
anchor "com.apple/*"
load anchor "com.apple" from "com.apple"
`
	macosAnchor = `anchor "200.AirDrop/*"
anchor "250.ApplicationFirewall/*"
`
)

// What becomes of packets by macOS's stock file: it says nothing, so all pass, and nothing is translated.
const (
	macosHost = `{"interfaces": [
 {"name": "lo0", "groups": ["lo"], "addresses": ["127.0.0.1/8", "::1/128"]},
 {"name": "en0", "groups": ["egress"], "addresses": ["203.0.113.10/24", "2001:db8:f::2/64"], "default_route": ["203.0.113.1", "2001:db8:f::1"]},
 {"name": "bridge100", "groups": [], "addresses": ["192.168.2.1/24"]}]}`
	macosExpect = `{"in": "en0", "packet": "tcp 198.51.100.9:51000 > 203.0.113.10:22 S", "verdict": "pass", "local": true}
{"in": "en0", "packet": "udp 198.51.100.9:51001 > 203.0.113.10:5353", "verdict": "pass", "local": true}
{"in": "en0", "packet": "tcp [2001:db8:9::7]:51002 > [2001:db8:f::2]:22 S", "verdict": "pass", "local": true}
{"in": "bridge100", "packet": "tcp 192.168.2.5:40000 > 198.51.100.7:443 S", "verdict": "pass", "out": "en0", "next_hop": "203.0.113.1", "source_after": "192.168.2.5:40000"}
{"in": "en0", "packet": "udp 198.51.100.9:51003 > 192.168.2.5:7", "verdict": "pass", "out": "bridge100", "destination_after": "192.168.2.5:7"}
`
)

//	wan ── frames ──▶ en0, bridge100: fw: macOS's stock file ── what leaves ──▶ wan
//
// The expectations for macOS's stock file hold, for the model and for packets.
func TestExpectationsOfMacOS(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		folder := b.TempDir()
		for name, text := range map[string]string{"pf.conf": macosConf, "com.apple": macosAnchor, "host.json": macosHost, "expect.json": macosExpect} {
			write(b, filepath.Join(folder, name), text)
		}
		b.Weir("check", "--host", filepath.Join(folder, "host.json"), "--expect", filepath.Join(folder, "expect.json"), filepath.Join(folder, "pf.conf"))
		expects(b, strings.Replace(macosConf, `from "com.apple"`, "{\n"+macosAnchor+"}", 1), macosHost, macosExpect, 5)
	})
}

// macOS's stock file loads, and stands in nobody's way.
func TestMacOSStock(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		dir := b.TempDir()
		for name, text := range map[string]string{"pf.conf": macosConf, "com.apple": macosAnchor} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				b.Fatal(err)
			}
		}
		b.WeirRun(filepath.Join(dir, "pf.conf"))
		b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
		b.Ping(lab.LAN, wanHost, 2)
		if text := b.Weir("rules"); !strings.HasPrefix(text, "nat-anchor \"com.apple/*\" all\nrdr-anchor \"com.apple/*\" all\nanchor \"com.apple/*\" all\n") {
			b.Errorf("weir rules:\n%s", text)
		}
	})
}
