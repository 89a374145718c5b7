package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/fw/view"
	"weir/internal/lab"
	"weir/test/lib"
)

// limitRules guard a service of the box and one behind it, as for ssh, and limit what one
// client of the LAN may open.
const limitRules = `
set skip on lo
table <bruteforce> persist
no nat on wan0 proto carp
block
block in quick from <bruteforce>
pass in on wan0 proto { icmp, icmp6 }
pass in on wan0 proto tcp to port 2222 keep state (max-src-conn 15, max-src-conn-rate 5/3, overload <bruteforce> flush global)
pass in on lan0 proto tcp to port 5201 keep state (max-src-states 4)
pass in on lan0 proto tcp to port 8000 keep state (max 3)
pass out
`

// Addresses at the WAN besides its own.
const (
	neighbour = "203.0.113.77" // behaves well
	victim    = "203.0.113.99" // others claim to be it
	later     = "203.0.113.78"
)

// sourcesOf returns the source at an address, or nil.
func sourceOf(b *lib.Box, addr string) *view.Source {
	b.Helper()
	all := b.Sources()
	i := slices.IndexFunc(all, func(s view.Source) bool { return s.Addr.String() == addr })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// connects reports whether a connection from an address to a service succeeds: what it
// says comes back.
func connects(b *lib.Box, from, to string, port int) bool {
	target := fmt.Sprintf("TCP:%s:%d", to, port)
	if strings.Contains(to, ":") {
		target = fmt.Sprintf("TCP6:[%s]:%d", to, port)
	}
	out, _ := b.Try(lab.WAN, "sh", "-c", fmt.Sprintf("echo hello | timeout 1 socat -t 0.5 - %s,bind=%s,connect-timeout=0.5", target, bindable(from)))
	return strings.Contains(out, "hello")
}

func bindable(addr string) string {
	if strings.Contains(addr, ":") {
		return "[" + addr + "]"
	}
	return addr
}

// serveEcho serves a port of a host: what comes is sent back.
func serveEcho(b *lib.Box, host string, port uint16) {
	b.Helper()
	b.Listen(host, port, "socat", fmt.Sprintf("TCP6-LISTEN:%d,fork,reuseaddr,ipv6only=0", port), "EXEC:cat")
}

//	wan ── socat again and again ──▶ fw: a service, and lan's
//	    ── a neighbour's connection, spoofed SYNs ──▶
//	lan ── iperf3, nmap ──▶ wan
//
// A source that opens connections too fast is in the table within a second, and its
// connections end. Others go on. Who only claims an address does not get it blocked.
func TestLimits(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		for _, addr := range []string{neighbour, victim, later} {
			b.Run(lab.WAN, "ip", "addr", "add", addr+"/24", "dev", "eth0")
		}
		b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
		b.Run(lab.WAN, "ip", "route", "add", "fd00:1::/64", "via", fwWAN6)
		serveEcho(b, lab.FW, 2222)
		serveEcho(b, lab.LAN, 2222)
		file := b.Rules(limitRules)
		daemon := b.WeirRun(file)
		b.Tell("spoofed", spoofedSYNs)
		b.Tell("brute force", bruteForce)
		b.Tell("IPv6, through the box", bruteForce6)
		b.Tell("iperf3", func(b *lib.Box) { limitsOfClients(b) })
		b.Tell("daemon", func(b *lib.Box) { countsOutliveDaemons(b, daemon, file) })
	})
}

// spoofedSYNs open no connections: the handshake never ends.
func spoofedSYNs(b *lib.Box) {
	b.Ping(lab.WAN, fwWAN, 1)
	b.Run(lab.WAN, "ip", "addr", "del", victim+"/24", "dev", "eth0")
	b.Scapy(lab.WAN, fmt.Sprintf("sendp([Ether(dst=getmacbyip('%s'))/IP(src='%s',dst='%s')/TCP(sport=p,dport=2222,flags='S',seq=p) for p in range(2000,2060)], iface='eth0', verbose=0)",
		fwWAN, victim, fwWAN))
	b.Until(5*time.Second, "all SYNs make states of the victim", func() bool {
		s := sourceOf(b, victim)
		return s != nil && s.States == 60 && s.Connections == 0 && s.Rate == 0
	})
	b.Run(lab.WAN, "ip", "addr", "add", victim+"/24", "dev", "eth0")
	b.Until(5*time.Second, "the victim of spoofed SYNs is let in", func() bool { return connects(b, victim, fwWAN, 2222) })
	if blocked := tableOf(b, "bruteforce"); len(blocked) != 0 {
		b.Errorf("spoofed SYNs have put %s into the table", blocked)
	}
}

// talking starts a connection that says something every 100 ms, and returns how much has
// come back.
func talking(b *lib.Box, from, to string, port int) *lib.Process {
	b.Helper()
	p := b.Start(lab.WAN, "sh", "-c", fmt.Sprintf("while sleep 0.1; do echo tick; done | socat - TCP:%s:%d,bind=%s", to, port, from))
	b.Until(5*time.Second, "the echo of "+from, func() bool { return strings.Contains(p.Said(), "tick") })
	return p
}

func bruteForce(b *lib.Box) {
	good, bad := talking(b, neighbour, fwWAN, 2222), talking(b, wanHost, fwWAN, 2222)
	attempts := 0
	for connects(b, wanHost, fwWAN, 2222) {
		if attempts++; attempts > 40 {
			b.Fatal("no connection is refused")
		}
	}
	if attempts < 4 {
		b.Errorf("connection %d of 5 is refused", attempts+2)
	}
	b.Until(time.Second, "the table has the source", func() bool { return slices.Equal(tableOf(b, "bruteforce"), []string{wanHost}) })
	b.Until(time.Second, "its states have ended", func() bool { return len(b.States("host", wanHost)) == 0 })
	if connects(b, wanHost, fwWAN, 2222) {
		b.Error("the source is let in after all")
	}
	if _, err := b.Try(lab.WAN, "ping", "-n", "-c", "1", "-W", "1", "-I", wanHost, fwWAN); err == nil {
		b.Error("a ping of the source passes")
	}
	said := len(bad.Said())
	heard := len(good.Said())
	time.Sleep(500 * time.Millisecond)
	if len(bad.Said()) != said {
		b.Error("the source's first connection goes on")
	}
	if len(good.Said()) == heard {
		b.Error("the neighbour's connection does not go on")
	}
	if !connects(b, neighbour, fwWAN, 2222) {
		b.Error("the neighbour cannot connect")
	}
	if n := b.Packets("wan0", reason.MaxSrcRate); n == 0 {
		b.Error("no packet is counted as max-src-conn-rate")
	}
	if out := b.Weir("sources", "-v"); !strings.Contains(out, neighbour+" ( states ") || !strings.Contains(out, "/3s )\n   age 00:00:") || !strings.Contains(out, ", rule 4\n") {
		b.Errorf("weir sources -v:\n%s", out)
	}
	if out := b.Weir("pfctl", "-K", neighbour); !strings.HasPrefix(out, "killed 0 src nodes from 1 sources and 0 destinations\n1 with states stay until these end") {
		b.Errorf("weir pfctl -K of a source with states:\n%s", out)
	}
}

func bruteForce6(b *lib.Box) {
	for range 8 {
		connects(b, wanHost6, lanHost6, 2222)
	}
	b.Until(time.Second, "the table has the source", func() bool { return slices.Contains(tableOf(b, "bruteforce"), wanHost6) })
	if connects(b, wanHost6, lanHost6, 2222) {
		b.Error("the source is let in after all")
	}
}

// limitsOfClients tests max-src-states and max with real clients.
func limitsOfClients(b *lib.Box) {
	b.Run(lab.WAN, "ip", "addr", "add", "203.0.113.80/24", "dev", "eth0") // its own is blocked
	const server = "203.0.113.80"
	b.Listen(lab.WAN, 5201, "iperf3", "-s")
	if out, err := b.Try(lab.LAN, "iperf3", "-c", server, "-P", "3", "-t", "1", "-b", "1M"); err != nil {
		b.Errorf("three connections and iperf3's own are refused:\n%s", out)
	}
	b.Until(5*time.Second, "iperf3's connections are gone", func() bool {
		for _, s := range b.States("port", "5201") {
			if s.Phase == "tcp.established" {
				return false
			}
		}
		return true
	})
	out := b.Run(lab.LAN, "nmap", "-n", "-Pn", "-sS", "--max-retries", "0", "-p", "8000-8010", server)
	if n := strings.Count(out, "filtered"); n < 10 {
		b.Errorf("nmap:\n%s", out)
	}
	b.ServeHello(lab.WAN, 8000)
	b.Run(lab.LAN, "nmap", "-n", "-Pn", "-sS", "-p", "8000", "-g", "3001", server)
	refusedBefore := b.Packets("lan0", reason.MaxStates)
	b.Scapy(lab.LAN, fmt.Sprintf("send([IP(dst='%s')/TCP(sport=p,dport=8000,flags='S') for p in range(4000,4010)], verbose=0)", server))
	b.Until(5*time.Second, "more than max states are refused", func() bool { return b.Packets("lan0", reason.MaxStates) > refusedBefore+5 })
}

// countsOutliveDaemons loads the rules again, with another rule, and kills the daemon.
func countsOutliveDaemons(b *lib.Box, daemon *lib.Process, file string) {
	var kept []*lib.Process
	for n := range 3 {
		if n > 0 {
			time.Sleep(time.Second)
		}
		kept = append(kept, talking(b, later, fwWAN, 2222))
	}
	before := sourceOf(b, later)
	if before == nil || before.Connections != 3 {
		b.Fatalf("three connections are counted as %+v", before)
	}
	same := func(when string) {
		b.Helper()
		if s := sourceOf(b, later); s == nil || s.Connections != 3 || s.States < 3 || s.Rule == nil || s.Rule.Old {
			b.Errorf("%s the source is %+v", when, s)
		}
	}
	b.Weir("load", b.Rules(limitRules+"block in on lan0 proto udp to port 9999\n"))
	same("after a load")
	daemon.Kill()
	same("without a daemon")
	time.Sleep(3 * time.Second) // the rate of the connections before
	for range 8 {
		connects(b, later, fwWAN, 2222)
	}
	if s := sourceOf(b, later); s == nil || !s.Over {
		b.Errorf("without a daemon the source with too many connections is %+v", s)
	}
	if connects(b, later, fwWAN, 2222) || b.Packets("wan0", reason.Overload) == 0 {
		b.Error("without a daemon the source is let in")
	}
	if !connects(b, neighbour, fwWAN, 2222) {
		b.Error("without a daemon the neighbour cannot connect")
	}
	b.WeirRun(file)
	b.Until(2*time.Second, "the next daemon puts the source into the table", func() bool { return slices.Contains(tableOf(b, "bruteforce"), later) })
	b.Until(time.Second, "and ends its states", func() bool { return len(b.States("host", later)) == 0 })
	for _, p := range kept {
		p.Kill()
	}
}
