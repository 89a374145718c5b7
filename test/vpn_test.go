package test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/vpn/keeper"
	"weir/internal/vpn/key"
	"weir/test/lib"
)

// Addresses inside the tunnel of TestVPN.
const (
	tunnelFar  = "10.2.0.1" // behind the far end
	tunnelFar6 = "fd02::1"
	tunnelBox  = "10.9.0.1"
)

// vpnRun starts weir vpn run and waits until it is ready.
func vpnRun(b *lib.Box) *lib.Process {
	b.Helper()
	p := b.WeirCommand("vpn", "run")
	b.AwaitSaid(p, "weir: ready")
	return p
}

// tunnelOf returns what weir says about wg0.
func tunnelOf(b *lib.Box) keeper.Status {
	b.Helper()
	s := tunnelsOf(b)
	if len(s.Peers) != 1 {
		b.Fatalf("weir vpn status: %+v", s)
	}
	return s
}

// tunnelsOf likewise returns it of a tunnel with several peers.
func tunnelsOf(b *lib.Box) keeper.Status {
	b.Helper()
	all := lib.WeirJSON[[]keeper.Status](b, "vpn", "status")
	if len(all) != 1 || all[0].Interface != "wg0" {
		b.Fatalf("weir vpn status: %+v", all)
	}
	return all[0]
}

// tunnelAnswers reports whether a host gets an answer through the tunnel.
func tunnelAnswers(b *lib.Box, from, to string) bool {
	b.Helper()
	_, err := b.Try(from, "ping", "-n", "-c", "1", "-W", "0.3", to)
	return err == nil
}

// noTunnelAnswers sends through the tunnel, which must not work.
func noTunnelAnswers(b *lib.Box) {
	b.Helper()
	for _, to := range []string{tunnelFar, tunnelFar6} {
		for _, from := range []string{lab.LAN, lab.FW} {
			if tunnelAnswers(b, from, to) {
				b.Errorf("%s reaches %s without a tunnel", from, to)
			}
		}
	}
}

//	lan ── lan0 fw wan0 ══ wg0 in UDP ══ wan, a plain WireGuard
//
// The tunnel is in the rules; its packets meet them at wg0. Nothing that is meant for it leaves by wan0
// in clear, whatever becomes of weir vpn run, of the interface, or of the rules.
func TestVPN(t *testing.T) {
	weir.Both(t, func(b *lib.Box) {
		dir := b.TempDir()
		secret, psk, preshared := filepath.Join(dir, "wg0.key"), filepath.Join(dir, "far.psk"), key.NewPreshared()
		public, err := key.ParsePublic(strings.TrimSpace(b.Weir("vpn", "genkey", secret)))
		if err != nil {
			b.Fatal(err)
		}
		if err := key.WriteFile(psk, preshared); err != nil {
			b.Fatal(err)
		}
		far := b.FarEnd(public, preshared, "10.9.0.1/32,fd09::1/128,fd00:1::/64", "10.9.0.2/30", tunnelFar+"/16", "fd09::2/64", tunnelFar6+"/48")
		b.IP(lab.WAN, "route add fd00:1::/64 dev "+lib.FarDevice)
		engine := ""
		if far.Kernel {
			engine = "engine userspace" // the kernel's own is told about below
		}
		tunnel := func(engine string) string {
			return fmt.Sprintf(`wireguard wg0 key file "%s" mtu 1420 address { 10.9.0.1/30 fd09::1/64 } %s
peer far on wg0 key "%s" psk file "%s" endpoint %s port %d allowed { 10.9.0.2 10.2.0.0/16 fd09::2 fd02::/48 }
`, secret, engine, far.Key, psk, wanHost, far.Port)
		}
		const rules = `match out on wg0 inet from (lan0:network) nat-to (wg0)
block
pass in on lan0
pass out
pass in on wg0 proto { icmp icmp6 }
`
		clear := b.Start(lab.WAN, "tcpdump", "-n", "-l", "-i", "eth0", "net 10.2.0.0/16 or net 10.9.0.0/30 or net fd02::/48 or net fd09::/64")
		b.AwaitSaid(clear, "listening on")
		daemon := b.WeirRun(b.Rules(tunnel(engine) + rules))
		b.Tell("before the tunnel", noTunnelAnswers)
		run := vpnRun(b)
		b.Until(10*time.Second, "the tunnel works", func() bool { return tunnelAnswers(b, lab.FW, tunnelFar) })
		if s := tunnelOf(b); s.Engine != "userspace" || s.Peers[0].Session != keeper.Current || s.Peers[0].Endpoint.String() != fmt.Sprintf("%s:%d", wanHost, far.Port) || s.Peers[0].Received == 0 || *s.Key != public {
			b.Errorf("weir vpn status: %+v", s)
		}
		if why := tunnelOf(b).Why; !strings.Contains(b.Weir("interfaces"), "the tunnel wg0 has the engine userspace: "+why+"\n") {
			b.Errorf("weir interfaces does not say that the engine is userspace, as %s:\n%s", why, b.Weir("interfaces"))
		}
		b.AwaitHook("wg0")
		b.Until(5*time.Second, "(wg0) has its address", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
		b.Tell("packets", vpnPackets)
		b.Tell("why nothing goes", vpnChecks)
		if out := b.Run(lab.FW, "grep", "-E", "CapEff|CapPrm|NoNewPrivs:.*1", fmt.Sprintf("/proc/%d/status", run.PID())); strings.Count(out, "\t0000000000003400\n") != 2 || strings.Count(out, "\n") != 3 {
			b.Errorf("weir vpn run has\n%s", out)
		}
		flood := b.Flood(lab.LAN, tunnelFar)
		time.Sleep(200 * time.Millisecond)
		daemon.Kill()
		time.Sleep(200 * time.Millisecond)
		b.WeirRun(b.Rules(tunnel(engine) + rules))
		flood.AllAnswered(100)
		b.Tell("weir vpn run is killed", func(part *lib.Box) {
			part.Flood(lab.LAN, tunnelFar) // it ends with the part
			run.Kill()
			noTunnelAnswers(part)
			began := time.Now()
			run = vpnRun(b)
			part.Until(10*time.Second, "the tunnel works again", func() bool { return tunnelAnswers(part, lab.LAN, tunnelFar) })
			took := time.Since(began)
			part.Logf("the tunnel worked again after %v", took)
			if took > lib.Scaled(2*time.Second) {
				part.Error("that is too late")
			}
		})
		b.Tell("another option and back, under traffic", func(b *lib.Box) {
			flood := b.Flood(lab.LAN, tunnelFar)
			for _, option := range []string{"dscp copy", ""} {
				time.Sleep(300 * time.Millisecond)
				b.Weir("load", b.Rules(strings.Replace(tunnel(engine), "mtu 1420", option+" mtu 1420", 1)+rules))
			}
			time.Sleep(time.Second) // weir vpn run reads the tunnels
			flood.AllAnswered(100)
		})
		b.Tell("other keys", vpnReconnect)
		b.Tell("others", vpnOthers)
		b.Tell("faults", func(b *lib.Box) { vpnFaults(b, tunnel(engine), rules, secret) })
		run.Signal(syscall.SIGTERM)
		run.Wait(10*time.Second, 0)
		b.IP(lab.FW, "link del wg0")
		noTunnelAnswers(b)
		for _, to := range []string{tunnelBox, "fd09::7"} {
			if out, err := b.Try(lab.FW, "ip", "route", "get", to); err == nil {
				b.Errorf("without the interface, there is a route to its network: %s", out)
			}
		}
		run = vpnRun(b)
		b.Until(10*time.Second, "the tunnel works again", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
		b.IP(lab.FW, "link del wg0")
		b.Until(10*time.Second, "weir vpn run makes it again", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar6) })
		if far.Kernel {
			b.Tell("the kernel's engine", func(b *lib.Box) {
				b.Weir("load", b.Rules(tunnel("")+rules))
				b.Until(10*time.Second, "the kernel has the tunnel", func() bool { return tunnelOf(b).Engine == "kernel" && tunnelAnswers(b, lab.LAN, tunnelFar6) })
				vpnPackets(b)
			})
		}
		if said := clear.Said(); strings.Contains(said, "IP ") || strings.Contains(said, "IP6 ") {
			b.Errorf("packets left in clear:\n%s", said)
		}
		b.Tell("the end", func(b *lib.Box) {
			b.Weir("load", b.Rules(rules[strings.Index(rules, "block"):]))
			b.Until(10*time.Second, "the tunnel is gone", func() bool {
				return !strings.Contains(b.Run(lab.FW, "ip", "-o", "link"), "wg0:") && b.Run(lab.FW, "ip", "route", "show", "proto", "119")+b.Run(lab.FW, "ip", "-6", "route", "show", "proto", "119") == ""
			})
			b.Weir("load", b.Rules(tunnel(engine)+rules))
			b.Until(10*time.Second, "the tunnel is back", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
			if out, status := b.WeirStatus("vpn", "down"); status != 1 || !strings.Contains(out, keeper.ErrHeld.Error()) {
				b.Errorf("weir vpn down beside weir vpn run: %d, %s", status, out)
			}
			run.Kill()
			b.Weir("vpn", "down")
			if out := b.Run(lab.FW, "ip", "-o", "link") + b.Run(lab.FW, "ip", "route", "show", "proto", "119"); strings.Contains(out, "wg0") || strings.Contains(out, "blackhole") {
				b.Errorf("after weir vpn down: %s", out)
			}
		})
	})
}

// vpnPackets sends packets through the tunnel, from and to everywhere.
func vpnPackets(b *lib.Box) {
	b.Helper()
	for _, to := range []string{tunnelFar, tunnelFar6} {
		b.Ping(lab.LAN, to, 3)
		b.Ping(lab.FW, to, 3)
	}
	b.Ping(lab.WAN, tunnelBox, 3)
	b.Ping(lab.WAN, "fd09::1", 3)
	b.Run(lab.LAN, "ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", "1392", tunnelFar)
	if out, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", "1393", tunnelFar); err == nil || !strings.Contains(out, "1420") {
		b.Errorf("a packet of 1421 bytes: %s", out)
	}
	translated := false
	for _, s := range b.States("proto", "icmp", "host", tunnelFar) {
		translated = translated || strings.Contains(fmt.Sprintf("%+v", s), tunnelBox)
	}
	if !translated {
		b.Errorf("no connection is translated to %s: %+v", tunnelBox, b.States("host", tunnelFar))
	}
	for i, to := range []string{tunnelFar, tunnelFar6} {
		for j, way := range []string{"-b0", "-R"} {
			for k, from := range []string{lab.LAN, lab.FW} {
				port := uint16(5600 + 4*i + 2*j + k)
				b.Listen(lab.WAN, port, "iperf3", "-s", "-1", "-p", fmt.Sprint(port))
				out := b.Run(from, "iperf3", "-c", to, "-p", fmt.Sprint(port), "-n", "4M", way, "-f", "m")
				b.Logf("%s to %s %s:%s", from, to, way, lastOf(out))
			}
		}
	}
	dial := net.JoinHostPort(tunnelBox, "7")
	if out, err := b.Try(lab.WAN, "curl", "-s", "--max-time", "1", "http://"+dial); err == nil || strings.Contains(out, "refused") {
		b.Errorf("what the rules block at wg0 comes in: %s, %v", out, err)
	}
}

// vpnReconnect has both ends agree on other keys, by command. Nothing else changes.
func vpnReconnect(b *lib.Box) {
	b.Helper()
	all := func() string {
		return b.Run(lab.FW, "ip", "route", "show", "dev", "wg0") + b.Run(lab.FW, "ip", "-6", "route", "show", "dev", "wg0") + b.Run(lab.FW, "ip", "-o", "address", "show", "dev", "wg0")
	}
	routes, before := all(), tunnelOf(b).Peers[0]
	b.Weir("vpn", "reconnect", "far")
	b.Until(10*time.Second, "there are other keys", func() bool {
		return tunnelAnswers(b, lab.LAN, tunnelFar6) && tunnelOf(b).Peers[0].Handshake.After(before.Handshake)
	})
	b.Ping(lab.LAN, tunnelFar, 3)
	if now := all(); now != routes || tunnelOf(b).Peers[0].Endpoint != before.Endpoint {
		b.Errorf("after weir vpn reconnect: %+v, was %+v\n%s\nwas\n%s", tunnelOf(b).Peers[0], before, now, routes)
	}
	if out, status := b.WeirStatus("vpn", "reconnect", "near"); status != 1 || !strings.Contains(out, "no WireGuard tunnel of the rules in force has a peer near") {
		b.Errorf("a peer that is not there: %d, %s", status, out)
	}
}

// vpnOthers removes what the tunnel needs, as others may. weir vpn run adds it again.
func vpnOthers(b *lib.Box) {
	b.Helper()
	all := func() string {
		return b.Run(lab.FW, "ip", "route", "show", "proto", "119") + b.Run(lab.FW, "ip", "-6", "route", "show", "proto", "119") + b.Run(lab.FW, "ip", "-o", "-4", "address", "show", "dev", "wg0")
	}
	before := all()
	for _, what := range []string{"route del 10.2.0.0/16 metric 20", "route del blackhole 10.2.0.0/16 metric 30", "-6 route del blackhole fd09::/64 metric 300", "address del 10.9.0.1/30 dev wg0"} {
		b.IP(lab.FW, what)
	}
	b.Until(15*time.Second, "weir vpn run adds what is missing", func() bool { return all() == before })
	b.Until(5*time.Second, "(wg0) has its address", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
}

// vpnFaults loads what is wrong. The tunnel stays as it is.
func vpnFaults(b *lib.Box, tunnel, rules, secret string) {
	b.Helper()
	wrong := b.Rules(strings.Replace(tunnel, "key file", "key", 1) + rules)
	if out, status := b.WeirStatus("load", wrong); status != 1 || !strings.Contains(out, "weir reads no secret key") {
		b.Errorf("a wrong file: %d, %s", status, out)
	}
	b.Ping(lab.LAN, tunnelFar, 1)
	if err := os.Chmod(secret, 0o644); err != nil {
		b.Fatal(err)
	}
	b.Weir("load", b.Rules(strings.Replace(tunnel, "mtu 1420", "mtu 1400", 1)+rules))
	b.Until(5*time.Second, "weir says that others may read the key", func() bool { return strings.Contains(tunnelOf(b).Problem, "chmod 600") })
	b.Ping(lab.LAN, tunnelFar, 1)
	if err := os.Chmod(secret, 0o600); err != nil {
		b.Fatal(err)
	}
	b.Until(5*time.Second, "the tunnel has its new MTU", func() bool { return strings.Contains(b.Run(lab.FW, "ip", "link", "show", "wg0"), "mtu 1400") })
	b.Until(5*time.Second, "weir has no problem", func() bool { return tunnelOf(b).Problem == "" })
	b.Ping(lab.LAN, tunnelFar6, 1)
	b.Weir("load", b.Rules(tunnel+rules))
	b.Until(5*time.Second, "the tunnel has its old MTU", func() bool { return strings.Contains(b.Run(lab.FW, "ip", "link", "show", "wg0"), "mtu 1420") })
}

// vpnChecks has weir find what is wrong.
func vpnChecks(b *lib.Box) {
	b.Helper()
	if out, status := b.WeirStatus("vpn", "check", "far"); status != 0 || strings.Count(out, "ok ") != 7 {
		b.Errorf("nothing is wrong: %d\n%s", status, out)
	}
	for _, c := range []struct{ host, spoil, mend, answer string }{
		{lab.FW, "route add 10.2.0.0/24 via " + wanHost, "route del 10.2.0.0/24", "wrong  routes: the route to 10.2.0.0/16 leads through wan0"},
		{lab.WAN, "address del 10.2.0.1/16 dev " + lib.FarDevice, "address add 10.2.0.1/16 dev " + lib.FarDevice, "one way: "},
		{lab.WAN, "link set eth0 mtu 1400", "link set eth0 mtu 1500", "wrong  MTU: packets of more than "},
	} {
		b.IP(c.host, c.spoil)
		if out, _ := b.WeirStatus("vpn", "check", "far", "--to", tunnelFar); !strings.Contains(out, c.answer) {
			b.Errorf("after ip %s, weir vpn check says\n%s", c.spoil, out)
		}
		b.IP(c.host, c.mend)
	}
	b.Address(lab.WAN, lib.FarDevice, "10.66.0.1/32")
	b.Try(lab.WAN, "ping", "-n", "-c", "1", "-W", "0.3", "-I", "10.66.0.1", tunnelBox) //nolint:errcheck // it is dropped
	b.IP(lab.WAN, "address del 10.66.0.1/32 dev "+lib.FarDevice)
	if out, status := b.WeirStatus("vpn", "check", "far"); status != 1 || !strings.Contains(out, "wrong  allowed: packets of the peer are dropped, 1 so far, the last ") || !strings.Contains(out, " from 10.66.0.1: ") {
		b.Errorf("the peer sends from an address that is not allowed, and weir vpn check says\n%s", out)
	}
	b.Until(5*time.Second, "the log says so", func() bool {
		return strings.Contains(b.Weir("vpn", "log"), "wg0 far: error: a packet from 10.66.0.1 is dropped: that is in none of its allowed networks")
	})
	// Messages of data have another receiver on their way: they arrive, and no session has them.
	b.Run(lab.WAN, "nft", "add table inet mangled; add chain inet mangled out { type filter hook output priority 0; }; add rule inet mangled out udp dport 51820 @th,64,8 4 @th,96,32 set 0x01020304")
	if out, _ := b.WeirStatus("vpn", "check", "far", "--to", tunnelFar); !strings.Contains(out, "no progress: ") || !strings.Contains(out, " packets of the peer came to port 51820 meanwhile, and none was decrypted") {
		b.Errorf("packets arrive and are not decrypted, and weir vpn check says\n%s", out)
	}
	b.Run(lab.WAN, "nft", "delete table inet mangled")
	if out, status := b.WeirStatus("vpn", "check", "near"); status != 1 || !strings.Contains(out, "no tunnel of the rules in force has a peer near") {
		b.Errorf("a peer that is not there: %d, %s", status, out)
	}
}
