package test

import (
	"strings"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/lab"
	"weir/test/lib"
)

// divertPacketRules give some connections to a program: on the inner side, on the outer one, and those of
// the box itself. All others go on without. divert-to with a port alone is FreeBSD's form.
const divertPacketRules = `
set skip on lo
rdr on lan0 inet proto tcp from any to 198.51.100.77 port 84 -> 203.0.113.1 port 8083
match out on wan0 from (lan0:network) nat-to (wan0)
block return
pass in on lan0
pass in on lan0 proto tcp to port 8083 divert-to 700
pass in on lan0 proto { tcp, udp } to port { 82, 8080, 5201, 5202, 5400 } divert-packet port 700
pass out on wan0
pass out on wan0 proto tcp to port 8081 divert-packet port 700
`

//	lan ── fw ── wan
//	       ║
//	    divert700 ── socat, which writes back what it reads
//
// The program gets the packets of both directions, with the addresses of the rule's interface, and they
// go on when it has written them back. Without the program they are dropped, and nothing else is.
func TestDivertPacket(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		for port := uint16(8080); port <= 8083; port++ {
			serveName(b, lab.WAN, port)
		}
		serveName(b, lab.FW, 82)
		b.Listen(lab.WAN, 5201, "iperf3", "-s")
		b.Listen(lab.WAN, 5202, "iperf3", "-s", "-p", "5202")
		daemon := b.WeirRun(divertPacketRules)
		nobody := func(when string) {
			b.Helper()
			before := b.Packets("lan0", reason.Divert)
			if got := fetch(b, lab.LAN, wanHost+":8080", "-m", "1"); !strings.Contains(got, "timed out") {
				b.Errorf("%s: %q answers", when, got)
			}
			if b.Packets("lan0", reason.Divert) == before {
				b.Errorf("%s: nothing was dropped for it", when)
			}
			expectName(b, when, fetch(b, lab.LAN, wanHost+":8082"), lab.WAN)
		}
		nobody("there is no device")
		b.IP(lab.FW, "tuntap add mode tun name divert700", "link set divert700 mtu 65535 up")
		b.AwaitHook("divert700")
		nobody("no program has the device open")
		watch := b.Start(lab.FW, "tcpdump", "-n", "-l", "-i", "divert700", "--immediate-mode")
		b.AwaitSaid(watch, "listening on")
		program := func() *lib.Process {
			return b.Start(lab.FW, "socat", "-b", "70000", "TUN,tun-type=tun,tun-name=divert700,iff-no-pi,iff-up", "EXEC:cat,socktype=2")
		}
		sees := func(each ...string) {
			b.Helper()
			for _, text := range each {
				b.Until(lib.StartPatience, "the program gets "+text, func() bool { return strings.Contains(watch.Said(), text) })
			}
		}
		all := func(when string) {
			b.Helper()
			b.Until(lib.StartPatience, when+": the program takes packets", func() bool {
				return fetch(b, lab.LAN, wanHost+":8080", "-m", "1") == lab.WAN
			})
			expectName(b, when, fetch(b, lab.LAN, "["+wanHost6+"]:8080"), lab.WAN)
			expectName(b, when, fetch(b, lab.LAN, wanHost+":8081"), lab.WAN)
			expectName(b, when, fetch(b, lab.LAN, "["+wanHost6+"]:8081"), lab.WAN)
			expectName(b, when, fetch(b, lab.LAN, "["+wanHost6+"]:8083"), lab.WAN)
			expectName(b, when, fetch(b, lab.LAN, "198.51.100.77:84"), lab.WAN)
			expectName(b, when, fetch(b, lab.LAN, fwLAN+":82"), lab.FW)
			expectName(b, when, fetch(b, lab.FW, wanHost+":8081"), lab.WAN)
			expectName(b, when, fetch(b, lab.LAN, wanHost+":8082"), lab.WAN)
		}
		first := program()
		all("with a program")
		sees(lanHost+".", " > "+wanHost+".8080: Flags [S]", wanHost+".8080 > "+lanHost+".", "HTTP/1.0 200")
		sees(" > "+wanHost6+".8080: Flags [S]", fwWAN+".", " > "+wanHost+".8081: Flags [S]", wanHost+".8081 > "+fwWAN+".")
		sees(" > "+wanHost6+".8083: Flags [S]", " > 198.51.100.77.84: Flags [S]", "198.51.100.77.84 > "+lanHost+".")
		sees(" > "+fwLAN+".82: Flags [S]", fwLAN+".82 > "+lanHost+".")
		b.Run(lab.LAN, "iperf3", "-c", wanHost, "-n", "5M")
		b.Run(lab.LAN, "iperf3", "-R", "-c", wanHost, "-p", "5202", "-n", "5M")
		if said := watch.Said(); strings.Contains(said, wanHost+".8082") || strings.Contains(said, lanHost+".8081") {
			b.Errorf("the program gets what it should not:\n%s", said)
		}
		fragmented := b.Packets("lan0", reason.Divert)
		b.Run(lab.LAN, "sh", "-c", "head -c 4000 /dev/zero | socat -b 8192 - UDP4-SENDTO:"+wanHost+":5400")
		b.Until(lib.StartPatience, "a program gets no fragments", func() bool { return b.Packets("lan0", reason.Divert) >= fragmented+3 })
		if b.Packets("divert700", reason.Divert) == 0 { // the device's own router solicitation, which it gets too
			b.Errorf("what belongs to no state goes on")
		}
		first.Kill()
		b.Until(lib.StartPatience, "the daemon sees that no program has the device open", func() bool {
			return strings.Contains(b.Run(lab.FW, "ip", "link", "show", "dev", "divert700"), "NO-CARRIER") && fetch(b, lab.LAN, wanHost+":8080", "-m", "0.3") != lab.WAN
		})
		time.Sleep(200 * time.Millisecond)
		nobody("the program is gone")
		program()
		all("with another program")
		daemon.Kill()
		b.Run(lab.FW, "ip", "neighbour", "flush", "dev", "wan0")
		all("without a daemon")
	})
}
