package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/lab"
	"weir/test/lib"
)

// portalRules are what pfSense generates for a captive portal: frames are tagged by who sends
// them, and the rules behind see the tag.
const portalRules = `set skip on lo
table <cpzoneid_2_cpips> { 192.168.1.1 }

ether pass on { lan0 } tag "cpzoneid_2_rdr"
ether anchor "cpzoneid_2_auth/*" on { lan0 }
ether anchor "cpzoneid_2_passthrumac/*" on { lan0 }
ether anchor "cpzoneid_2_allowedhosts/*" on { lan0 }

nat on wan0 inet from lan0:network to any -> (wan0)
rdr on lan0 inet proto tcp from any to ! <cpzoneid_2_cpips> port 80 tagged cpzoneid_2_rdr -> 192.168.1.1 port 8002

pass in quick on lan0 proto tcp from any to <cpzoneid_2_cpips> port 8002 ridentifier 13001 keep state (sloppy)
pass out quick on lan0 proto tcp from any to any flags any ridentifier 13002 keep state (sloppy)
block in quick on lan0 from any to ! <cpzoneid_2_cpips> ! tagged cpzoneid_2_auth ridentifier 13003
pass
`

// user is the anchor of a user, and its rules when he has logged in.
const user = "cpzoneid_2_auth/192.168.1.10_32"

func userRules(mac string) string {
	return fmt.Sprintf("ether pass in quick proto 0x0800 from %[1]s l3 from 192.168.1.10/32 to any tag cpzoneid_2_auth\n"+
		"ether pass out quick proto 0x0800 to %[1]s l3 from any to 192.168.1.10/32 tag cpzoneid_2_auth\n", mac)
}

//	lan ─────────── fw ─────────── wan
//	curl, ping      portal :8002   web :80
//
// A captive portal. Who has not logged in sees the portal, whatever page he asks for; the
// login is an anchor with his MAC and IP address. A MAC address that is blocked is cut off,
// connections and all, and ARP goes on.
func TestCaptivePortal(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		pages := b.TempDir()
		if err := os.WriteFile(filepath.Join(pages, "index.html"), []byte("log in\n"), 0o600); err != nil {
			b.Fatal(err)
		}
		b.Listen(lab.FW, 8002, "python3", "-m", "http.server", "-d", pages, "8002")
		b.ServeHello(lab.WAN, 80)
		daemon := b.WeirRun(portalRules)
		page := func() string {
			out, _ := b.Try(lab.LAN, "curl", "-s", "-m", "2", "http://"+wanHost+"/")
			return out
		}
		if got := page(); got != "log in\n" {
			b.Errorf("before the login curl says %q", got)
		}
		if out, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", wanHost); err == nil {
			b.Errorf("before the login:\n%s", out)
		}

		loadAnchor(b, user, userRules("02:00:00:00:00:99"))
		b.AwaitSaid(daemon, "no program was loaded")
		if got := page(); got != "log in\n" {
			b.Errorf("when another MAC address has logged in curl says %q", got)
		}
		loadAnchor(b, user, userRules(lanMAC))
		if got := page(); !strings.Contains(got, "hello") {
			b.Errorf("after the login curl says %q", got)
		}
		flow := b.Flood(lab.LAN, wanHost)
		time.Sleep(300 * time.Millisecond)
		flow.AllAnswered(20)
		if r := b.Rule("ether pass in quick proto 0x0800 from " + lanMAC); r.List != "ether" || r.Packets < 20 {
			b.Errorf("the rule of the login: list %q, %d packets", r.List, r.Packets)
		}
		if r := b.Rule("ether pass out quick proto 0x0800"); r.Packets < 20 {
			b.Errorf("the rule of what goes to the user has %d packets", r.Packets)
		}

		b.Weir("anchor", "flush", user)
		if got := page(); got != "log in\n" {
			b.Errorf("after the logout curl says %q", got)
		}

		loadAnchor(b, user, userRules(lanMAC))
		dropped := b.Packets("lan0", reason.Block)
		talk := b.Start(lab.LAN, "ping", "-n", "-i", "0.05", wanHost)
		b.AwaitSaid(talk, "icmp_seq=3 ")
		loadAnchor(b, "cpzoneid_2_passthrumac/blocked", "ether block in proto 0x0800 from "+lanMAC+"\n")
		if got := page(); !strings.Contains(got, "hello") {
			b.Errorf("a block behind the quick rule of the login counts: curl says %q", got)
		}
		loadAnchor(b, "cpzoneid_2_auth/0", "ether block in quick proto 0x0800 from "+lanMAC+"\n")
		b.Until(5*time.Second, "the connection is cut", func() bool { return b.Packets("lan0", reason.Block) > dropped+5 })
		if got := page(); got != "" {
			b.Errorf("from a blocked MAC address curl says %q", got)
		}
		watch := capture(b, "lan0", "proto", "icmp")
		b.AwaitSaid(watch, "block")
		if said := interrupt(watch); !strings.Contains(said, "rule ether 2/(match)") {
			b.Errorf("the capture does not name the rule:\n%s", said)
		}
		b.Run(lab.LAN, "ip", "neigh", "flush", "dev", "eth0")
		if out, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", fwLAN); err == nil {
			b.Errorf("a blocked MAC address reaches the box:\n%s", out)
		}
		if out := b.Run(lab.LAN, "ip", "neigh", "show", fwLAN, "dev", "eth0"); !strings.Contains(out, fwLANMAC) {
			b.Errorf("ARP is not to be blocked: %q", out)
		}
		b.Weir("anchor", "flush", "cpzoneid_2_auth/0")
		b.Ping(lab.LAN, wanHost, 2)
	})
}

//	lan ── EAPOL ─▶ lan0 ══ bridge-to ══▶ wan0 ─▶ wan
//	    ◀───────────────────────────────────────
//
// Frames of one EtherType go from one side to the other as they are, though everything else is
// blocked: 802.1X between a provider and its own box.
func TestBridgeTo(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun("set skip on lo\nether pass in on lan0 bridge-to wan0 proto 0x888e\nether pass in on wan0 bridge-to lan0 proto 0x888e\nblock\n")
		for _, way := range [][2]string{{lab.LAN, lab.WAN}, {lab.WAN, lab.LAN}} {
			watch := b.Start(way[1], "tcpdump", "-n", "-e", "-l", "-i", "eth0", "--immediate-mode", "ether", "proto", "0x888e")
			b.AwaitSaid(watch, "listening on")
			b.Run(way[0], "python3", "-c", `import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
s.send(bytes.fromhex("0180c2000003021122334455888e01010000") + bytes(46))`)
			b.AwaitSaid(watch, "02:11:22:33:44:55 > 01:80:c2:00:00:03")
		}
		if r := b.Rule("ether pass in on lan0"); r.Packets != 1 {
			b.Errorf("the rule has %d packets", r.Packets)
		}
	})
}
