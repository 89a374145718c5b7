package test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// fourPorts are those of the far end.
var fourPorts = []string{"51821", "51822", "51823", "51824"}

// outerSeen starts to look for packets that fw sends to the far end by a device of wan.
func outerSeen(b *lib.Box, device string) *lib.Process {
	b.Helper()
	seen := b.Start(lab.WAN, "tcpdump", "-n", "-l", "-i", device, "udp and dst host "+lib.FarHost+" and greater 300")
	b.AwaitSaid(seen, "listening on")
	return seen
}

// connections are those of iperf3: the bytes of each in every quarter of a second.
func connections(b *lib.Box, said string) map[int][]uint64 {
	b.Helper()
	var report struct {
		Intervals []struct {
			Streams []struct {
				Socket int
				Bytes  uint64
			}
		}
	}
	if err := json.Unmarshal([]byte(said), &report); err != nil {
		b.Fatalf("iperf3: %v\n%s", err, said)
	}
	all := map[int][]uint64{}
	for _, i := range report.Intervals {
		for _, s := range i.Streams {
			all[s.Socket] = append(all[s.Socket], s.Bytes)
		}
	}
	return all
}

//	          ┌─ wan0 ══ eth0 ┐
//	lan ── fw ┤               wan, a weir as well, at an address of its own
//	          └─ wan1 ══ eth1 ┘
//
// A link of four ports goes by one uplink. It is cut without a word under sixteen connections: all go on by the other, and
// all four ports with them. Later the first is used again, by all four ports, and no echo is lost.
func TestVPNWideUplinks(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.Wire("wan1", lab.WAN, "eth1")
		b.Address(lab.FW, "wan1", lib.FWISP+"/24")
		b.Address(lab.WAN, "eth1", lib.ISPHost+"/24")
		b.Address(lab.WAN, "lo", lib.FarHost+"/32")
		b.IP(lab.FW, "route add default via "+lib.ISPHost+" dev wan1 metric 200")
		twoSitesBy(b, fmt.Sprintf("{ %s port 51821 on wan0, %s port 51821 on wan1 }", lib.FarHost, lib.FarHost), "wide 4")
		awaitWay(b, "wan0", 10*time.Second)
		fourUsed := func() {
			b.Helper()
			b.Until(15*time.Second, "four ports are used", func() bool { return usedPorts(b) == 4 })
		}
		fourUsed()
		b.Listen(lab.WAN, 5201, "iperf3", "-s")
		b.Tell("an uplink is cut", func(b *lib.Box) {
			client := b.Start(lab.LAN, "iperf3", "-c", tunnelFar, "-P", "8", "--bidir", "-b", "2M", "-t", "16", "-i", "0.25", "-J")
			time.Sleep(3 * time.Second)
			seen := outerSeen(b, "eth1")
			b.Run(lab.WAN, "nft", `table inet cut {
	chain in { type filter hook prerouting priority -400; iifname "eth0" drop; }
	chain out { type filter hook postrouting priority 400; oifname "eth0" drop; }
}`)
			b.Logf("the other uplink was used after %v", awaitWay(b, "wan1", 10*time.Second))
			fourUsed()
			client.Wait(40*time.Second, 0)
			if _, to := outerPorts(seen.Said()); !slices.Equal(to, fourPorts) {
				b.Errorf("by the other uplink packets went to the ports %v", to)
			}
			all := connections(b, client.Said())
			if len(all) != 16 {
				b.Errorf("there were %d connections", len(all))
			}
			worst := 0
			for socket, bytes := range all {
				pause := 0
				for _, n := range bytes {
					if pause++; n > 0 {
						pause = 0
					}
					worst = max(worst, pause)
				}
				if last := bytes[len(bytes)-12:]; slices.Max(last) == 0 {
					b.Errorf("connection %d does not go on: %v", socket, bytes)
				}
			}
			b.Logf("a connection stood still for %d quarters of a second", worst)
			if worst < 4 || time.Duration(worst)*time.Second/4 > lib.Scaled(8*time.Second) {
				b.Errorf("a connection stood still for %d quarters of a second", worst)
			}
			if out := b.Weir("vpn", "status"); !strings.Contains(out, "on wan1, in use: answers") || !strings.Contains(out, "wide: 4 of 4 ports in use") {
				b.Errorf("weir vpn status says\n%s", out)
			}
		})
		b.Tell("it works again", func(b *lib.Box) {
			b.Run(lab.WAN, "nft", "delete table inet cut")
			flood := b.Flood(lab.LAN, tunnelFar)
			b.Logf("the first uplink was used again after %v", awaitWay(b, "wan0", 70*time.Second))
			fourUsed()
			flood.AllAnswered(1000)
			first, other := outerSeen(b, "eth0"), outerSeen(b, "eth1")
			b.Run(lab.LAN, "iperf3", "-c", tunnelFar, "-P", enoughForAll, "-t", "3", "-b", "1M")
			if _, to := outerPorts(first.Said()); !slices.Equal(to, fourPorts) {
				b.Errorf("by the first uplink packets went to the ports %v", to)
			}
			if _, to := outerPorts(other.Said()); len(to) != 0 {
				b.Errorf("by the other uplink packets go to the ports %v still", to)
			}
			fourUsed()
		})
	})
}
