package test

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// portmapRules let hosts of the LAN out and ask for ports, and open nothing by themselves.
const portmapRules = `set skip on lo
anchor "portmap"
match out on wan0 inet from (lan0:network) nat-to (wan0)
block
pass in on lan0 proto udp from (lan0:network) to any port { 1900, 5351 }
pass in on lan0 proto tcp from (lan0:network) to (lan0) port 5000
pass in on lan0 inet6 proto { tcp, udp } from fe80::/10 to any port { 1900, 5000, 5351 }
pass in on lan0 proto udp from (lan0:network) to any port 7777
pass out on lan0 from self
pass out on wan0
pass inet6 proto icmp6
`

// startPortmap starts the server.
func startPortmap(b *lib.Box, args ...string) *lib.Process {
	b.Helper()
	p := b.WeirCommand(append([]string{"portmap", "--wan", "wan0", "--lan", "lan0", "-v"}, args...)...)
	b.AwaitSaid(p, "msg=ready")
	return p
}

// mapped reports whether the WAN reaches a web server of the LAN by a port of the box.
func mapped(b *lib.Box, port int) bool {
	b.Helper()
	_, err := b.Try(lab.WAN, "curl", "-s", "-m", "2", fmt.Sprintf("http://%s:%d/", fwWAN, port))
	return err == nil
}

//	lan: upnpc, natpmpc ── UPnP, NAT-PMP ──▶ fw: weir portmap ── anchor
//	lan: web server ◀══════ rdr-to ═════════ fw ◀═══ curl ═══ wan
//
// Programs of others open ports, list them and close them. What is open outlives the server
// and the daemon. A host cannot open ports of another.
func TestPortmap(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.ServeHello(lab.LAN, 8080)
		daemon := b.WeirRun(portmapRules)
		if said, status := b.WeirStatus("portmap", "--wan", "wan0", "--lan", "lan0", "--anchor", "other"); status != 1 || !strings.Contains(said, `add to the rules: anchor "other"`) {
			b.Errorf("without an anchor in the rules: status %d, %s", status, said)
		}
		server := startPortmap(b, "--external", "11.22.33.44")
		if out, err := b.Try(lab.LAN, "upnpc", "-m", "eth0", "-s"); err != nil || !strings.Contains(out, "Found valid IGD : http://192.168.1.1:5000/v1/ctl/IPConn") || !strings.Contains(out, "ExternalIPAddress = 11.22.33.44") {
			b.Errorf("with another external address, upnpc -s: %v\n%s", err, out)
		}
		server.Interrupt()
		server.Wait(10*time.Second, 0)
		server = startPortmap(b)
		if mapped(b, 8080) {
			b.Error("port 8080 is open before anybody has asked")
		}
		b.Tell("upnp", func(b *lib.Box) { portmapUPnP(b) })
		b.Tell("nat-pmp", func(b *lib.Box) { portmapNATPMP(b) })

		upnpc(b, "-e", "outlives all", "-a", lanHost, "8080", "18080", "TCP")
		server.Kill()
		if !mapped(b, 18080) {
			b.Error("the mapping ended with the server")
		}
		server = startPortmap(b)
		daemon.Kill()
		if !mapped(b, 18080) {
			b.Error("the mapping ended with the daemon")
		}
		b.WeirRun(portmapRules)
		if out := upnpc(b, "-l"); !mapped(b, 18080) || !strings.Contains(out, "18080->"+lanHost+":8080  'outlives all'") {
			b.Errorf("after both were killed, upnpc lists:\n%s", out)
		}
		b.Weir("load", b.Rules(portmapRules+"pass in on wan0 inet proto tcp to (wan0) port 18081 rdr-to "+lanHost+" port 8081\n"))
		if !mapped(b, 18080) {
			b.Error("the mapping ended with a load of the file")
		}
		if out, _ := b.Try(lab.LAN, "upnpc", "-i", "-m", "eth0", "-a", lanHost, "8080", "18081", "TCP"); !strings.Contains(out, "ConflictInMappingEntry") {
			b.Errorf("a port that a rule of the file sends on: upnpc says\n%s", out)
		}
		b.Weir("anchor", "flush", "portmap")
		b.Until(30*time.Second, "the server brings back what was flushed", func() bool { time.Sleep(200 * time.Millisecond); return mapped(b, 18080) })
		upnpc(b, "-d", "18080", "TCP")
		server.Interrupt()
		server.Wait(10*time.Second, 0)
		if list := b.Weir("anchor", "list"); strings.Contains(list, "portmap") {
			b.Errorf("an anchor is left:\n%s", list)
		}
	})
}

// upnpc asks by UPnP. -i: the addresses of labs are reserved ones, which it takes for those
// of a box that is not connected.
func upnpc(b *lib.Box, args ...string) string {
	b.Helper()
	out, err := b.Try(lab.LAN, "upnpc", append([]string{"-i", "-m", "eth0"}, args...)...)
	if err != nil {
		b.Errorf("upnpc %v: %v\n%s", args, err, out)
	}
	return out
}

func portmapUPnP(b *lib.Box) {
	out := upnpc(b, "-s")
	for _, want := range []string{"Status : Connected", "ExternalIPAddress = " + fwWAN} {
		if !strings.Contains(out, want) {
			b.Errorf("upnpc -s lacks %q:\n%s", want, out)
		}
	}
	if out := upnpc(b, "-e", "a \"server\"", "-a", lanHost, "8080", "9090", "TCP"); !strings.Contains(out, "external "+fwWAN+":9090 TCP is redirected to internal "+lanHost+":8080") {
		b.Errorf("upnpc -a:\n%s", out)
	}
	if !mapped(b, 9090) {
		b.Errorf("port 9090 is closed:\n%s", b.Weir("anchor", "show", "portmap"))
	}
	if out := upnpc(b, "-l"); !regexp.MustCompile(`0 TCP +9090->192\.168\.1\.10:8080 +'a "server"' '' 0`).MatchString(out) {
		b.Errorf("upnpc -l:\n%s", out)
	}
	// Another host's port, one of the well-known ones, and one that the box uses itself.
	b.Listen(lab.FW, 7000, "socat", "TCP4-LISTEN:7000,fork", "-")
	for _, args := range [][]string{{"192.168.1.77", "80", "8000", "TCP"}, {lanHost, "22", "2222", "TCP"}, {lanHost, "8080", "22", "TCP"}, {lanHost, "8080", "7000", "TCP"}} {
		if out, _ := b.Try(lab.LAN, "upnpc", append([]string{"-i", "-m", "eth0", "-a"}, args...)...); !strings.Contains(out, "failed with code 606") && !strings.Contains(out, "failed with code 718") {
			b.Errorf("upnpc -a %v:\n%s", args, out)
		}
	}
	upnpc(b, "-d", "9090", "TCP")
	if mapped(b, 9090) {
		b.Error("port 9090 is open after it was closed")
	}
}

func portmapNATPMP(b *lib.Box) {
	natpmpc := func(args ...string) string {
		b.Helper()
		out, err := b.Try(lab.LAN, "natpmpc", append([]string{"-g", "192.168.1.1"}, args...)...)
		if err != nil {
			b.Errorf("natpmpc %v: %v\n%s", args, err, out)
		}
		return out
	}
	if out := natpmpc(); !strings.Contains(out, "Public IP address : "+fwWAN) {
		b.Errorf("natpmpc:\n%s", out)
	}
	if out := natpmpc("-a", "9091", "8080", "tcp", "5"); !strings.Contains(out, "Mapped public port 9091 protocol TCP to local port 8080 ") {
		b.Errorf("natpmpc -a:\n%s", out)
	}
	if !mapped(b, 9091) {
		b.Error("port 9091 is closed")
	}
	if out := b.Weir("portmap", "list"); !regexp.MustCompile(`^tcp 9091  -> 192\.168\.1\.10:8080 +nat-pmp for [0-5]s\n$`).MatchString(out) {
		b.Errorf("weir portmap list:\n%s", out)
	}
	b.Until(20*time.Second, "the mapping of 5 seconds has expired", func() bool { time.Sleep(200 * time.Millisecond); return !mapped(b, 9091) })
	natpmpc("-a", "9091", "8080", "tcp", "3600")
	if !mapped(b, 9091) {
		b.Error("port 9091 is closed")
	}
	natpmpc("-a", "0", "8080", "tcp", "0")
	if mapped(b, 9091) {
		b.Error("port 9091 is open after it was closed")
	}
}

// torrent is a program with a client of PCP and of UPnP of its own: libtorrent, which
// prints what it hears.
const torrent = `
import sys, time
import libtorrent as lt
s = lt.session({"listen_interfaces": sys.argv[1], "enable_dht": False, "enable_lsd": False, "enable_upnp": sys.argv[2] == "upnp", "enable_natpmp": sys.argv[2] == "pcp",
    "upnp_ignore_nonrouters": False, "alert_mask": lt.alert.category_t.port_mapping_notification | lt.alert.category_t.port_mapping_log_notification | lt.alert.category_t.error_notification})
end = time.time() + 120
while time.time() < end:
    s.wait_for_alert(500)
    for a in s.pop_alerts():
        print(type(a).__name__, a.message(), flush=True)
`

// torrentPackage is where Debian has libtorrent.
const torrentPackage = "/usr/lib/python3/dist-packages/libtorrent.cpython*.so"

//	lan: libtorrent ── PCP, then UPnP ──▶ fw: weir portmap
//	lan: libtorrent ◀═════════════════════ wan
//
// A program that finds the box by itself opens its ports by PCP, and by UPnP.
func TestPortmapTorrent(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		if found, _ := filepath.Glob(torrentPackage); found == nil {
			testenv.SkipOutside(b, "libtorrent is missing (package python3-libtorrent)")
		}
		b.WeirRun(portmapRules)
		startPortmap(b)
		for protocol, said := range map[string]string{"pcp": "<== port map [ transport: PCP protocol: udp local: 6881 external: 6881", "upnp": "successfully mapped port using UPnP. local: 192.168.1.10 external port: UDP/6881"} {
			client := b.Start(lab.LAN, "/usr/bin/python3", "-c", torrent, "192.168.1.10:6881", protocol)
			b.AwaitSaid(client, said)
			if out := b.Run(lab.WAN, "nmap", "-Pn", "-n", "-sT", "-p", "6881,6882", fwWAN); !strings.Contains(out, "6881/tcp open") || strings.Contains(out, "6882/tcp open") {
				b.Errorf("%s: libtorrent says\n%s\nnmap finds\n%s", protocol, client.Said(), out)
			}
			client.Kill()
			b.Weir("anchor", "show", "portmap")
		}
	})
}

//	lan: upnpc -6 ── IPv6 ──▶ fw: weir portmap
//	lan: web server ◀═══════ wan, IPv6
//
// A host opens a port of its own IPv6 address. UDP through a mapping has the mapping's port
// in both directions. By --hairpin the LAN uses the external address, too.
func TestPortmapFamilies(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.ServeHello(lab.LAN, 8080)
		b.Listen(lab.LAN, 8081, "socat", "TCP6-LISTEN:8081,fork,reuseaddr", "SYSTEM:while read x; do test ${#x} -gt 1 || break; done; echo HTTP/1.0 200 OK; echo; echo hello")
		b.IP(lab.WAN, "-6 route add fd00:1::/64 via "+fwWAN6)
		b.WeirRun(portmapRules)
		server := startPortmap(b, "--hairpin")
		web6 := func() bool {
			_, err := b.Try(lab.WAN, "curl", "-s", "-m", "2", "http://[fd00:1::10]:8081/")
			return err == nil
		}
		if web6() {
			b.Error("the port is open before anybody has asked")
		}
		out := upnpc(b, "-6", "-A", "", "0", "fd00:1::10", "8081", "TCP", "600")
		id := regexp.MustCompile(`Pinhole ID = (\d+)`).FindStringSubmatch(out)
		if id == nil || !web6() {
			b.Fatalf("a pinhole: upnpc says\n%s\nthe anchor has\n%s", out, b.Weir("anchor", "show", "portmap"))
		}
		upnpc(b, "-6", "-D", id[1])
		if web6() {
			b.Error("the port is open after it was closed")
		}
		upnpc(b, "-a", lanHost, "8080", "18080", "TCP")
		if out, err := b.Try(lab.LAN, "curl", "-s", "-m", "2", "http://"+fwWAN+":18080/"); err != nil {
			b.Errorf("from the lan: %v %s", err, out)
		}
		portmapUDP(b)
		server.Interrupt()
		server.Wait(10*time.Second, 0)

		// A second interface; when it is removed, the server ends.
		b.IP(lab.FW, "link add lan1 type veth peer name lan1-peer", "address add 192.168.2.1/24 dev lan1", "link set lan1 up")
		server = startPortmap(b, "--lan", "lan1")
		if out := b.Weir("portmap", "list"); !strings.Contains(out, "tcp 18080 -> 192.168.1.10:8080     upnp    until it is closed  \"libminiupnpc\"\n") {
			b.Errorf("weir portmap list:\n%s", out)
		}
		b.IP(lab.FW, "link delete lan1")
		if said := server.Wait(10*time.Second, 1); !strings.Contains(said, "there is no interface lan1") {
			b.Errorf("without lan1 the server says\n%s", said)
		}
	})
}

// portmapUDP maps a UDP port and looks at it from both sides.
func portmapUDP(b *lib.Box) {
	b.Run(lab.LAN, "natpmpc", "-g", fwLAN, "-a", "4000", "5000", "udp", "600")
	outside := b.Start(lab.WAN, "socat", "-u", "UDP4-RECVFROM:7777,fork", "SYSTEM:echo from port $SOCAT_PEERPORT")
	inside := b.Start(lab.LAN, "socat", "-u", "UDP4-RECV:5000,reuseaddr", "-")
	b.Until(10*time.Second, "the host sends from the port of its mapping", func() bool {
		b.Run(lab.LAN, "sh", "-c", "echo x | socat -u - UDP4-SENDTO:"+wanHost+":7777,sourceport=5000,reuseaddr")
		time.Sleep(200 * time.Millisecond)
		return strings.Contains(outside.Said(), "from port 4000\n")
	})
	b.Until(10*time.Second, "the host hears what comes to the mapping", func() bool {
		b.Run(lab.WAN, "sh", "-c", "echo hello | socat -u - UDP4-SENDTO:"+fwWAN+":4000")
		time.Sleep(200 * time.Millisecond)
		return strings.Contains(inside.Said(), "hello\n")
	})
}

//	wan: nmap, curl ──▶ fw: weir portmap, and rules that pass everything
//
// Nobody but the LAN is answered, whatever the rules pass, and no web page by a name that
// leads to the box. Hosts hear when the external address changes, and when the server goes.
func TestPortmapGuards(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.WeirRun("set skip on lo\nanchor \"portmap\"\npass\n")
		server := startPortmap(b)
		const root = ":5000/v1/root.xml"
		if out := b.Run(lab.LAN, "nmap", "-n", "-sU", "-p", "5351,1900", "--script", "nat-pmp-info,upnp-info", fwLAN); !strings.Contains(out, "WAN IP: "+fwWAN) || !strings.Contains(out, "http://"+fwLAN+root) {
			b.Errorf("the lan finds\n%s", out)
		}
		if out := b.Run(lab.WAN, "nmap", "-Pn", "-n", "-sU", "-p", "5351,1900", "--script", "nat-pmp-info,upnp-info", fwWAN); strings.Contains(out, "WAN IP") || strings.Contains(out, "Location") || strings.Contains(out, "/udp open ") {
			b.Errorf("the wan finds\n%s", out)
		}
		if out, err := b.Try(lab.WAN, "curl", "-s", "-m", "2", "http://"+fwWAN+root); err == nil {
			b.Errorf("the wan reads %s", out)
		}
		b.Run(lab.LAN, "curl", "-s", "-S", "-f", "-m", "5", "http://"+fwLAN+root)
		if out, err := b.Try(lab.LAN, "curl", "-s", "-f", "-m", "5", "--resolve", "evil.example:5000:"+fwLAN, "http://evil.example"+root); err == nil {
			b.Errorf("by a name: %s", out)
		}
		heard := b.Start(lab.LAN, "tcpdump", "-l", "-n", "-x", "-i", "eth0", "udp dst port 5350 or udp dst port 1900")
		b.AwaitSaid(heard, "listening on")
		b.IP(lab.FW, "address del 203.0.113.2/24 dev wan0", "address add 203.0.113.9/24 dev wan0")
		b.Until(10*time.Second, "hosts hear of the new address", func() bool {
			return regexp.MustCompile(`(?s)\x00\x80\x00\x00\x00\x00\x00.\xcb\x00\x71\x09`).MatchString(latin1(asText(heard.Said())))
		})
		server.Interrupt()
		server.Wait(10*time.Second, 0)
		b.Until(10*time.Second, "hosts hear that the device goes", func() bool { return strings.Contains(asText(heard.Said()), "ssdp:byebye") })
	})
}

// asText returns the bytes of a dump by tcpdump -x.
func asText(dump string) string {
	var text []byte
	for _, line := range regexp.MustCompile(`(?m)^\t0x[0-9a-f]+: +(.*)$`).FindAllStringSubmatch(dump, -1) {
		b, err := hex.DecodeString(strings.ReplaceAll(line[1], " ", ""))
		if err != nil {
			return err.Error()
		}
		text = append(text, b...)
	}
	return string(text)
}

// latin1 makes a character of each byte, which regular expressions can match.
func latin1(text string) string {
	runes := make([]rune, len(text))
	for i := range len(text) {
		runes[i] = rune(text[i])
	}
	return string(runes)
}
