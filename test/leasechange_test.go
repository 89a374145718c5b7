package test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// phoneServer prints where each datagram comes from.
const phoneServer = `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 5060))
print("ready")
while True:
    print(s.recvfrom(100)[1][0])`

// phone sends a datagram ten times a second from one port, as what registers does.
const phone = `
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 5060))
while True:
    try:
        s.sendto(b"register", (sys.argv[1], 5060))
    except OSError:
        pass
    time.sleep(0.1)`

//	lan ─────── fw ──────────── wan
//	a phone     NAT, udhcpc     dnsmasq, its server
//
// The provider gives another address under UDP that never rests. Translations follow it, whatever the order in which addresses come
// and go, and also if no daemon lives then. An address that comes back keeps its connections.
func TestLeaseChanges(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.IP(lab.FW, "-4 address flush dev wan0")
		b.Sysctl(lab.FW, "net/ipv4/conf/wan0/promote_secondaries", "1") // as systemd sets it: the first address does not take the others with it
		rules := b.Rules(`match out on wan0 inet from (lan0:network) nat-to (wan0)
block
pass in on lan0
pass out on { lan0 wan0 }
pass in on wan0 inet proto udp from port 67 to port 68
`)
		daemon := b.WeirRun(rules)
		server := dnsmasq(b, lab.WAN, "eth0", "203.0.113.50,203.0.113.50,120", "2001:db8:113::")
		client := udhcpc(b, lab.FW, "wan0", `"$lease"`)
		seen := b.Start(lab.WAN, "/usr/bin/python3", "-u", "-c", phoneServer)
		b.AwaitSaid(seen, "ready")
		b.Start(lab.LAN, "/usr/bin/python3", "-c", phone, wanHost)
		within := func(b *lib.Box, d time.Duration, from string) {
			b.Helper()
			b.Until(d, "the phone is seen from "+from, func() bool { return strings.HasSuffix(strings.TrimSpace(seen.Said()), "\n"+from) })
		}
		arrives := func(b *lib.Box, from string) {
			b.Helper()
			within(b, 10*time.Second, from)
		}
		arrives(b, "203.0.113.50")
		b.Tell("another lease", func(b *lib.Box) {
			server.Kill()
			dnsmasq(b, lab.WAN, "eth0", "203.0.113.70,203.0.113.70,120", "2001:db8:113::")
			client.Signal(syscall.SIGUSR1)
			b.AwaitSaid(client, "bound: 203.0.113.70")
			arrives(b, "203.0.113.70")
			if old := b.States("host", "203.0.113.50"); len(old) != 0 {
				b.Errorf("states of the address before: %+v", old)
			}
			client.Kill()
		})
		b.Tell("the new one before the old one goes", func(b *lib.Box) {
			b.IP(lab.FW, "address add 203.0.113.80/24 dev wan0")
			time.Sleep(300 * time.Millisecond)
			b.IP(lab.FW, "address del 203.0.113.70/24 dev wan0")
			within(b, 40*time.Second, "203.0.113.80") // the daemon gives the old one 30 s to come back
		})
		b.Tell("the address goes and comes back", func(b *lib.Box) {
			time.Sleep(time.Second)
			before := b.States("host", "203.0.113.80", "port", "5060")
			b.IP(lab.FW, "address del 203.0.113.80/24 dev wan0")
			time.Sleep(500 * time.Millisecond)
			b.IP(lab.FW, "address add 203.0.113.80/24 dev wan0")
			time.Sleep(500 * time.Millisecond)
			arrives(b, "203.0.113.80")
			after := b.States("host", "203.0.113.80", "port", "5060")
			if len(before) != 1 || len(after) != 1 || after[0].Handle != before[0].Handle {
				b.Errorf("the connection is another one: %+v, was %+v", after, before)
			}
		})
		b.Tell("while no daemon lives", func(b *lib.Box) {
			daemon.Kill()
			b.IP(lab.FW, "address del 203.0.113.80/24 dev wan0", "address add 203.0.113.90/24 dev wan0")
			time.Sleep(500 * time.Millisecond)
			b.WeirRun(rules)
			arrives(b, "203.0.113.90")
		})
	})
}
