package test

import (
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// rtableRules route one port by another table.
const rtableRules = `
set skip on lo
match out on wan0 from (lan0:network) nat-to (wan0)
match out on wan1 from (lan0:network) nat-to (wan1)
match in on lan0 proto tcp to port 8081 rtable 7
scrub in on lan0 proto tcp from any to any port { 8082, 8084 } rtable 7
block return
pass in on lan0
pass in on lan0 proto tcp to port { 8080, 8082 } rtable 7
match in on lan0 proto tcp to port 8082 rtable 0
pass in on lan0 proto tcp to port 8083 rtable 8
pass in on lan0 inet6 proto tcp to 64:ff9b::/96 af-to inet from (wan1)
pass in on lan0 inet6 proto tcp to 64:ff9b::/96 port { 8080, 8082 } af-to inet from (wan1) rtable 7
pass in on lan0 inet6 proto tcp to 64:ff9b::/96 port 8083 af-to inet from (wan1) rtable 8
pass in on lan0 proto udp to port 5400:5401 no state rtable 7
pass out
pass in on wan1 proto udp from port 5400:5401 no state
`

//	          ┌─ wan0 ── wan     the main table
//	lan ── fw ┤
//	          └─ wan1 ── isp     table 7
//
// Rules look the route of packets up in another table, also of those that af-to translates. The
// box's own addresses stay local.
func TestRTable(t *testing.T) {
	weir.BothUplinks(t, func(b *lib.Box) {
		b.Run(lab.FW, "ip", "route", "add", "default", "via", lib.ISPHost, "table", "7")
		b.Run(lab.FW, "ip", "-6", "route", "add", "default", "via", lib.ISPHost6, "table", "7")
		for _, host := range []string{lab.WAN, lib.ISP} {
			for port := uint16(8080); port <= 8084; port++ {
				serveName(b, host, port)
			}
		}
		serveName(b, lab.FW, 8080)
		daemon := b.WeirRun(rtableRules)
		every := func() {
			b.Helper()
			for _, to := range []string{lib.FarHost, "[" + lib.FarHost6 + "]", "[64:ff9b::" + lib.FarHost + "]"} {
				expectName(b, "pass rtable 7", fetch(b, lab.LAN, to+":8080"), lib.ISP)
				expectName(b, "match rtable 7", fetch(b, lab.LAN, to+":8081"), lib.ISP)
				expectName(b, "scrub rtable 7", fetch(b, lab.LAN, to+":8084"), lib.ISP)
				expectName(b, "the rule that decides comes last", fetch(b, lab.LAN, to+":8082"), lib.ISP)
				if said := fetch(b, lab.LAN, to+":8083", "-m", "2"); said == lab.WAN || said == lib.ISP {
					b.Errorf("%s answers by an empty table", said)
				}
			}
			expectName(b, "the box itself", fetch(b, lab.LAN, fwLAN+":8080"), lab.FW)
		}
		every()
		b.Listen(lib.ISP, 5400, "socat", "-u", "UDP4-RECVFROM:5400,fork", "OPEN:/dev/null")
		isp := b.Start(lib.ISP, "tcpdump", "-n", "-l", "-i", "eth0", "--immediate-mode", "udp port 5401")
		b.AwaitSaid(isp, "listening on")
		b.Run(lab.LAN, "sh", "-c", "echo x | socat - UDP4-SENDTO:"+lib.FarHost+":5401")
		b.AwaitSaid(isp, lib.FarHost+".5401")
		daemon.Kill()
		b.Run(lab.FW, "ip", "neighbour", "flush", "dev", "wan1")
		every()
	})
}

//	          ┌─ wan0 ── wan
//	lan ── fw ┤
//	          └─ wan1, in the VRF with table 10 ── isp
//
// on rdomain names the interfaces of a VRF, and rtable routes into it.
func TestVRF(t *testing.T) {
	if !lib.Has(lib.VRF) {
		testenv.SkipOutside(t, "this kernel has no vrf devices; the emulated one has")
	}
	weir.BothUplinks(t, func(b *lib.Box) {
		b.IP(lab.FW, "link add red type vrf table 10", "link set red up", "link set wan1 master red",
			"route add default via "+lib.ISPHost+" table 10",
			"route add 192.168.1.0/24 dev lan0 table 10") // replies come in in the VRF, and are routed there
		serveName(b, lib.ISP, 8080)
		serveName(b, lab.WAN, 8080)
		b.WeirRun(`
set skip on lo
match out on wan1 from (lan0:network) nat-to (wan1)
pass
pass in on rdomain 10 inet proto icmp label "red"
pass in on ! rdomain 10 inet proto icmp label "not red"
pass in on rdomain 0 inet proto udp label "none"
pass in on lan0 inet proto tcp to port 8080 rtable 10
`)
		b.Run(lib.ISP, "ping", "-n", "-c", "2", "-i", "0.2", "-W", "2", lib.FWISP)
		b.Run(lab.LAN, "ping", "-n", "-c", "3", "-i", "0.2", "-W", "2", fwLAN)
		if red, other := b.Rule(`label "red"`).Packets, b.Rule(`label "not red"`).Packets; red != 4 || other != 6 {
			b.Errorf("%d packets of 2 pings in the VRF, %d of 3 outside", red, other)
		}
		expectName(b, "rtable 10", fetch(b, lab.LAN, lib.FarHost+":8080"), lib.ISP)
		time.Sleep(1100 * time.Millisecond) // the next hop is looked up again
		expectName(b, "rtable 10", fetch(b, lab.LAN, lib.FarHost+":8080"), lib.ISP)
	})
}
