package test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/lab"
	"weir/test/lib"
)

// stampRules let weir look after the TCP connections of the LAN.
const stampRules = `
match out on wan0 inet from (lan0:network) nat-to (wan0)
match out on wan0 inet6 from (lan0:network) nat-to (wan0)
match in on lan0 scrub (reassemble tcp)
pass
`

// stampLists say the same in FreeBSD's form.
const stampLists = `
scrub on lan0 all reassemble tcp fragment reassemble
nat on wan0 inet from (lan0:network) to any -> (wan0)
nat on wan0 inet6 from (lan0:network) to any -> (wan0)
pass
`

// forger is a client that sends lines to a server. Then scapy sends segments of its connection that
// look like the next one: with an old timestamp, and with one from the future. Then it sends the last line again,
// with a TTL that ends behind the router.
const forger = `
import sys, socket, time
from scapy.all import *
to = sys.argv[1]
six = ":" in to
client = socket.create_connection((to, 9100))
port = client.getsockname()[1]
seen = AsyncSniffer(iface="eth0", filter="tcp port 9100")
seen.start()
time.sleep(0.5)
for i in range(3):
    client.sendall(b"line %d\n" % i)
    time.sleep(0.2)
last = [p for p in seen.stop() if p[TCP].sport == port and len(bytes(p[TCP].payload))][-1]
stamp = dict(last[TCP].options)["Timestamp"]
next = last[TCP].seq + len(bytes(last[TCP].payload))

def forge(text, value, ttl, seq=next):
    ip = IPv6(src=last[IPv6].src, dst=to, hlim=ttl) if six else IP(src=last[IP].src, dst=to, ttl=ttl)
    tcp = TCP(sport=port, dport=9100, flags="PA", seq=seq, ack=last[TCP].ack, window=last[TCP].window,
              options=[("NOP", None), ("NOP", None), ("Timestamp", (value & 0xffffffff, stamp[1]))])
    sendp(Ether(src=last.src, dst=last.dst)/ip/tcp/text, iface="eth0", verbose=0)

forge(b"old\n", stamp[0] - 600000, 64)
forge(b"new\n", stamp[0] + 90000000, 64)
forge(bytes(last[TCP].payload), stamp[0], 2, last[TCP].seq)
time.sleep(0.5)
print("port", port)
client.close()
`

// collector is the server: it shows what it reads.
const collector = `
import socket
server = socket.create_server(("::", 9100), family=socket.AF_INET6, dualstack_ipv6=True)
print("ready", flush=True)
while True:
    connection, who = server.accept()
    for line in connection.makefile("rb"):
        print("got", line.decode().strip(), flush=True)
    print("end", flush=True)
`

// stampOf finds the timestamps in a line of tcpdump.
var stampOf = regexp.MustCompile(`Flags \[([^\]]+)\], (?:cksum [^,]+, )?(?:seq (\d+)(?::\d+)?, )?[^\n]*TS val (\d+) ecr (\d+)`)

// offsets returns how far the timestamps of each direction are apart at the two ends, by their sequence
// numbers. tcpdump shows the true ones (-S).
func offsets(b *lib.Box, lan, wan string) map[uint32]int {
	b.Helper()
	values := func(said string) map[string]uint32 {
		found := make(map[string]uint32)
		for _, m := range stampOf.FindAllStringSubmatch(said, -1) {
			if m[2] == "" {
				continue
			}
			value, err := strconv.ParseUint(m[3], 10, 32)
			if err != nil {
				b.Fatal(err)
			}
			if _, again := found[m[1]+m[2]]; !again {
				found[m[1]+m[2]] = uint32(value)
			}
		}
		return found
	}
	differ, there := make(map[uint32]int), values(wan)
	for key, value := range values(lan) {
		if other, both := there[key]; both {
			differ[other-value]++
		}
	}
	return differ
}

//	lan ── iperf3, scapy ──▶ fw: scrub (reassemble tcp), NAT ──▶ wan
//	tcpdump                                                      tcpdump
//
// Timestamps differ by a constant on the two wires, one for each direction. The connection is
// as fast as before, and both kernels measure a sane round trip. What scapy forges with a wrong timestamp
// does not arrive; what it sends with a small TTL arrives with the usual one.
func TestReassembleTCP(t *testing.T) { stampStory(t, stampRules) }

// The same by FreeBSD's form.
func TestReassembleTCPLists(t *testing.T) { stampStory(t, stampLists) }

func stampStory(t *testing.T, rules string) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(rules)
		for port, to := range map[uint16]string{5301: wanHost, 5302: wanHost6} {
			stampTransfer(b, port, to)
		}
		if states := b.Weir("states", "-v", "proto", "tcp"); !strings.Contains(states, "scrub (reassemble tcp)") {
			b.Errorf("weir states -v does not show scrub (reassemble tcp):\n%s", states)
		}
		if n := b.Packets("lan0", reason.BadTimestamp) + b.Packets("wan0", reason.BadTimestamp); n != 0 {
			b.Errorf("%d packets of iperf3 had bad timestamps", n)
		}
		server := b.Start(lab.WAN, "/usr/bin/python3", "-c", collector)
		b.AwaitSaid(server, "ready")
		for n, to := range []string{wanHost, wanHost6} {
			stampForged(b, server, to, n+1)
		}
	})
}

// stampTransfer sends data both ways, and compares what the two ends see.
func stampTransfer(b *lib.Box, port uint16, to string) {
	filter := []string{"-n", "-l", "-S", "--immediate-mode", "-i", "eth0", fmt.Sprintf("tcp port %d", port)}
	lan, wan := b.Start(lab.LAN, "tcpdump", filter...), b.Start(lab.WAN, "tcpdump", filter...)
	b.AwaitSaid(lan, "listening on")
	b.AwaitSaid(wan, "listening on")
	server := b.Listen(lab.WAN, port, "iperf3", "-s", "-p", fmt.Sprint(port))
	client := b.Start(lab.LAN, "iperf3", "-c", to, "-p", fmt.Sprint(port), "-t", "2", "-b", "5M")
	stampRTT(b, to, port)
	client.Wait(20*time.Second, 0)
	b.Run(lab.LAN, "iperf3", "-c", to, "-p", fmt.Sprint(port), "-n", "2M", "-R")
	server.Kill()
	lan.Interrupt()
	wan.Interrupt()
	// a few connections, each with an offset for each of its directions
	differ, many := offsets(b, lan.Said(), wan.Said()), 0
	for offset, n := range differ {
		if offset == 0 {
			b.Errorf("%s: %d timestamps are the same at both ends", to, n)
		}
		if n >= 3 {
			many++
		}
	}
	if many < 4 || len(differ) > 16 {
		b.Errorf("%s: timestamps differ by %v (offset: packets)", to, differ)
	}
}

// stampRTT compares what the client's kernel measures by timestamps with the truth.
func stampRTT(b *lib.Box, to string, port uint16) {
	rtt := regexp.MustCompile(`\brtt:([0-9.]+)/`)
	var said string
	b.Until(10*time.Second, "ss shows a round trip", func() bool {
		said = b.Run(lab.LAN, "ss", "-tinH", "dport", "=", fmt.Sprintf(":%d", port))
		return rtt.MatchString(said)
	})
	for _, m := range rtt.FindAllStringSubmatch(said, -1) {
		if ms, err := strconv.ParseFloat(m[1], 64); err != nil || ms > 500 {
			b.Errorf("%s: ss shows a round trip of %s ms:\n%s", to, m[1], said)
		}
	}
}

// stampForged lets scapy forge segments of a connection, the n-th of the server.
func stampForged(b *lib.Box, server *lib.Process, to string, n int) {
	wan := b.Start(lab.WAN, "tcpdump", "-n", "-v", "-A", "-l", "--immediate-mode", "-i", "eth0", "tcp dst port 9100")
	b.AwaitSaid(wan, "listening on")
	before := b.Packets("lan0", reason.BadTimestamp)
	b.Run(lab.LAN, "/usr/bin/python3", "-c", forger, to)
	b.Until(10*time.Second, "the connection ends", func() bool { return strings.Count(server.Said(), "end\n") == n })
	b.Until(5*time.Second, "the line with a small TTL arrives", func() bool { return strings.Count(wan.Said(), "line 2") >= 2 })
	wan.Interrupt()
	if dropped := b.Packets("lan0", reason.BadTimestamp) - before; dropped < 2 {
		b.Errorf("%s: %d packets had bad timestamps, want 2 at least", to, dropped)
	}
	said := server.Said()
	if strings.Contains(said, "got old") || strings.Contains(said, "got new") || strings.Count(said, "got line 2\n") != n {
		b.Errorf("%s: the server says\n%s", to, said)
	}
	for _, m := range regexp.MustCompile(`(?:ttl|hlim) (\d+)`).FindAllStringSubmatch(wan.Said(), -1) {
		if m[1] != "63" {
			b.Errorf("%s: a packet came with TTL %s:\n%s", to, m[1], wan.Said())
			break
		}
	}
}
