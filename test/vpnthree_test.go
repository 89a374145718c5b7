package test

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/vpn/key"
	"weir/test/lib"
)

//	lan ── lan0 fw ══ wg0 ══ wan, a plain WireGuard
//	           wan1 ══ wg0 ══ isp, a plain WireGuard
//
// Three sites: what goes from one branch to the other comes in by wg0 and leaves by it. The rules see it both times.
func TestVPNThreeSites(t *testing.T) {
	weir.UplinksUnderTCX(t, func(b *lib.Box) {
		secret, public := vpnKeys(b)
		const all = "10.9.0.0/24,192.168.1.0/24,fd09::/64"
		wan := b.FarEndIn(lab.WAN, public, key.Secret{}, all+",10.3.0.0/16,fd03::/48", "10.9.0.2/24", "10.2.0.1/16", "fd09::2/64", "fd02::1/48")
		far := b.FarEndIn(lib.ISP, public, key.Secret{}, all+",10.2.0.0/16,fd02::/48", "10.9.0.3/24", "10.3.0.1/16", "fd09::3/64", "fd03::1/48")
		b.IP(lab.WAN, "route replace 192.168.1.0/24 dev "+lib.FarDevice, "route add 10.3.0.0/16 dev "+lib.FarDevice, "route add fd03::/48 dev "+lib.FarDevice)
		b.IP(lib.ISP, "route replace 192.168.1.0/24 dev "+lib.FarDevice, "route add 10.2.0.0/16 dev "+lib.FarDevice, "route add fd02::/48 dev "+lib.FarDevice)
		clear := b.ClearText("net 10.2.0.0/15 or net 10.9.0.0/24 or net fd02::/15")
		b.WeirRun(b.Rules(fmt.Sprintf(`wireguard wg0 key file "%s" address { 10.9.0.1/24 fd09::1/64 } engine userspace
peer near on wg0 key "%s" endpoint %s port %d allowed { 10.9.0.2 10.2.0.0/16 fd09::2 fd02::/48 }
peer far on wg0 key "%s" endpoint %s port %d allowed { 10.9.0.3 10.3.0.0/16 fd09::3 fd03::/48 }
block
pass in on lan0
pass out on { lan0 wan0 wan1 }
pass out on wg0
pass in on wan1 proto udp to port 51820
pass in on wg0 proto { icmp icmp6 }
pass in on wg0 proto tcp from 10.2.0.0/16 to 10.3.0.0/16 port 5201
`, secret, wan.Key, wanHost, wan.Port, far.Key, lib.ISPHost, far.Port)))
		vpnRun(b)
		b.Until(15*time.Second, "both branches are reached", func() bool {
			return tunnelAnswers(b, lab.LAN, "10.2.0.1") && tunnelAnswers(b, lab.LAN, "10.3.0.1")
		})
		for _, c := range [][3]string{
			{lab.WAN, "10.2.0.1", "10.3.0.1"}, {lib.ISP, "10.3.0.1", "10.2.0.1"}, {lab.WAN, "fd02::1", "fd03::1"}, {lib.ISP, "fd03::1", "fd02::1"},
			{lab.WAN, "10.2.0.1", lanHost}, {lib.ISP, "10.3.0.1", lanHost},
		} {
			b.Run(c[0], "ping", "-n", "-c", "2", "-i", "0.1", "-W", "2", "-I", c[1], c[2])
		}
		b.Listen(lib.ISP, 5201, "iperf3", "-s")
		b.Listen(lab.WAN, 5201, "iperf3", "-s")
		b.Logf("from branch to branch: %s", lastOf(b.Run(lab.WAN, "iperf3", "-c", "10.3.0.1", "-B", "10.2.0.1", "-n", "8M", "--bidir", "-f", "m")))
		if out, err := b.Try(lib.ISP, "iperf3", "-c", "10.2.0.1", "-B", "10.3.0.1", "-n", "1K", "--connect-timeout", "1000"); err == nil {
			b.Errorf("the rules block what comes the other way, and it passes: %s", out)
		}
		b.Tell("a branch gets another address under traffic from the other one", func(b *lib.Box) { branchRoams(b) })
		if seen := clear(); seen != "" {
			b.Errorf("packets left in clear:\n%s", seen)
		}
	})
}

// branchRoams changes the address of one branch, and then that of the headquarters there, under connections from branch to branch and
// echoes to it. What each sends next is answered at its new address.
func branchRoams(b *lib.Box) {
	b.Helper()
	length := lib.Scaled(10 * time.Second).Round(time.Second)
	client := b.Start(lab.WAN, "iperf3", "-c", "10.3.0.1", "-B", "10.2.0.1", "-P", "4", "--bidir", "-b", "1M", "-t", fmt.Sprint(length.Seconds()), "-i", "0.25", "-J")
	b.Until(10*time.Second, "the connections are there", func() bool { return len(b.States("proto", "tcp", "port", "5201")) >= 5 })
	follows := func(what string, move func()) {
		b.Helper()
		began := time.Now()
		move()
		b.Until(10*time.Second, "branches reach each other after "+what, func() bool {
			_, err := b.Try(lab.WAN, "ping", "-n", "-c", "1", "-W", "0.3", "-I", "10.2.0.1", "10.3.0.1")
			return err == nil
		})
		took := time.Since(began)
		if b.Logf("after %s: %v", what, took); took > lib.Scaled(3*time.Second) {
			b.Error("that is too late")
		}
	}
	const branch, headquarters = "192.0.2.77", "192.0.2.99"
	follows("another address of the branch", func() {
		b.IP(lib.ISP, "address del "+lib.ISPHost+"/24 dev eth0", "address add "+branch+"/24 dev eth0")
	})
	at := func(name string) (endpoint string) {
		for _, p := range tunnelsOf(b).Peers {
			if p.Name == name {
				endpoint = fmt.Sprint(p.Endpoint.Addr())
			}
		}
		return endpoint
	}
	if far, near := at("far"), at("near"); far != branch || near != wanHost {
		b.Errorf("the endpoints are %s and %s, want %s and %s", far, near, branch, wanHost)
	}
	follows("another address of the headquarters at that uplink", func() {
		b.IP(lab.FW, "address del "+lib.FWISP+"/24 dev wan1", "address add "+headquarters+"/24 dev wan1")
	})
	client.Wait(length+25*time.Second, 0)
	worst := 0
	for socket, bytes := range connections(b, client.Said()) {
		pause, sum := 0, uint64(0)
		for _, n := range bytes {
			if pause++; n > 0 {
				pause = 0
			}
			worst = max(worst, pause)
		}
		for _, n := range bytes[max(0, len(bytes)-8):] {
			sum += n
		}
		if sum == 0 {
			b.Errorf("connection %d does not go on: %v", socket, bytes)
		}
	}
	if b.Logf("a connection stood still for %d quarters of a second", worst); time.Duration(worst)*time.Second/4 > lib.Scaled(4*time.Second) {
		b.Error("that is too long")
	}
}
