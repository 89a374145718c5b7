package test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/vpn/keeper"
	"weir/internal/vpn/key"
	"weir/test/lib"
)

// vpnKeys writes the keys of wg0. It returns the file of the private key, and the public key.
func vpnKeys(b *lib.Box) (file string, public key.Public) {
	b.Helper()
	file = filepath.Join(b.TempDir(), "wg0.key")
	public, err := key.ParsePublic(strings.TrimSpace(b.Weir("vpn", "genkey", file)))
	if err != nil {
		b.Fatal(err)
	}
	return file, public
}

// wayInUse returns the way that weir says it uses to its only peer.
func wayInUse(b *lib.Box) (used *keeper.Way) {
	b.Helper()
	ways := tunnelOf(b).Peers[0].Ways
	for i := range ways {
		if ways[i].Used {
			used = &ways[i]
		}
	}
	if used == nil {
		b.Fatalf("no way is in use: %+v", ways)
	}
	return used
}

// awaitWay waits until a way is in use and answers. It returns how long that took.
func awaitWay(b *lib.Box, device string, patience time.Duration) time.Duration {
	b.Helper()
	began := time.Now()
	b.Until(patience, "the way by "+device+" is in use", func() bool {
		w := wayInUse(b)
		return w.Interface == device && w.State == keeper.WayAnswers
	})
	return time.Since(began)
}

//	          ┌─ wan0 ══ eth0 ┐
//	lan ── fw ┤               wan, a plain WireGuard at an address of its own
//	          └─ wan1 ══ eth1 ┘
//
// One uplink carries the tunnel. When it dies, without a word or with its carrier, the other does, and connections in
// the tunnel live on. Later the first one is used again, and no packet is lost.
func TestVPNFailover(t *testing.T) {
	weir.Both(t, func(b *lib.Box) {
		b.Wire("wan1", lab.WAN, "eth1")
		b.Address(lab.FW, "wan1", lib.FWISP+"/24", lib.FWISP6+"/64")
		b.Address(lab.WAN, "eth1", lib.ISPHost+"/24", lib.ISPHost6+"/64")
		b.Address(lab.WAN, "lo", lib.FarHost+"/32", lib.FarHost6+"/128")
		b.IP(lab.FW, "route add default via "+lib.ISPHost+" dev wan1 metric 200", "-6 route add default via "+lib.ISPHost6+" dev wan1 metric 2000")
		secret, public := vpnKeys(b)
		far := b.FarEnd(public, key.Secret{}, "10.9.0.1/32,192.168.1.0/24", "10.9.0.2/30", tunnelFar+"/16")
		b.IP(lab.WAN, "route add 192.168.1.0/24 dev "+lib.FarDevice, // wireguard-go lets routes choose its address
			"route replace 203.0.113.0/24 dev eth0 src "+lib.FarHost, "route replace 192.0.2.0/24 dev eth1 src "+lib.FarHost,
			"-6 route add 2001:db8:2::/64 dev eth1 metric 100 src "+lib.FarHost6)
		rules := func(endpoint string) string {
			return b.Rules(fmt.Sprintf(`wireguard wg0 key file "%s" address 10.9.0.1/30
peer far on wg0 key "%s" endpoint %s allowed { 10.9.0.2 10.2.0.0/16 }
block
pass in on lan0
pass out
`, secret, far.Key, endpoint))
		}
		both := func(host string) string {
			return fmt.Sprintf("{ %s port %d on wan0, %s port %d on wan1 }", host, far.Port, host, far.Port)
		}
		b.WeirRun(rules(both(lib.FarHost)))
		run := vpnRun(b)
		awaitWay(b, "wan0", 10*time.Second)
		b.Until(5*time.Second, "the tunnel works", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
		b.Until(5*time.Second, "the other way was tried", func() bool {
			ways := tunnelOf(b).Peers[0].Ways
			return len(ways) == 2 && ways[1].State == keeper.WayAnswers
		})
		b.Tell("silence", vpnSilence)
		b.Tell("back", func(b *lib.Box) {
			flood := b.Flood(lab.LAN, tunnelFar)
			took := awaitWay(b, "wan0", 70*time.Second)
			b.Logf("the first uplink was used again after %v", took)
			if took < lib.Scaled(20*time.Second) {
				b.Error("that is too soon")
			}
			flood.AllAnswered(1000)
		})
		b.Tell("carrier", func(b *lib.Box) {
			b.IP(lab.WAN, "link set eth0 down")
			took := awaitWay(b, "wan1", 10*time.Second)
			b.Logf("without a carrier, the other uplink was used after %v", took)
			if took > lib.Scaled(2*time.Second) {
				b.Error("that is too late")
			}
			b.Ping(lab.LAN, tunnelFar, 3)
			if said := run.Said(); !strings.Contains(said, "a peer is reached by another way") || !strings.Contains(said, "on wan1") {
				b.Errorf("weir vpn run says\n%s", said)
			}
			if out := b.Weir("vpn", "status"); !strings.Contains(out, "on wan1, in use: answers") || !strings.Contains(out, "on wan0: down") {
				b.Errorf("weir vpn status says\n%s", out)
			}
			b.IP(lab.WAN, "link set eth0 up")
		})
		b.Tell("one uplink over IPv6", func(b *lib.Box) {
			b.Weir("load", rules(fmt.Sprintf("%s port %d on wan1", lib.FarHost6, far.Port)))
			b.Until(10*time.Second, "the new way answers", func() bool {
				w := wayInUse(b)
				return w.Address.Addr().Is6() && w.State == keeper.WayAnswers && tunnelAnswers(b, lab.LAN, tunnelFar)
			})
			seen := b.Start(lab.WAN, "tcpdump", "-n", "-l", "-i", "eth1", "ip6 and udp and dst host "+lib.FarHost6)
			b.AwaitSaid(seen, "listening on")
			// wireguard-go at the far end sends its first packets over IPv6 after those over IPv4 to a wrong address: it
			// takes the structure of an IPv4 address from its pool, and copies only 4 of the 16 bytes (bind_std.go).
			b.Until(10*time.Second, "ten echo requests in a row are answered", func() bool {
				out, err := b.Try(lab.LAN, "ping", "-n", "-c", "10", "-i", "0.02", "-W", "0.3", tunnelFar)
				return err == nil && strings.Contains(out, "10 received")
			})
			b.Until(5*time.Second, "packets are seen on the uplink", func() bool { return strings.Count(seen.Said(), "UDP") >= 3 })
		})
		if out, status := b.WeirStatus("check", b.Rules(fmt.Sprintf("wireguard wg0 key file \"/x\" engine kernel\npeer far on wg0 key \"%s\" endpoint %s\n", far.Key, both("192.0.2.9")))); status == 0 || !strings.Contains(out, "engine userspace") {
			b.Errorf("the kernel's engine with two endpoints: %d, %s", status, out)
		}
	})
}

// vpnSilence has the first uplink die without a word, under a connection. It works again when this returns.
func vpnSilence(b *lib.Box) {
	b.Helper()
	b.Listen(lab.WAN, 5201, "iperf3", "-s", "-1")
	client := b.Start(lab.LAN, "iperf3", "-c", tunnelFar, "--bidir", "-b", "10M", "-t", "15", "-i", "0.25", "-J")
	time.Sleep(3 * time.Second)
	seen := b.Start(lab.WAN, "tcpdump", "-n", "-l", "-i", "eth1", "udp")
	b.AwaitSaid(seen, "listening on")
	b.Run(lab.WAN, "nft", `table inet cut {
	chain in { type filter hook prerouting priority -400; iifname "eth0" drop; }
	chain out { type filter hook postrouting priority 400; oifname "eth0" drop; }
}`)
	b.Logf("the other uplink was used after %v", awaitWay(b, "wan1", 10*time.Second))
	client.Wait(40*time.Second, 0)
	var report struct {
		Intervals []struct {
			Sum  struct{ Bytes uint64 }
			Back struct{ Bytes uint64 } `json:"sum_bidir_reverse"`
		}
	}
	if err := json.Unmarshal([]byte(client.Said()), &report); err != nil {
		b.Fatalf("iperf3: %v\n%s", err, client.Said())
	}
	pause, worst := 0, 0
	for _, i := range report.Intervals {
		if pause++; i.Back.Bytes > 0 {
			pause = 0
		}
		worst = max(worst, pause)
	}
	last := report.Intervals[len(report.Intervals)-4:]
	b.Logf("nothing came for %d of %d quarters of a second", worst, len(report.Intervals))
	if worst == 0 || time.Duration(worst)*time.Second/4 > lib.Scaled(7*time.Second) || last[0].Back.Bytes+last[1].Back.Bytes == 0 || last[0].Sum.Bytes+last[1].Sum.Bytes == 0 {
		b.Errorf("the connection: %+v", report.Intervals)
	}
	if n := strings.Count(seen.Said(), "UDP"); n < 100 {
		b.Errorf("on the other uplink only %d packets are seen", n)
	}
	b.Run(lab.WAN, "nft", "delete table inet cut")
}

//	          ┌─ wan0 ── wan, FarHost
//	lan ── fw ┤
//	          └─ wan1 ── isp, FarHost: a road warrior
//
// The default route leads to wan. What answers the road warrior leaves by the uplink that it came by.
func TestVPNAnswers(t *testing.T) {
	weir.BothUplinks(t, func(b *lib.Box) {
		secret, public := vpnKeys(b)
		b.IP(lib.ISP, "route replace 192.0.2.0/24 dev eth0 src "+lib.FarHost)
		b.IP(lab.FW, "route add default via "+lib.ISPHost+" dev wan1 metric 200")
		far := b.FarEndIn(lib.ISP, public, key.Secret{}, "10.9.0.1/32", "10.9.0.2/30")
		b.WeirRun(b.Rules(fmt.Sprintf(`wireguard wg0 key file "%s" address 10.9.0.1/30 engine userspace
peer far on wg0 key "%s" allowed 10.9.0.2
block
pass in on { wan0 wan1 } proto udp to port 51820
pass in on wg0 proto icmp
pass out
`, secret, far.Key)))
		vpnRun(b)
		wrong := b.Start(lab.WAN, "tcpdump", "-n", "-l", "-i", "eth0", "udp port 51820")
		b.AwaitSaid(wrong, "listening on")
		far.Meet(lib.FWISP + ":51820")
		b.Until(10*time.Second, "the road warrior gets answers", func() bool { return tunnelAnswers(b, lib.ISP, tunnelBox) })
		b.Ping(lib.ISP, tunnelBox, 3)
		b.Ping(lab.FW, "10.9.0.2", 3)
		if at := tunnelOf(b).Peers[0].Endpoint; at.Addr().String() != lib.FarHost {
			b.Errorf("the road warrior is at %v", at)
		}
		if strings.Contains(wrong.Said(), "UDP") {
			b.Errorf("what answers leaves by the other uplink:\n%s", wrong.Said())
		}
	})
}
