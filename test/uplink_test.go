package test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// gatewayRules send what goes to port 8080, and pings that ask for a low delay, out by the
// second uplink. Connections that come in there are answered there.
const gatewayRules = `
set skip on lo
match out on wan0 from (lan0:network) nat-to (wan0)
match out on wan1 from (lan0:network) nat-to (wan1)
match out on tun0 inet from (lan0:network) nat-to (tun0)
block return
pass in on lan0
pass in on lan0 route-to (wan1 192.0.2.1) inet proto tcp to port { 8080, 8082, 5201 }
pass in on lan0 inet6 proto tcp to port 8080 route-to 2001:db8:2::1
pass in on lan0 route-to (wan1 192.0.2.1) inet proto icmp tos lowdelay allow-opts
pass in on lan0 inet6 proto icmp6 tos lowdelay route-to 2001:db8:2::1
pass in on lan0 inet proto udp to port 33434:33500 route-to 192.0.2.1
pass in on lan0 route-to (wan1 fe80::1) inet6 proto tcp to port 8083
pass in on lan0 route-to { (wan0 203.0.113.1), (wan1 192.0.2.1) } round-robin inet proto tcp to port 8084
pass in on lan0 route-to { (wan0 203.0.113.1), (wan1 192.0.2.1) } round-robin sticky-address inet proto tcp to port 8085
pass in on lan0 route-to { (wan0 203.0.113.1), (wan1 192.0.2.1) weight 2 } round-robin inet proto tcp to port 8087
pass in on lan0 route-to { (wan0 2001:db8:113::1) weight 2, (wan1 2001:db8:2::1) } round-robin inet6 proto tcp to port 8087
pass in on lan0 inet6 proto tcp to port 8084 route-to { 2001:db8:113::1, 2001:db8:2::1 }
pass in on lan0 inet proto udp to port 5001 no state
pass in on lan0 route-to (wan1 192.0.2.1) inet proto udp to port 5002 no state
pass out on lan0
pass out on wan0 label "first"
pass out on wan0 inet proto udp to port 5002 no state
pass out on wan1 allow-opts label "second"
pass out on wan1 inet proto udp to port 5002 no state
pass in on lan0 route-to tun0 inet proto tcp to port 8086
pass out on tun0
pass in on tun0 reply-to tun0 inet proto tcp to port 80 rdr-to 192.168.1.10
pass in on tun0 reply-to (tun0 10.8.0.2) inet proto tcp to port 81
pass in on wan1 reply-to (wan1 192.0.2.1) inet proto tcp to port 80 rdr-to 192.168.1.10
pass in on wan1 inet6 proto tcp to port 80 rdr-to fd00:1::10 reply-to 2001:db8:2::1
pass in on wan1 reply-to (wan1 192.0.2.1) inet proto { tcp, udp } to port { 81, 5202 }
pass in on wan1 inet6 proto tcp to port 81 reply-to 2001:db8:2::1
pass in on wan1 reply-to (wan1 192.0.2.1) inet proto icmp
pass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0)
pass in on lan0 route-to (wan1 192.0.2.1) inet6 proto tcp to 64:ff9b::/96 port { 8080, 5201 } af-to inet from (wan1)
pass in on lan0 route-to (wan1 192.0.2.1) inet6 proto icmp6 to 64:ff9b::/96 tos lowdelay af-to inet from (wan1)
pass in on wan1 reply-to (wan1 192.0.2.1) inet proto tcp to (wan1) port 82 af-to inet6 from 2001:db8:46::/96 to fd00:1::10 port 80
pass out on wan0 route-to (wan1 192.0.2.1) inet from 192.0.2.2
pass out on wan0 inet6 from 2001:db8:2::2 route-to 2001:db8:2::1
`

//	          ┌─ wan0 ── wan
//	lan ── fw ┤
//	          └─ wan1 ── isp
//
// Rules send packets out by the second uplink, and replies to where the connection came
// in. Nothing of that goes out by the first.
func TestUplinks(t *testing.T) {
	weir.BothUplinks(t, func(b *lib.Box) {
		for _, host := range []string{lab.WAN, lib.ISP} {
			serveName(b, host, 8080)
			for port := uint16(8081); port <= 8087; port++ {
				if port != 8082 {
					serveName(b, host, port)
				}
			}
		}
		b.Listen(lib.ISP, 8082, "socat", "-t", "30", "TCP4-LISTEN:8082,fork,reuseaddr", "EXEC:cat")
		serveName(b, lab.LAN, 80)
		serveName(b, lab.FW, 81)
		b.Tunnel(lab.FW, "tun0", lib.ISP, "tun0")
		b.Address(lab.FW, "tun0", "10.8.0.1/24")
		b.Address(lib.ISP, "tun0", "10.8.0.2/24")
		daemon := b.WeirRun(gatewayRules)
		for _, part := range []struct {
			name string
			tell func(*lib.Box)
		}{
			{"route-to", ruleRoutes},
			{"neighbour", gatewayIsUnresolved},
			{"link-local", linkLocalGateway},
			{"pools", uplinksInTurn},
			{"reply-to", repliesGoBack},
			{"af-to", familiesByTheGateway},
			{"own", ownRepliesGoBack},
			{"own route-to", ownPacketsAreRouted},
			{"bulk", bulkByTheGateway},
			{"tunnel", uplinkIsATunnel},
			{"errors", gatewayErrors},
			{"no state", statelessIsRouted},
			{"routes change", routesChange},
			{"loads", loadsKeepTheWay},
			{"down", uplinkIsDown},
			{"new device", uplinkIsNew},
			{"killed", func(b *lib.Box) { daemonIsKilled(b, daemon) }},
		} {
			b.Tell(part.name, part.tell)
		}
	})
}

// serveName answers HTTP requests in a host with the host's name, at both families.
func serveName(b *lib.Box, host string, port uint16) {
	b.Helper()
	b.Listen(host, port, "socat", fmt.Sprintf("TCP6-LISTEN:%d,fork,reuseaddr,ipv6only=0", port),
		"SYSTEM:while read x; do test ${#x} -gt 1 || break; done; echo HTTP/1.0 200 OK; echo; echo "+host)
}

// A quiet host sees no packets to or from far's addresses.
type quiet struct {
	b *lib.Box
	*lib.Process
}

func listenAt(b *lib.Box, host, filter string) *quiet {
	b.Helper()
	return listenOn(b, host, "eth0", filter)
}

func listenOn(b *lib.Box, host, device, filter string) *quiet {
	b.Helper()
	p := b.Start(host, "tcpdump", "-n", "-l", "-i", device, "--immediate-mode", filter)
	b.AwaitSaid(p, "listening on")
	return &quiet{b, p}
}

// end ends the watch: it must have seen nothing.
func (q *quiet) end(what string) {
	q.b.Helper()
	time.Sleep(200 * time.Millisecond)
	q.Kill()
	for line := range strings.Lines(q.Said()) {
		if strings.Contains(line, " IP ") || strings.Contains(line, " IP6 ") {
			q.b.Errorf("%s: by the wrong uplink: %s", what, line)
			return
		}
	}
}

// far is a filter for all that concerns far's addresses.
const far = "host " + lib.FarHost + " or host " + lib.FarHost6

// fetch gets the name of the host that answers.
func fetch(b *lib.Box, host, to string, more ...string) string {
	b.Helper()
	out, err := b.Try(host, "curl", append([]string{"-s", "-S", "-m", "5", "http://" + to + "/"}, more...)...)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(out)
}

func expectName(b *lib.Box, what, got, want string) {
	b.Helper()
	if got != want {
		b.Errorf("%s: %q answers, want %q", what, got, want)
	}
}

func ruleRoutes(b *lib.Box) {
	expectName(b, "8081", fetch(b, lab.LAN, lib.FarHost+":8081"), lab.WAN)
	expectName(b, "8081 of IPv6", fetch(b, lab.LAN, "["+lib.FarHost6+"]:8081"), lab.WAN)
	wan := listenAt(b, lab.WAN, far)
	for range 3 {
		expectName(b, "8080", fetch(b, lab.LAN, lib.FarHost+":8080"), lib.ISP)
		expectName(b, "8080 of IPv6", fetch(b, lab.LAN, "["+lib.FarHost6+"]:8080"), lib.ISP)
	}
	b.Run(lab.LAN, "ping", "-n", "-c", "3", "-i", "0.1", "-W", "2", "-Q", "0x10", lib.FarHost)
	wan.end("route-to")
	isp := listenAt(b, lib.ISP, far)
	b.Run(lab.LAN, "ping", "-n", "-c", "3", "-i", "0.1", "-W", "2", lib.FarHost)
	isp.end("no route-to")
}

//	lan ═══ 20 pings at once ═══▶ fw ── who has isp? ──▶ isp
//
// Packets wait until the gateway's address is known. None goes by another way.
func gatewayIsUnresolved(b *lib.Box) {
	wan := listenAt(b, lab.WAN, far)
	for range 3 {
		b.Run(lab.FW, "ip", "neighbour", "flush", "dev", "wan1")
		out := b.Run(lab.LAN, "ping", "-n", "-c", "20", "-i", "0.002", "-W", "2", "-Q", "0x10", lib.FarHost)
		if !strings.Contains(out, "20 packets transmitted, 20 received") {
			b.Errorf("packets to an unknown neighbour:\n%s", out)
		}
		b.Run(lab.FW, "ip", "neighbour", "flush", "dev", "wan1")
		expectName(b, "8080", fetch(b, lab.LAN, lib.FarHost+":8080"), lib.ISP)
		b.Run(lab.FW, "ip", "neighbour", "flush", "dev", "wan1")
		expectName(b, "8080 of IPv6", fetch(b, lab.LAN, "["+lib.FarHost6+"]:8080"), lib.ISP)
	}
	wan.end("the gateway's address is not known")
}

// A gateway may be known by its link-local address alone.
func linkLocalGateway(b *lib.Box) {
	b.IP(lib.ISP, "address add fe80::1/64 dev eth0 nodad")
	wan := listenAt(b, lab.WAN, far)
	for range 3 {
		expectName(b, "8083", fetch(b, lab.LAN, "["+lib.FarHost6+"]:8083"), lib.ISP)
		b.Run(lab.FW, "ip", "neighbour", "flush", "dev", "wan1")
	}
	wan.end("a link-local gateway")
}

// Connections take the uplinks in turn, or each source has its own.
func uplinksInTurn(b *lib.Box) {
	for _, test := range []struct {
		to   string
		each int // of 6 connections, by the first uplink; 0: all by one
	}{{lib.FarHost + ":8084", 3}, {"[" + lib.FarHost6 + "]:8084", 3}, {lib.FarHost + ":8085", 0}, {lib.FarHost + ":8087", 2}, {"[" + lib.FarHost6 + "]:8087", 4}} {
		names := make(map[string]int)
		for range 6 {
			names[fetch(b, lab.LAN, test.to)]++
		}
		wan, isp := names[lab.WAN], names[lib.ISP]
		if wan+isp != 6 || test.each > 0 && wan != test.each || test.each == 0 && wan*isp != 0 {
			b.Errorf("connections to %s: %v", test.to, names)
		}
	}
}

//	isp ── from far's address ──▶ fw ── rdr-to ──▶ lan
//	isp ◀─────── reply-to ─────── fw ◀──────────── lan
//
// Replies leave where the connection came in.
func repliesGoBack(b *lib.Box) {
	wan := listenAt(b, lab.WAN, far)
	for range 2 {
		expectName(b, "80", fetch(b, lib.ISP, lib.FWISP+":80", "--interface", lib.FarHost), lab.LAN)
		expectName(b, "80 of IPv6", fetch(b, lib.ISP, "["+lib.FWISP6+"]:80", "--interface", lib.FarHost6), lab.LAN)
		b.Run(lab.FW, "ip", "neighbour", "flush", "dev", "wan1")
	}
	wan.end("reply-to")
}

//	lan, by IPv6 ── af-to, route-to ──▶ isp, by IPv4
//	lan ◀── af-to ── fw ◀────────────── isp
//	lan ──────────── fw ── reply-to ──▶ isp
//
// What af-to translates goes to the gateway in its new family, also while the gateway's address
// is not known. Replies go back to where they belong in their own.
func familiesByTheGateway(b *lib.Box) {
	const far64 = "64:ff9b::" + lib.FarHost
	expectName(b, "8081", fetch(b, lab.LAN, "["+far64+"]:8081"), lab.WAN)
	wan := listenAt(b, lab.WAN, far)
	for range 3 {
		expectName(b, "8080", fetch(b, lab.LAN, "["+far64+"]:8080"), lib.ISP)
		b.Run(lab.FW, "ip", "neighbour", "flush", "dev", "wan1")
		out := b.Run(lab.LAN, "ping", "-n", "-c", "20", "-i", "0.002", "-W", "2", "-Q", "0x10", far64)
		if !strings.Contains(out, "20 packets transmitted, 20 received") {
			b.Errorf("packets to an unknown neighbour:\n%s", out)
		}
		b.Run(lab.FW, "ip", "neighbour", "flush", "dev", "wan1")
		expectName(b, "82", fetch(b, lib.ISP, lib.FWISP+":82", "--interface", lib.FarHost), lab.LAN)
	}
	for _, way := range []string{"-6", "-R"} {
		server := b.Listen(lib.ISP, 5201, "iperf3", "-s", "-1", "-p", "5201")
		b.Run(lab.LAN, "iperf3", "-c", far64, "-p", "5201", way, "-n", "8M")
		server.Wait(10*time.Second, 0)
	}
	wan.end("af-to")
}

// The box's own services answer there, too.
func ownRepliesGoBack(b *lib.Box) {
	wan := listenAt(b, lab.WAN, far)
	for range 2 {
		expectName(b, "81", fetch(b, lib.ISP, lib.FWISP+":81", "--interface", lib.FarHost), lab.FW)
		expectName(b, "81 of IPv6", fetch(b, lib.ISP, "["+lib.FWISP6+"]:81", "--interface", lib.FarHost6), lab.FW)
		b.Run(lib.ISP, "ping", "-n", "-c", "3", "-i", "0.1", "-W", "2", "-I", lib.FarHost, lib.FWISP)
		b.Run(lab.FW, "ip", "neighbour", "flush", "dev", "wan1")
	}
	wan.end("reply-to of own services")
}

// What the box sends from its second address goes out by the second uplink.
func ownPacketsAreRouted(b *lib.Box) {
	expectName(b, "own", fetch(b, lab.FW, lib.FarHost+":8080"), lab.WAN)
	wan := listenAt(b, lab.WAN, far)
	for range 2 {
		expectName(b, "own from wan1", fetch(b, lab.FW, lib.FarHost+":8080", "--interface", lib.FWISP), lib.ISP)
		expectName(b, "own from wan1, IPv6", fetch(b, lab.FW, "["+lib.FarHost6+"]:8080", "--interface", lib.FWISP6), lib.ISP)
		b.Run(lab.FW, "ping", "-n", "-c", "3", "-i", "0.1", "-W", "2", "-I", lib.FWISP, lib.FarHost)
		b.Run(lab.FW, "ip", "neighbour", "flush", "dev", "wan1")
	}
	wan.end("own packets")
}

//	lan ═══ iperf3 ═══▶ fw ══▶ isp ═══ iperf3 ═══▶ fw, and back
//
// So do super-packets, of others and of the box itself.
func bulkByTheGateway(b *lib.Box) {
	wan := listenAt(b, lab.WAN, far)
	for _, test := range []struct {
		client, server string
		args           []string
	}{
		{lab.LAN, lib.ISP, []string{"-c", lib.FarHost, "-p", "5201"}},
		{lib.ISP, lab.FW, []string{"-c", lib.FWISP, "-p", "5202", "-B", lib.FarHost}},
	} {
		for _, way := range []string{"-4", "-R"} {
			server := b.Listen(test.server, map[string]uint16{lib.ISP: 5201, lab.FW: 5202}[test.server], "iperf3", "-s", "-1", "-p", test.args[3])
			b.Run(test.client, "iperf3", append(test.args, way, "-n", "8M")...)
			server.Wait(10*time.Second, 0)
		}
	}
	wan.end("bulk")
}

// A tunnel has no neighbours: its other end is where everything goes.
func uplinkIsATunnel(b *lib.Box) {
	wan := listenAt(b, lab.WAN, far)
	for range 2 {
		expectName(b, "8086", fetch(b, lab.LAN, lib.FarHost+":8086"), lib.ISP)
		expectName(b, "80", fetch(b, lib.ISP, "10.8.0.1:80", "--interface", lib.FarHost), lab.LAN)
		expectName(b, "81", fetch(b, lib.ISP, "10.8.0.1:81", "--interface", lib.FarHost), lab.FW)
	}
	wan.end("a tunnel")
}

// weir answers for the gateway: with its own address when the TTL ends, and with the
// uplink's MTU.
func gatewayErrors(b *lib.Box) {
	wan := listenAt(b, lab.WAN, far)
	out := b.Run(lab.LAN, "traceroute", "-n", "-q", "1", "-w", "2", "-m", "5", lib.FarHost)
	if got := hops(out); fmt.Sprint(got) != fmt.Sprint([]string{fwLAN, lib.FarHost}) {
		b.Errorf("traceroute went by %q:\n%s", got, out)
	}
	b.IP(lab.FW, "link set wan1 mtu 1400")
	b.IP(lib.ISP, "link set eth0 mtu 1400")
	defer func() {
		b.IP(lab.FW, "link set wan1 mtu 1500")
		b.IP(lib.ISP, "link set eth0 mtu 1500")
	}()
	time.Sleep(1500 * time.Millisecond) // a next hop's MTU is a second old at most
	for to, error := range map[string]string{lib.FarHost: "From " + fwLAN + " icmp_seq=1 Frag needed and DF set (mtu = 1400)", lib.FarHost6: "From " + fwLAN6 + " icmp_seq=1 Packet too big: mtu=1400"} {
		out, _ := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", "-M", "do", "-Q", "0x10", "-s", "1440", to)
		if !strings.Contains(out, error) {
			b.Errorf("a packet that is too long for the uplink is not answered by %q:\n%s", error, out)
		}
		b.Run(lab.LAN, "ping", "-n", "-c", "2", "-W", "1", "-Q", "0x10", "-s", "1440", to) // the client cuts them now
	}
	b.Run(lab.LAN, "ping", "-n", "-c", "2", "-W", "1", "-Q", "0x10", "-R", lib.FarHost)
	wan.end("errors")
}

// Packets without a state are sent to the gateway one by one; late fragments follow.
func statelessIsRouted(b *lib.Box) {
	wan := listenAt(b, lab.WAN, "udp port 5002 or ip[6:2] & 0x1fff != 0")
	isp := b.Start(lib.ISP, "tcpdump", "-n", "-l", "-i", "eth0", "--immediate-mode", "udp port 5002 or ip[6:2] & 0x1fff != 0")
	b.AwaitSaid(isp, "listening on")
	b.Scapy(lab.LAN, fmt.Sprintf("send(fragment(IP(dst=%q, id=77)/UDP(sport=5002, dport=5002)/('x'*2000), fragsize=800), verbose=0)\n", lib.FarHost))
	b.Until(5*time.Second, "three fragments go to isp", func() bool { return strings.Count(isp.Said(), " IP ") == 3 })
	wan.end("no state")
}

// A connection keeps its way while the routes change.
func routesChange(b *lib.Box) {
	wan := listenAt(b, lab.WAN, far)
	c := connect(b)
	for _, change := range []string{
		"route add " + lib.FarHost + "/32 via " + wanHost, "route del " + lib.FarHost + "/32",
		"route del default", "route add default via " + wanHost,
	} {
		b.IP(lab.FW, change)
		time.Sleep(100 * time.Millisecond)
		c.echo(change)
	}
	wan.end("routes change")
}

// A connection keeps its way while rules are loaded that would not choose it, also into new
// tables of states.
func loadsKeepTheWay(b *lib.Box) {
	wan := listenAt(b, lab.WAN, far+" and not port 9")
	c := connect(b)
	others := b.Rules("set skip on lo\nmatch out on wan0 from (lan0:network) nat-to (wan0)\npass\n")
	more := b.Rules("set skip on lo\nset limit states 7000\nmatch out on wan0 from (lan0:network) nat-to (wan0)\npass\n")
	again := b.Rules(gatewayRules)
	for _, file := range []string{others, more, again} {
		b.Weir("load", file)
		c.echo("after a load")
		time.Sleep(1200 * time.Millisecond)
		c.echo("a second after a load")
	}
	wan.end("loads")
}

// If the uplink is down, what would go there is dropped, and its sender told.
func uplinkIsDown(b *lib.Box) {
	wan := listenAt(b, lab.WAN, far)
	c := connect(b)
	b.IP(lab.FW, "link set wan1 down")
	time.Sleep(1200 * time.Millisecond)
	if out, err := b.Try(lab.LAN, "curl", "-s", "-S", "-m", "5", "http://"+lib.FarHost+":8080/"); err == nil {
		b.Errorf("%q answers though the uplink is down", out)
	}
	c.say("lost")
	time.Sleep(300 * time.Millisecond)
	b.IP(lab.FW, "link set wan1 up")
	b.Address(lab.FW, "wan1", lib.FWISP6+"/64")
	wan.end("the uplink is down")
	c.await("lost")
}

// The rules name an interface, whatever its index.
func uplinkIsNew(b *lib.Box) {
	b.IP(lab.FW, "link del wan1")
	wan := listenAt(b, lab.WAN, far)
	if out, err := b.Try(lab.LAN, "curl", "-s", "-S", "-m", "5", "http://"+lib.FarHost+":8080/"); err == nil {
		b.Errorf("%q answers though there is no uplink", out)
	}
	b.Wire("wan1", lib.ISP, "eth0")
	b.Address(lab.FW, "wan1", lib.FWISP+"/24", lib.FWISP6+"/64")
	b.Address(lib.ISP, "eth0", lib.ISPHost+"/24", lib.ISPHost6+"/64")
	b.IP(lib.ISP, "route add 192.168.1.0/24 via "+lib.FWISP)
	b.Until(lib.StartPatience, "the second uplink is used again", func() bool {
		out, err := b.Try(lab.LAN, "curl", "-s", "-m", "1", "http://"+lib.FarHost+":8080/")
		return err == nil && strings.TrimSpace(out) == lib.ISP
	})
	wan.end("a new device")
}

// Without the daemon, connections go on by their uplink, and new ones are routed too.
func daemonIsKilled(b *lib.Box, daemon *lib.Process) {
	wan := listenAt(b, lab.WAN, far)
	c := connect(b)
	daemon.Kill()
	for range 5 {
		time.Sleep(time.Second)
		c.echo("without a daemon")
	}
	b.Run(lab.FW, "ip", "neighbour", "flush", "dev", "wan1")
	c.echo("with an unknown neighbour")
	expectName(b, "8080", fetch(b, lab.LAN, lib.FarHost+":8080"), lib.ISP)
	expectName(b, "8080 of IPv6", fetch(b, lab.LAN, "["+lib.FarHost6+"]:8080"), lib.ISP)
	expectName(b, "80", fetch(b, lib.ISP, lib.FWISP+":80", "--interface", lib.FarHost), lab.LAN)
	expectName(b, "81", fetch(b, lib.ISP, lib.FWISP+":81", "--interface", lib.FarHost), lab.FW)
	wan.end("the daemon is dead")
}

// A connection of the LAN's host with an echo service of isp.
type connection struct {
	b *lib.Box
	net.Conn
}

func connect(b *lib.Box) *connection {
	b.Helper()
	c := &connection{b: b}
	err := b.Do(lab.LAN, func() (err error) {
		c.Conn, err = net.DialTimeout("tcp", lib.FarHost+":8082", 5*time.Second)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	c.echo("at first")
	return c
}

// echo sends a line and awaits it.
func (c *connection) echo(when string) {
	c.b.Helper()
	c.say(when)
	c.await(when)
}

func (c *connection) say(line string) {
	c.b.Helper()
	if _, err := fmt.Fprintln(c, line); err != nil {
		c.b.Errorf("%s: %v", line, err)
	}
}

func (c *connection) await(line string) {
	c.b.Helper()
	c.SetReadDeadline(time.Now().Add(lib.Scaled(10 * time.Second))) //nolint:errcheck // it can
	got := make([]byte, len(line)+1)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != line+"\n" {
		c.b.Errorf("%s: %q, %v", line, got, err)
	}
}
