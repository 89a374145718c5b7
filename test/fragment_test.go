package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/lab"
	"weir/test/lib"
)

// datagrams prints the length of each datagram and the sum of its bytes.
const datagrams = `
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind(("::", 9000))
print("ready", flush=True)
while True:
    data, peer = s.recvfrom(65535)
    print("got", data[:4].decode(), len(data), sum(data), flush=True)
`

// pieces cuts datagrams of 4,000 bytes into fragments, and sends each in another order.
const pieces = `
from itertools import permutations
from random import Random
def cut4(name, n):
    data = name.encode() + bytes((n * 7 + i) % 251 for i in range(3996))
    return fragment(IP(src=lan, dst=to, id=n) / UDP(sport=4000, dport=9000) / data, 1000)
def cut6(name, n):
    data = name.encode() + bytes((n * 7 + i) % 251 for i in range(3996))
    whole = IPv6(src=lan6, dst=to6) / IPv6ExtHdrFragment(id=n) / UDP(sport=4000, dport=9000) / data
    return fragment6(whole, 1048)
def send(packets):
    for p in packets:
        sendp(frame / p, iface="eth0", verbose=0)
for cut, start in ((cut4, 100), (cut6, 500)):
    n = start
    for order in Random(1).sample(list(permutations(range(5))), orders - 2) + [(4, 3, 2, 1, 0), (1, 0, 2, 3, 4)]:
        n += 1
        parts = cut("%04d" % n, n)
        assert len(parts) == 5, len(parts)
        send(parts[i] for i in order)
`

// orders is in how many orders the fragments of a family come.
func orders() int { return lib.Fewer(14) }

// sentNames are the names of the datagrams that pieces sends.
func sentNames() []string {
	var all []string
	for _, start := range []int{100, 500} {
		for n := range orders() {
			all = append(all, fmt.Sprintf("%04d", start+1+n))
		}
	}
	return all
}

func datagramSum(name string) int {
	n, sum := 0, 0
	if _, err := fmt.Sscanf(name, "%d", &n); err != nil {
		panic(err)
	}
	for _, c := range []byte(name) {
		sum += int(c)
	}
	for i := range 3996 {
		sum += (n*7 + i) % 251
	}
	return sum
}

//	lan: scapy ── fragments in any order ──▶ fw, NAT ──▶ wan, or fw itself: a UDP socket
//
// Fragments arrive in whatever order they come, if the first is passed. Others do not.
func TestFragmentsInAnyOrder(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		daemon := b.WeirRun(`set skip on lo
set timeout frag 5
match out on wan0 inet nat-to (wan0)
block
pass in on lan0 proto udp to port 9000
pass out on wan0
`)
		for _, end := range []struct{ host, to, to6 string }{{lab.WAN, wanHost, wanHost6}, {lab.FW, fwLAN, fwLAN6}} {
			server := b.Start(end.host, "/usr/bin/python3", "-c", datagrams)
			b.AwaitSaid(server, "ready")
			b.Scapy(lab.LAN, fragmentNames(end.to, end.to6)+pieces)
			for _, name := range sentNames() {
				want := fmt.Sprintf("got %s 4000 %d\n", name, datagramSum(name))
				b.Until(5*time.Second, fmt.Sprintf("%s gets %q", end.host, want), func() bool { return strings.Contains(server.Said(), want) })
			}
			server.Kill()
		}
		if held := b.Packets("lan0", reason.FragmentHeld); held < uint64(lib.Fewer(50)) {
			b.Errorf("%d fragments have waited", held)
		}
		if orphans := b.Packets("lan0", reason.FragmentOrphan); orphans != 0 {
			b.Errorf("%d fragments could not wait", orphans)
		}

		b.Tell("the sender uses an id again", sameID)

		// What overlaps, and what follows a first fragment that is blocked, does not
		// arrive.
		seen := b.Start(lab.WAN, "tcpdump", "-n", "-i", "eth0", "-l", "udp or ip[6:2] & 0x1fff != 0")
		b.AwaitSaid(seen, "listening on")
		b.Scapy(lab.LAN, fragmentNames(wanHost, wanHost6)+`
blocked = fragment(IP(src=lan, dst=to, id=9001)/UDP(sport=4000, dport=9001)/(b"x"*2000), 1000)
for i in (2, 1, 0):
    sendp(frame/blocked[i], iface="eth0", verbose=0)
sendp(frame/IP(src=lan, dst=to, id=9002, frag=125, proto=17)/(b"y"*1000), iface="eth0", verbose=0)
passed = fragment(IP(src=lan, dst=to, id=9003)/UDP(sport=4000, dport=9000)/(b"z"*2000), 1000)
overlap = IP(src=lan, dst=to, id=9003, frag=100, flags="MF", proto=17)/(b"o"*800)
for p in (passed[1], overlap, passed[0]):
    sendp(frame/p, iface="eth0", verbose=0)
time.sleep(0.5)
sendp(frame/passed[2], iface="eth0", verbose=0)
`)
		b.Until(5*time.Second, "the first fragment of 9003 arrives", func() bool { return strings.Contains(seen.Said(), ".9000: UDP") })
		b.Until(5*time.Second, "the overlap is dropped", func() bool { return b.Packets("lan0", reason.FragmentOverlap) == 1 })
		time.Sleep(200 * time.Millisecond)
		seen.Kill()
		if n := strings.Count(seen.Said(), " > "); n != 3 {
			b.Errorf("%d packets have arrived, want the 3 of one datagram:\n%s", n, seen.Said())
		}
		// Without a daemon, fragments cannot wait.
		daemon.Kill()
		time.Sleep(4 * time.Second)
		b.Scapy(lab.LAN, fragmentNames(wanHost, wanHost6)+`
sendp(frame/IP(src=lan, dst=to, id=9004, frag=125, proto=17)/(b"y"*1000), iface="eth0", verbose=0)
`)
		if orphans := b.Packets("lan0", reason.FragmentOrphan); orphans != 1 {
			b.Errorf("%d fragments were dropped without a daemon, want 1", orphans)
		}
	})
}

// sameID sends datagrams with one id, each when the one before is whole: all arrive, also those whose
// fragments come in another order.
func sameID(b *lib.Box) {
	b.Helper()
	server := b.Start(lab.WAN, "/usr/bin/python3", "-c", datagrams)
	b.AwaitSaid(server, "ready")
	b.Scapy(lab.LAN, fragmentNames(wanHost, wanHost6)+`
import time
for n in range(6):
    name, order = "a%03d" % n, ((0, 1, 2), (2, 1, 0), (1, 2, 0))[n % 3]
    four = fragment(IP(src=lan, dst=to, id=77)/UDP(sport=4000, dport=9000)/(name.encode()+b"x"*1996), 1000)
    six = fragment6(IPv6(src=lan6, dst=to6)/IPv6ExtHdrFragment(id=77)/UDP(sport=4000, dport=9000)/(b"b"+name[1:].encode()+b"x"*1996), 1048)
    for parts in (four, six):
        for i in order:
            if i < len(parts):
                sendp(frame/parts[i], iface="eth0", verbose=0)
    time.sleep(0.3)
`)
	for n := range 6 {
		for _, family := range []string{"a", "b"} {
			want := fmt.Sprintf("got %s%03d 2000 ", family, n)
			b.Until(5*time.Second, fmt.Sprintf("wan gets %q", want), func() bool { return strings.Contains(server.Said(), want) })
		}
	}
	server.Kill()
}

func fragmentNames(to, to6 string) string {
	return fmt.Sprintf("lan, lan6, to, to6, orders = %q, %q, %q, %q, %d\nframe = Ether(dst=%q, src=%q)\n", lanHost, lanHost6, to, to6, orders(), fwLANMAC, lanMAC)
}
