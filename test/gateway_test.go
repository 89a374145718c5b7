package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/internal/lab"
	"weir/test/lib"
)

//	lan ───────── fw ───────── wan
//	              weir run -f examples/gateway.conf
//
// The example at work; the parts below test what it promises.
func TestGateway(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(gatewayConf(t))
		for _, part := range []struct {
			name string
			tell func(*lib.Box)
		}{
			{"download", lanReachesTheInternet},
			{"udp", udpThroughNAT},
			{"port forward", portForward},
			{"forbidden", forbiddenIsCounted},
			{"fragments", fragments},
			{"traceroute", traceroute},
			{"own connections", ownConnections},
		} {
			b.Tell(part.name, part.tell)
		}
	})
}

//	lan ───────── fw ───────── wan
//	ping, iperf3  weir, NAT    ping, iperf3 -s
//
// Hosts of the LAN reach the internet in both families. Servers see the gateway's
// address, and weir lists the connections.
func lanReachesTheInternet(b *lib.Box) {
	for _, to := range []string{wanHost, wanHost6} {
		b.Ping(lab.LAN, to, 5)
	}
	for _, to := range []string{wanHost, wanHost6} {
		server := b.Listen(lab.WAN, 5201, "iperf3", "-s", "-1")
		b.Run(lab.LAN, "iperf3", "-c", to, "-R", "-n", "16M")
		said := server.Wait(10*time.Second, 0)
		own := map[string]string{wanHost: fwWAN, wanHost6: fwWAN6}[to]
		if !strings.Contains(said, "Accepted connection from "+own) {
			b.Errorf("the server did not see %s:\n%s", own, said)
		}
	}
	states := b.States("proto", "tcp", "host", wanHost, "host", lanHost)
	if len(states) != 2 {
		b.Fatalf("%d states of iperf3's two connections:\n%s", len(states), b.Weir("states"))
	}
	for _, s := range states {
		if s.Src.Addr.String() != lanHost || s.Src.NewAddr.String() != fwWAN || s.Src.NewPort < 50001 {
			b.Errorf("state %s: not translated to %s and pf's ports", s.String(), fwWAN)
		}
	}
}

//	lan ──── fw ──── wan
//	bash ──────────▶ socat (answers)
//
// UDP through NAT: the reply finds its way back, and the timeout is that of a connection
// with a reply.
func udpThroughNAT(b *lib.Box) {
	b.Listen(lab.WAN, 7, "socat", "UDP4-LISTEN:7,fork", "EXEC:cat")
	// One datagram for each line, the second after the reply to the first.
	got := b.Run(lab.LAN, "bash", "-c", "exec 3<>/dev/udp/"+wanHost+"/7; for line in hello again; do "+
		"echo $line >&3; timeout 10 dd bs=64 count=1 status=none <&3; done")
	if got != "hello\nagain\n" {
		b.Errorf("the echo said %q", got)
	}
	states := b.States("proto", "udp", "port", "7")
	if len(states) != 1 || states[0].Phase != "udp.multiple" {
		b.Errorf("states: %+v, want one in udp.multiple", states)
	}
}

//	lan              fw              wan
//	iperf3 -s -p 80 ◀── port 8080 ◀── iperf3 -c fw -p 8080
//
// A port forward: the server sees the client, the client sees the gateway.
func portForward(b *lib.Box) {
	server := b.Listen(lab.LAN, 80, "iperf3", "-s", "-1", "-p", "80")
	b.Run(lab.WAN, "iperf3", "-c", fwWAN, "-p", "8080", "-n", "16M")
	if said := server.Wait(10*time.Second, 0); !strings.Contains(said, "Accepted connection from "+wanHost) {
		b.Errorf("the server did not see the client:\n%s", said)
	}
	if r := b.Rule(`label "server"`); r.StateCreations == 0 || r.Packets == 0 {
		b.Errorf("the forward's rule counted nothing: %+v", r)
	}
}

//	lan          fw          wan
//	            port 22 ◀─✕── curl
//	curl ──✕──────────────▶ port 23
//
// What is blocked gets no reply, and counts under the rule that blocks it.
func forbiddenIsCounted(b *lib.Box) {
	for _, try := range []struct{ host, url, label, device string }{
		{lab.WAN, "http://" + fwWAN + ":22/", "default", "wan0"},
		{lab.LAN, "http://" + wanHost + ":23/", "telnet", "lan0"},
		{lab.LAN, "http://[" + wanHost6 + "]:23/", "telnet", "lan0"},
	} {
		before, blocked := b.Rule(`label "`+try.label+`"`), b.Packets(try.device, reason.Block)
		if out, err := b.Try(try.host, "curl", "-sS", "--connect-timeout", "1", try.url); err == nil || !strings.Contains(err.Error(), "exit status 28") {
			b.Errorf("curl %s from %s: %v\n%s", try.url, try.host, err, out)
		}
		if after := b.Rule(`label "` + try.label + `"`); after.Packets == before.Packets {
			b.Errorf("%s from %s: no packet more under %s", try.url, try.host, after.Text)
		}
		if b.Packets(try.device, reason.Block) == blocked {
			b.Errorf("%s from %s: no packet more with reason block on %s", try.url, try.host, try.device)
		}
	}
}

//	lan ─────── fw ─────── wan
//	ping -s 3000 ═══════▶  three fragments each way
//
// Fragments follow their first, through NAT and back.
func fragments(b *lib.Box) {
	for _, to := range []string{wanHost, wanHost6} {
		b.Run(lab.LAN, "ping", "-n", "-c", "5", "-i", "0.1", "-W", "2", "-s", "3000", to)
		b.Run(lab.LAN, "ping", "-n", "-c", "1", "-W", "2", "-s", "20000", to)
	}
}

//	lan ── fw ── wan
//	traceroute: 1. fw  2. wan
//
// The gateway replies if a packet's TTL ends there. ICMP errors about translated
// connections reach their senders.
func traceroute(b *lib.Box) {
	for _, test := range []struct{ to, first string }{{wanHost, fwLAN}, {wanHost6, "fd00:1::1"}} {
		out := b.Run(lab.LAN, "traceroute", "-n", "-q", "1", "-w", "2", "-m", "4", test.to)
		hops := hops(out)
		if len(hops) != 2 || hops[0] != test.first || hops[1] != test.to {
			b.Errorf("traceroute to %s went by %q, want %s and %s:\n%s", test.to, hops, test.first, test.to, out)
		}
	}
}

// hops reads traceroute's lines: number, address, time.
func hops(out string) []string {
	var all []string
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == fmt.Sprint(len(all)+1) {
			all = append(all, f[1])
		}
	}
	return all
}

//	lan       fw ──────────▶ wan
//	          ping, iperf3   iperf3 -s
//
// The box's own connections leave, are answered, and have states.
func ownConnections(b *lib.Box) {
	for _, to := range []string{wanHost, wanHost6} {
		b.Ping(lab.FW, to, 3)
		server := b.Listen(lab.WAN, 5201, "iperf3", "-s", "-1")
		b.Run(lab.FW, "iperf3", "-c", to, "-n", "16M")
		server.Wait(10*time.Second, 0)
	}
	own := 0
	for _, s := range b.States("proto", "tcp", "host", wanHost) {
		if s.Direction == state.DirectionOut && s.Src.Addr.String() == fwWAN && !s.Src.NewAddr.IsValid() {
			own++
		}
	}
	if own != 2 {
		b.Errorf("%d states of iperf3's two connections from the box:\n%s", own, b.Weir("states"))
	}
}

//	lan ───▶ fw ───▶ lan     (by the gateway's outer address)
//
// Hairpin: a host of the LAN reaches a server of the LAN by the gateway's address; the
// packets leave by the interface they came in by.
func TestHairpin(t *testing.T) {
	const rules = `
set skip on lo
match out on lan0 inet from 192.168.1.0/24 to 192.168.1.0/24 nat-to (lan0)
block all
pass in on lan0 inet proto tcp to 203.0.113.2 port 8080 rdr-to 192.168.1.10 port 80
pass out on lan0 inet proto tcp to 192.168.1.10 port 80
`
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(rules)
		server := b.Listen(lab.LAN, 80, "iperf3", "-s", "-1", "-p", "80")
		b.Run(lab.LAN, "iperf3", "-c", fwWAN, "-p", "8080", "-n", "16M")
		if said := server.Wait(10*time.Second, 0); !strings.Contains(said, "Accepted connection from "+fwLAN) {
			b.Errorf("the server did not see the gateway's inner address:\n%s", said)
		}
	})
}
