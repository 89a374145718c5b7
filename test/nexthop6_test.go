package test

import (
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// ownAddress is the only IPv4 address that the second uplink leads back to.
const ownAddress = "198.51.100.200"

// onlyIPv6Rules send IPv4 out by an uplink without IPv4: its gateway has an IPv6 address.
const onlyIPv6Rules = `
set skip on lo
match out on wan0 inet from (lan0:network) nat-to (wan0)
match out on wan1 inet from (lan0:network) nat-to ` + ownAddress + `
match out on wan1 inet6 from (lan0:network) nat-to (wan1)
block return
pass in on lan0
pass in on lan0 route-to (wan1 2001:db8:2::1) prefer-ipv6-nexthop proto tcp to port { 8080 5201 }
pass in on lan0 route-to (wan1 2001:db8:2::1) prefer-ipv6-nexthop inet proto icmp
pass in on lan0 inet proto tcp to port 8084 route-to { 203.0.113.1 2001:db8:2::1 } prefer-ipv6-nexthop
pass in on lan0 route-to (wan1 fe80::1) prefer-ipv6-nexthop inet proto tcp to port 8083
pass out on lan0
pass out on wan0
pass out on wan1
pass in on wan1 inet proto tcp to ` + ownAddress + ` port 80 rdr-to 192.168.1.10 reply-to 2001:db8:2::1 prefer-ipv6-nexthop
pass in on wan1 inet proto tcp to ` + ownAddress + ` port 81 reply-to 2001:db8:2::1 prefer-ipv6-nexthop
`

//	          ┌─ wan0 ── wan
//	lan ── fw ┤
//	          └─ wan1 ── isp, which has no IPv4 address on the link
//
// IPv4 packets go to a gateway of IPv6 (RFC 8950), also those of the box itself, while the
// neighbour is not known, and in turn with a gateway of IPv4, until it is dead.
func TestIPv6NextHops(t *testing.T) {
	weir.BothUplinks(t, func(b *lib.Box) {
		b.IP(lab.FW, "address del "+lib.FWISP+"/24 dev wan1", "address add "+ownAddress+"/32 dev lo")
		b.IP(lib.ISP, "address del "+lib.ISPHost+"/24 dev eth0", "route add "+ownAddress+"/32 via inet6 "+lib.FWISP6+" dev eth0",
			"address add fe80::1/64 dev eth0 nodad")
		for _, host := range []string{lab.WAN, lib.ISP} {
			for _, port := range []uint16{8080, 8083, 8084} {
				serveName(b, host, port)
			}
		}
		serveName(b, lab.LAN, 80)
		serveName(b, lab.FW, 81)
		daemon := b.WeirRun(onlyIPv6Rules)
		wan := listenAt(b, lab.WAN, far)
		for range 2 {
			b.Run(lab.FW, "ip", "neighbour", "flush", "dev", "wan1")
			expectName(b, "IPv4 by IPv6", fetch(b, lab.LAN, lib.FarHost+":8080"), lib.ISP)
			expectName(b, "IPv6", fetch(b, lab.LAN, "["+lib.FarHost6+"]:8080"), lib.ISP)
			expectName(b, "IPv4 by a link-local gateway", fetch(b, lab.LAN, lib.FarHost+":8083"), lib.ISP)
			expectName(b, "a connection that comes in", fetch(b, lib.ISP, ownAddress+":80", "--interface", lib.FarHost), lab.LAN)
			expectName(b, "one for the box", fetch(b, lib.ISP, ownAddress+":81", "--interface", lib.FarHost), lab.FW)
			b.Run(lab.FW, "ip", "neighbour", "flush", "dev", "wan1")
			if out := b.Run(lab.LAN, "ping", "-n", "-c", "20", "-i", "0.002", "-W", "2", lib.FarHost); !strings.Contains(out, "20 packets transmitted, 20 received") {
				b.Errorf("packets to an unknown neighbour:\n%s", out)
			}
		}
		iperfThrough(b, lab.LAN, lib.FarHost, lib.ISP)
		wan.end("IPv4 by a gateway of IPv6")
		names := map[string]int{}
		for range 6 {
			names[fetch(b, lab.LAN, lib.FarHost+":8084")]++
		}
		if names[lab.WAN] != 3 || names[lib.ISP] != 3 {
			b.Errorf("in turn: %v", names)
		}
		daemon.Kill()
		b.Run(lab.FW, "ip", "neighbour", "flush", "dev", "wan1")
		expectName(b, "without the daemon", fetch(b, lab.LAN, lib.FarHost+":8080"), lib.ISP)
		b.WeirRun(onlyIPv6Rules)
		b.IP(lib.ISP, "link set eth0 down")
		b.Until(20*time.Second, "the other gateway gets them all", func() bool {
			for range 3 {
				if fetch(b, lab.LAN, lib.FarHost+":8084", "-m", "1") != lab.WAN {
					return false
				}
			}
			return true
		})
	})
}
