package test

import (
	"strings"
	"testing"

	"weir/internal/fw/reason"
	"weir/internal/lab"
	"weir/test/lib"
)

// dupToRules have copies of some ports sent to a monitor behind wan1.
const dupToRules = `
set skip on lo
match out on wan0 from (lan0:network) nat-to (wan0)
block return
pass in on lan0
pass in on lan0 inet proto tcp to port { 82, 8080, 5201 } dup-to (wan1 192.0.2.1)
pass in on lan0 inet6 proto tcp to port 8080 dup-to 2001:db8:2::1
pass in on lan0 inet proto udp to port 5400 dup-to 192.0.2.1
pass out on wan0
pass out on wan0 inet proto tcp to port { 8081, 8083 } dup-to 192.0.2.1
pass in on lan0 dup-to (wan1 192.0.2.1) inet proto udp to port 5410 no state
pass out on wan0 dup-to (wan1 192.0.2.1) inet proto udp to port 5411 no state
`

//	          ┌─ wan0 ── wan
//	lan ── fw ┤
//	          └─ wan1 ── isp, which watches
//
// The monitor gets copies of both directions, as they are on the wire of the rule's interface.
// The connections themselves go on as without.
func TestDupTo(t *testing.T) {
	weir.BothUplinks(t, func(b *lib.Box) {
		for port := uint16(8080); port <= 8082; port++ {
			serveName(b, lab.WAN, port)
		}
		serveName(b, lab.FW, 82)
		b.Listen(lab.WAN, 5201, "iperf3", "-s")
		daemon := b.WeirRun("set skip on lo\nmatch out on wan0 from (lan0:network) nat-to (wan0)\npass\nanchor \"ids\"\n")
		monitor := b.Start(lib.ISP, "tcpdump", "-n", "-l", "-i", "eth0", "--immediate-mode", "tcp or udp")
		b.AwaitSaid(monitor, "listening on")
		sees := func(what string, each ...string) {
			b.Helper()
			for _, text := range each {
				b.Until(lib.StartPatience, what+": the monitor sees "+text, func() bool { return strings.Contains(monitor.Said(), text) })
			}
		}
		b.Weir("anchor", "load", "ids", b.Rules("pass in on lan0 inet proto tcp to port 8082 dup-to 192.0.2.1\n"))
		expectName(b, "an anchor", fetch(b, lab.LAN, wanHost+":8082"), lab.WAN)
		sees("an anchor", lanHost+".", " > "+wanHost+".8082: Flags [S]", wanHost+".8082 > "+lanHost+".")
		b.Weir("load", b.Rules(dupToRules))
		all := func(when string) {
			b.Helper()
			expectName(b, when, fetch(b, lab.LAN, wanHost+":8080"), lab.WAN)
			sees(when, lanHost+".", " > "+wanHost+".8080: Flags [S]", wanHost+".8080 > "+lanHost+".", "HTTP/1.0 200")
			expectName(b, when, fetch(b, lab.LAN, "["+wanHost6+"]:8080"), lab.WAN)
			sees(when, " > "+wanHost6+".8080: Flags [S]", wanHost6+".8080 > "+lanHost6+".")
			expectName(b, when, fetch(b, lab.LAN, wanHost+":8081"), lab.WAN)
			sees(when, fwWAN+".", " > "+wanHost+".8081: Flags [S]", wanHost+".8081 > "+fwWAN+".")
			expectName(b, when, fetch(b, lab.FW, wanHost+":8081"), lab.WAN)
			expectName(b, when, fetch(b, lab.LAN, fwLAN+":82"), lab.FW)
			sees(when, " > "+fwLAN+".82: Flags [S]", fwLAN+".82 > "+lanHost+".")
		}
		all("with a daemon")
		serveName(b, lab.WAN, 8083)
		expectName(b, "no copy is asked for", fetch(b, lab.LAN, "["+wanHost6+"]:8083"), lab.WAN)
		b.Run(lab.LAN, "iperf3", "-c", wanHost, "-n", "20M")
		b.Run(lab.LAN, "sh", "-c", "head -c 4000 /dev/zero | socat -b 8192 - UDP4-SENDTO:"+wanHost+":5400")
		sees("fragments", "5400: UDP, ", "ip-proto-17")
		for range 2 { // rules without state have each packet copied
			b.Run(lab.LAN, "sh", "-c", "echo each | socat - UDP4-SENDTO:"+wanHost+":5410,sourceport=5409")
			b.Run(lab.FW, "sh", "-c", "echo each | socat - UDP4-SENDTO:"+wanHost+":5411,sourceport=5409")
		}
		for _, text := range []string{lanHost + ".5409 > " + wanHost + ".5410", fwWAN + ".5409 > " + wanHost + ".5411"} {
			b.Until(lib.StartPatience, "the monitor sees each packet without a state", func() bool { return strings.Count(monitor.Said(), text) == 2 })
		}
		if said := monitor.Said(); strings.Contains(said, wanHost6+".8083") || strings.Contains(said, lanHost+".8081") {
			b.Errorf("the monitor has seen what it should not:\n%s", said)
		}
		if left := b.Packets("lan0", reason.UpCopy); (left > 100) != (b.Hook == "xdp") {
			b.Errorf("XDP has left %d packets to TCX", left)
		}
		daemon.Kill()
		b.Run(lab.FW, "ip", "neighbour", "flush", "dev", "wan1")
		all("without a daemon")
	})
}
