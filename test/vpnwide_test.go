package test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/vpn/keeper"
	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
	"weir/test/lib"
)

// enoughForAll is how many connections use each of four ports, as a hash spreads them: hardly ever one is left out.
// With 16 that happens in 4 of 100 runs.
const enoughForAll = "48"

// usedPorts returns how many ports of the link to its peer wg0 uses.
func usedPorts(b *lib.Box) int {
	b.Helper()
	if w := tunnelOf(b).Peers[0].Wide; w != nil {
		return w.Used
	}
	return 1
}

// outerPorts returns the ports of fw that have sent packets of a size to wan, and those that were sent to, as tcpdump has
// seen them at the outer wire.
func outerPorts(said string) (from, to []string) {
	line := regexp.MustCompile(`\.(\d+) > [0-9.]+\.(\d+): UDP, length (\d{3,})`)
	for _, m := range line.FindAllStringSubmatch(said, -1) {
		if !slices.Contains(from, m[1]) {
			from = append(from, m[1])
		}
		if !slices.Contains(to, m[2]) {
			to = append(to, m[2])
		}
	}
	slices.Sort(from)
	slices.Sort(to)
	return from, to
}

//	lan ── fw ══ wg0, four ports ══ wan, a weir as well
//
// Connections are spread over the ports, and the link is one in all that is shown. The far end is killed and comes again;
// a port is blocked. Connections live on.
func TestVPNWide(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		_, far, rulesWith := twoSites(b, "wide 4")
		b.Until(10*time.Second, "four ports are used", func() bool { return usedPorts(b) == 4 })
		b.Listen(lab.WAN, 5201, "iperf3", "-s")
		b.Tell("spread", func(b *lib.Box) {
			seen := b.Start(lab.WAN, "tcpdump", "-n", "-l", "-i", "eth0", "udp and dst host "+wanHost+" and greater 300")
			b.AwaitSaid(seen, "listening on")
			b.Logf("%s", lastOf(b.Run(lab.LAN, "iperf3", "-c", tunnelFar, "-P", enoughForAll, "-t", "3", "-b", "3M", "-f", "m")))
			from, to := outerPorts(seen.Said())
			if want := []string{"51820", "51821", "51822", "51823"}; !slices.Equal(from, want) {
				b.Errorf("packets left from the ports %v, want %v", from, want)
			}
			if want := []string{"51821", "51822", "51823", "51824"}; !slices.Equal(to, want) {
				b.Errorf("packets went to the ports %v, want %v", to, want)
			}
		})
		b.Tell("one link", func(b *lib.Box) {
			s := tunnelOf(b)
			p := &s.Peers[0]
			var sum uint64
			for _, port := range p.Wide.Ports {
				sum += port.Sent
				if !port.Works || port.Sent < 1e5 || port.Received < 1e3 {
					b.Errorf("a port of the link: %+v", port)
				}
			}
			if len(p.Wide.Ports) != 4 || p.Sent < sum || p.Wide.Why != "" {
				b.Errorf("the link has sent %d, its ports %d: %+v", p.Sent, sum, p.Wide)
			}
			if out := b.Weir("vpn", "status"); strings.Count(out, "public key") != 2 || !strings.Contains(out, "wide: 4 of 4 ports in use") {
				b.Errorf("weir vpn status:\n%s", out)
			}
			if out := b.Weir("vpn", "check", "far"); !strings.Contains(out, "ok     ports: 4 of 4 ports carry the link") {
				b.Errorf("weir vpn check:\n%s", out)
			}
			b.Until(10*time.Second, "weir vpn log has it", func() bool { // what stays so for 3 s
				return strings.Contains(b.Weir("vpn", "log"), "wide: 4 of 4 ports in use")
			})
			if out := b.Weir("vpn", "export", "-f", b.Rules(rulesWith("wide 4")), "wg0"); strings.Count(out, "[Peer]") != 1 {
				b.Errorf("weir vpn export:\n%s", out)
			}
			if out := b.Weir("vpn", "affinity"); strings.Count(out, "Queues of wg0") > 1 {
				b.Errorf("weir vpn affinity:\n%s", out)
			}
		})
		b.Tell("a port is blocked", func(b *lib.Box) {
			b.Run(lab.WAN, "nft", "add table inet shut; add chain inet shut in { type filter hook prerouting priority -300; }; add rule inet shut in udp dport 51823 drop")
			bulk := b.Start(lab.LAN, "iperf3", "-c", tunnelFar, "-P", enoughForAll, "-t", "6", "-b", "1M")
			b.Until(10*time.Second, "three ports are used", func() bool { return usedPorts(b) == 3 })
			bulk.Wait(30*time.Second, 0)
			if out, status := b.WeirStatus("vpn", "check", "far"); status != 1 || !strings.Contains(out, "wrong  ports: 3 of 4 ports carry the link: ") || !strings.Contains(out, "(51822)") {
				b.Errorf("weir vpn check: %d\n%s", status, out)
			}
			b.Run(lab.WAN, "nft", "delete table inet shut")
			b.Until(20*time.Second, "four ports are used again", func() bool { return usedPorts(b) == 4 })
		})
		b.Tell("the far end is another process", func(b *lib.Box) {
			far.Kill()
			bulk := b.Start(lab.LAN, "iperf3", "-c", tunnelFar, "-P", "4", "-t", "8", "-b", "5M")
			time.Sleep(300 * time.Millisecond)
			began := time.Now()
			b.Start(lab.WAN, string(weir), "vpn", "run")
			b.Until(10*time.Second, "the tunnel works again", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
			took := time.Since(began)
			b.Logf("the tunnel worked again after %v", took)
			if took > lib.Scaled(2*time.Second) {
				b.Error("that is too late")
			}
			b.Until(10*time.Second, "four ports are used again", func() bool { return usedPorts(b) == 4 })
			bulk.Wait(30*time.Second, 0)
		})
	})
}

//	lan ── fw ══ wg0, to be wide ══ wan, wireguard-go or the kernel's WireGuard
//
// A plain WireGuard at the other end is reached by one port. It hears little of what weir would like to know, at no other
// port, and is not heard to complain.
func TestVPNWidePlain(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		secret := filepath.Join(b.TempDir(), "wg0.key")
		public, err := key.ParsePublic(strings.TrimSpace(b.Weir("vpn", "genkey", secret)))
		if err != nil {
			b.Fatal(err)
		}
		far := b.FarEnd(public, key.Secret{}, "10.9.0.1/32,192.168.1.0/24", "10.9.0.2/30", tunnelFar+"/16")
		b.IP(lab.WAN, "route add 192.168.1.0/24 dev "+lib.FarDevice)
		rules := fmt.Sprintf(`wireguard wg0 key file "%s" address 10.9.0.1/30
peer far on wg0 key "%s" endpoint %s port %d allowed { 10.9.0.2 10.2.0.0/16 } wide 4
block
pass in on lan0
pass out
`, secret, far.Key, wanHost, far.Port)
		seen := b.Start(lab.WAN, "tcpdump", "-n", "-l", "-i", "eth0", "udp or icmp")
		b.AwaitSaid(seen, "listening on")
		inside := b.Start(lab.WAN, "tcpdump", "-n", "-l", "-i", lib.FarDevice)
		b.AwaitSaid(inside, "listening on")
		b.WeirRun(b.Rules(rules))
		vpnRun(b)
		b.Until(10*time.Second, "the tunnel works", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
		b.Listen(lab.WAN, 5201, "iperf3", "-s")
		b.Logf("%s", lastOf(b.Run(lab.LAN, "iperf3", "-c", tunnelFar, "-P", "8", "-t", "3", "-b", "5M", "-f", "m")))
		var w *tunnel.Wide
		b.Until(10*time.Second, "weir says why the link is not wide", func() bool {
			w = tunnelOf(b).Peers[0].Wide
			return w != nil && strings.Contains(w.Why, "does not answer as a weir does")
		})
		if w.Used != 1 || len(w.Ports) != 1 {
			b.Errorf("the link has %+v", w)
		}
		_, to := outerPorts(seen.Said())
		for _, p := range to {
			if p != fmt.Sprint(far.Port) && p != "51820" {
				b.Errorf("packets went to port %s", p)
			}
		}
		count := func() int { return strings.Count(seen.Said(), ": UDP, length ") }
		before := count()
		b.Until(20*time.Second, "no data is under way", func() bool {
			was := before
			time.Sleep(1500 * time.Millisecond)
			before = count()
			return before-was <= 1 // a note
		})
		time.Sleep(10 * time.Second)
		if n := count() - before; n > 6 { // notes, and keepalives that answer them
			all := strings.Split(seen.Said(), "\n")
			b.Errorf("in 10 s without data there were %d messages:\n%s", n, strings.Join(all[max(0, len(all)-n-1):], "\n"))
		}
		why := func() string { return tunnelOf(b).Why }
		if got := why(); got != "the kernel's WireGuard has no wide links" {
			b.Errorf("the engine is in user space, as %s", got)
		}
		b.Weir("load", b.Rules(strings.Replace(rules, "\npeer", " engine userspace\npeer", 1)))
		b.Until(5*time.Second, "weir says why the engine is in user space now", func() bool { return why() == "the configuration says so" })
		if said := seen.Said() + inside.Said(); strings.Contains(said, "unreachable") {
			b.Errorf("the peer was disturbed:\n%s", said)
		}
	})
}

//	lan ── fw ══ wg0 ══ wan, a weir as well
//
// The link becomes wide under traffic, has fewer and more ports, and is narrow again: no echo is lost.
func TestVPNWideOn(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		_, _, rulesWith := twoSites(b, "wide auto")
		b.Weir("load", b.Rules(rulesWith("")))
		b.Until(10*time.Second, "one port is used", func() bool { return usedPorts(b) == 1 })
		b.Listen(lab.WAN, 5201, "iperf3", "-s")
		bulk := b.Start(lab.LAN, "iperf3", "-c", tunnelFar, "-P", "4", "-t", "60", "-b", "5M")
		var floods []*lib.Flood
		for i := range 6 { // by different ports
			to := fmt.Sprintf("10.2.0.%d", 10+i)
			b.Address(lab.WAN, "lo", to+"/32")
			floods = append(floods, b.FloodEvery(lab.LAN, to, 10*time.Millisecond))
		}
		for _, step := range []struct {
			wide string
			used int
		}{{"wide 2", 2}, {"wide auto", 0}, {"", 1}, {"wide 2", 2}, {"", 1}} {
			b.Weir("load", b.Rules(rulesWith(step.wide)))
			b.Until(15*time.Second, "the link is as "+step.wide+" says", func() bool {
				used := usedPorts(b)
				return used == step.used || step.used == 0 && used > 1
			})
			time.Sleep(2 * time.Second)
		}
		for _, f := range floods {
			f.AllAnswered(500)
		}
		bulk.Kill()
		if s := tunnelOf(b); s.Peers[0].Session != keeper.Current {
			b.Errorf("weir vpn status: %+v", s)
		}
	})
}

//	lan ── fw, whose outer packets get other ports ══ wg0 ══ wan, a weir as well
//
// Behind a NAT that changes ports the other end knows them only from what comes, so this end begins by each.
func TestVPNWideNAT(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.Run(lab.FW, "nft", "add table ip outer; add chain ip outer post { type nat hook postrouting priority 100; }; add rule ip outer post udp dport 51821-51824 masquerade to :40000-50000 random")
		twoSites(b, "wide 4")
		b.Until(15*time.Second, "four ports are used", func() bool { return usedPorts(b) == 4 })
		var w *tunnel.Wide
		b.Until(5*time.Second, "the far end uses four ports, too", func() bool {
			var all []keeper.Status
			if err := json.Unmarshal([]byte(farWeir(b, "vpn", "status", "--json")), &all); err != nil || len(all) != 1 || len(all[0].Peers) != 1 || all[0].Peers[0].Wide == nil {
				b.Fatalf("weir vpn status in wan: %v, %+v", err, all)
			}
			w = all[0].Peers[0].Wide
			return w.Used == 4
		})
		for _, p := range w.Ports {
			if port := p.Endpoint.Port(); port < 40000 || port > 50000 {
				b.Errorf("a port of the link, as the far end has it: %+v", p)
			}
		}
		b.Listen(lab.WAN, 5201, "iperf3", "-s")
		for _, way := range []string{"-b0", "-R"} {
			b.Logf("%s", lastOf(b.Run(lab.LAN, "iperf3", "-c", tunnelFar, "-P", "8", "-n", "4M", way, "-f", "m")))
		}
	})
}
