package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/vpn/keeper"
	"weir/test/lib"
)

// Who the ends of TestIPsec are.
const (
	ipsecNear = "hq.example.org"
	ipsecFar  = "far.example.org"
	ipsecPSK  = "a preshared key of a test"
)

// ipsecSwanctl is the far end as an administrator of strongSwan writes it. It knows weir's end by its
// identity, and never begins.
const ipsecSwanctl = `connections {
	near {
		version = 2
		proposals = aes256gcm16-prfsha384-ecp384
		local {
			auth = psk
			id = ` + ipsecFar + `
		}
		remote {
			auth = psk
			id = ` + ipsecNear + `
		}
		children {
			near {
				local_ts = 0.0.0.0/0,::/0
				remote_ts = 0.0.0.0/0,::/0
				esp_proposals = aes256gcm16-ecp384
				if_id_in = 42
				if_id_out = 42
			}
		}
	}
}
secrets {
	ike-near {
		id = ` + ipsecNear + `
		secret = "` + ipsecPSK + `"
	}
}
`

// farSwan makes the far end of a tunnel in wan: a charon, swanctl's connection, and an xfrm interface.
func farSwan(b *lib.Box) *lib.Charon {
	b.Helper()
	c := b.Charon(lab.WAN)
	c.WriteFile("swanctl.conf", ipsecSwanctl)
	c.Swanctl("--load-all", "--noprompt")
	b.IP(lab.WAN, "link add far0 type xfrm if_id 42", "link set far0 mtu 1400")
	b.Address(lab.WAN, "far0", "10.9.0.2/30", tunnelFar+"/16", "fd09::2/64", tunnelFar6+"/48")
	b.IP(lab.WAN, "route add fd00:1::/64 dev far0")
	return c
}

// siteOf returns what weir says about ipsec0.
func siteOf(b *lib.Box) *keeper.Status {
	b.Helper()
	all := lib.WeirJSON[[]keeper.Status](b, "vpn", "status")
	if len(all) != 1 || all[0].Interface != "ipsec0" || all[0].Site == nil {
		b.Fatalf("weir vpn status: %+v", all)
	}
	return &all[0]
}

// awaitSite waits until weir has seen that ipsec0 is up: it looks at charon once a second.
func awaitSite(b *lib.Box) {
	b.Helper()
	b.Until(10*time.Second, "weir vpn status shows the tunnel", func() bool { return siteOf(b).Site.Up() != nil })
}

// ipsecRun starts weir vpn run with a charon.
func ipsecRun(b *lib.Box, c *lib.Charon) *lib.Process {
	b.Helper()
	p := b.WeirCommand("vpn", "run", "--vici", c.Socket)
	b.AwaitSaid(p, "weir: ready")
	return p
}

// ipsecLab is a tunnel between weir in fw and a plain strongSwan in wan.
type ipsecLab struct {
	*lib.Box
	near, far     *lib.Charon
	run           *lib.Process
	clear         func() string // what was seen in clear
	tunnel, rules string
}

// ipsecUp makes a tunnel, which is in the rules; its packets meet them at ipsec0.
func ipsecUp(b *lib.Box) *ipsecLab {
	b.Helper()
	psk := filepath.Join(b.TempDir(), "far.psk")
	if err := os.WriteFile(psk, []byte(ipsecPSK+"\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	l := &ipsecLab{Box: b}
	l.tunnel = fmt.Sprintf(`ikev2 ipsec0 address { 10.9.0.1/30 fd09::1/64 } peer %s srcid %s dstid %s psk file "%s" networks { 10.2.0.0/16 fd02::/48 }
`, wanHost, ipsecNear, ipsecFar, psk)
	l.rules = `match out on ipsec0 inet from (lan0:network) nat-to (ipsec0)
block
pass in on lan0
pass out
pass in on wan0 proto esp
pass in on wan0 proto udp to port { 500 4500 }
pass in on ipsec0 proto { icmp icmp6 }
`
	l.far, l.near = farSwan(b), b.Charon(lab.FW)
	l.near.WriteFile("swanctl.conf", "connections {\n\tmine {\n\t\tremote_addrs = 192.0.2.77\n\t}\n}\nsecrets {\n\tike-mine {\n\t\tid = mine\n\t\tsecret = \"another preshared key\"\n\t}\n}\n")
	l.clear = b.ClearText("net 10.2.0.0/16 or net 10.9.0.0/30 or net fd02::/48 or net fd09::/64")
	b.WeirRun(b.Rules(l.tunnel + l.rules))
	b.Tell("before the tunnel", noTunnelAnswers)
	l.run = ipsecRun(b, l.near)
	b.AwaitHook("ipsec0")
	b.Until(20*time.Second, "the tunnel works", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
	awaitSite(b)
	return l
}

// end has the tunnel go, with all that charon and the kernel have of it. Nothing was seen in clear.
func (l *ipsecLab) end() {
	l.Helper()
	if seen := l.clear(); seen != "" {
		l.Errorf("packets left in clear:\n%s", seen)
	}
	l.Weir("load", l.Rules(l.rules[strings.Index(l.rules, "block"):strings.Index(l.rules, "pass in on ipsec0")]))
	l.Until(10*time.Second, "the tunnel is gone", func() bool {
		return !strings.Contains(l.Run(lab.FW, "ip", "-o", "link"), "ipsec0") && !strings.Contains(l.near.Swanctl("--list-conns"), "weir-") && l.near.Swanctl("--list-sas") == ""
	})
	// charon takes a connection off its list before it has the kernel remove the keys.
	l.Until(10*time.Second, "the kernel has no key and no route of the tunnel", func() bool {
		return l.Run(lab.FW, "ip", "xfrm", "state")+l.Run(lab.FW, "ip", "route", "show", "proto", "119") == ""
	})
}

//	lan ── lan0 fw wan0 ══ ipsec0 in ESP ══ wan, a plain strongSwan
//
// Packets go both ways, and on while both ends renew their keys. On the wire there is only ESP. When the routes lead to the
// peer by another uplink, the tunnel begins anew there.
func TestIPsec(t *testing.T) {
	needESP(t, lib.XFRM)
	weir.Both(t, func(b *lib.Box) {
		l := ipsecUp(b)
		s := siteOf(b)
		if ike := s.Site.Up(); ike == nil || s.Problem != "" || ike.RemoteID != ipsecFar || ike.LocalID != ipsecNear || !ike.Initiator || s.Engine != "charon" {
			b.Errorf("weir vpn status: %+v, %+v", s, s.Site)
		}
		b.Tell("packets", ipsecPackets)
		b.Tell("new keys", func(b *lib.Box) { ipsecRekey(b, l.near, l.far) })
		b.Tell("another uplink", func(b *lib.Box) { ipsecMoves(b, l.tunnel+l.rules) })
		l.end()
	})
}

// Nothing that is meant for the tunnel leaves by wan0 in clear when charon is killed or ended, or its
// interface goes. Connections of others in the same charon stay. Weir says what is wrong.
func TestIPsecFaults(t *testing.T) {
	needESP(t, lib.XFRM)
	weir.UnderTCX(t, func(b *lib.Box) {
		l := ipsecUp(b)
		near := l.near
		if out, status := b.WeirStatus("vpn", "check", "ipsec0", "--to", tunnelFar); status != 0 || strings.Count(out, "ok ") != 6 {
			b.Errorf("nothing is wrong: %d\n%s", status, out)
		}
		near.Swanctl("--load-all", "--noprompt")
		b.Until(10*time.Second, "weir's connection is back", func() bool { return strings.Contains(near.Swanctl("--list-conns"), "weir-ipsec0") })
		if out := near.Swanctl("--list-conns"); !strings.Contains(out, "mine:") {
			b.Errorf("charon has\n%s", out)
		}
		b.Ping(lab.LAN, tunnelFar, 1)
		l.run.Kill()
		b.Ping(lab.LAN, tunnelFar, 1) // the tunnel is charon's and the kernel's
		l.run = ipsecRun(b, near)
		near.Kill()
		b.Ping(lab.LAN, tunnelFar, 1) // the kernel has the keys
		near.Start()
		b.Until(30*time.Second, "the tunnel works with another charon", func() bool { return siteOf(b).Site.Up() != nil && tunnelAnswers(b, lab.LAN, tunnelFar) })
		near.Signal(syscall.SIGTERM)
		near.Wait(20*time.Second, 0)
		noTunnelAnswers(b)
		b.IP(lab.FW, "link del ipsec0")
		noTunnelAnswers(b)
		near.Start()
		near.Swanctl("--load-all", "--noprompt")
		b.Until(30*time.Second, "the tunnel works again", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar6) })
		b.Tell("why nothing goes", func(b *lib.Box) { ipsecChecks(b, l.far, l.tunnel+l.rules) })
		// A peer that takes part in no key exchange for packets refuses one within the connection. Weir makes that anew.
		l.far.WriteFile("swanctl.conf", strings.Replace(ipsecSwanctl, "aes256gcm16-ecp384", "aes256gcm16", 1))
		l.far.Swanctl("--load-all", "--noprompt")
		near.Swanctl("--terminate", "--ike", "weir-ipsec0")
		b.Until(time.Minute, "the tunnel works without PFS", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
		near.Swanctl("--terminate", "--child", "weir-ipsec0")
		b.AwaitSaid(near.Process, "received NO_PROPOSAL_CHOSEN notify, no CHILD_SA built")
		b.Until(time.Minute, "the tunnel is back without PFS", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
		l.end()
		if out := near.Swanctl("--list-conns"); !strings.Contains(out, "mine:") {
			b.Errorf("charon has\n%s", out)
		}
		b.Weir("load", b.Rules(l.tunnel+l.rules))
		b.Until(30*time.Second, "the tunnel is back", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
		l.run.Kill()
		b.Weir("vpn", "down", "--vici", near.Socket)
		if out := b.Run(lab.FW, "ip", "-o", "link") + near.Swanctl("--list-conns"); strings.Contains(out, "ipsec0") {
			b.Errorf("after weir vpn down: %s", out)
		}
	})
}

// ipsecPackets sends packets through the tunnel, from and to everywhere.
func ipsecPackets(b *lib.Box) {
	b.Helper()
	esp := b.Start(lab.WAN, "tcpdump", "-n", "-l", "-i", "eth0", "esp")
	b.AwaitSaid(esp, "listening on")
	for _, to := range []string{tunnelFar, tunnelFar6} {
		b.Ping(lab.LAN, to, 2)
		b.Ping(lab.FW, to, 2)
	}
	b.Ping(lab.WAN, tunnelBox, 2)
	b.Ping(lab.WAN, "fd09::1", 2)
	b.Until(5*time.Second, "tcpdump sees ESP", func() bool { return strings.Count(esp.Said(), "ESP(spi=") >= 20 })
	b.Run(lab.LAN, "ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", "1372", tunnelFar)
	if out, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", "1373", tunnelFar); err == nil || !strings.Contains(out, "1400") {
		b.Errorf("a packet of 1401 bytes: %s", out)
	}
	if r := b.Rule("proto icmp all"); r.Packets == 0 {
		b.Errorf("no rule at ipsec0 counts: %+v", r)
	}
	if out, err := b.Try(lab.WAN, "curl", "-s", "--max-time", "1", "http://"+tunnelBox+":7"); err == nil || strings.Contains(out, "refused") {
		b.Errorf("what the rules block at ipsec0 comes in: %s, %v", out, err)
	}
	b.Listen(lab.WAN, 5601, "iperf3", "-s", "-1", "-p", "5601")
	b.Logf("TCP from the LAN: %s", lastOf(b.Run(lab.LAN, "iperf3", "-c", tunnelFar, "-p", "5601", "-n", "1M", "-f", "m")))
}

// ipsecRekey has both ends renew their keys under traffic.
func ipsecRekey(b *lib.Box, near, far *lib.Charon) {
	b.Helper()
	flood := b.FloodEvery(lab.LAN, tunnelFar, 20*time.Millisecond)
	for _, c := range []*lib.Charon{near, far} {
		before := c.SPIs()
		child := "weir-ipsec0"
		if c == far {
			child = "near"
		}
		c.Swanctl("--rekey", "--child", child)
		b.Until(10*time.Second, "there are new keys", func() bool {
			// The old ones may stay a while, for packets that are still on their way.
			return slices.ContainsFunc(c.SPIs(), func(spi string) bool { return !slices.Contains(before, spi) })
		})
	}
	before := siteOf(b).Site.Up()
	if before == nil {
		b.Fatal("the tunnel is down")
	}
	near.Swanctl("--rekey", "--ike", "weir-ipsec0")
	b.Until(10*time.Second, "IKE has new keys", func() bool { ike := siteOf(b).Site.Up(); return ike != nil && ike.ID != before.ID })
	flood.AllAnswered(50)
}

// ipsecMoves has the routes lead to the peer by another uplink, and back. Both stay up, so only the routes tell. Nobody
// waits for the peer's silence (dpd, 30 s).
func ipsecMoves(b *lib.Box, rules string) {
	b.Helper()
	b.Wire("up1", lab.WAN, "up1-far")
	b.Address(lab.FW, "up1", "10.8.0.1/24")
	b.Address(lab.WAN, "up1-far", "10.8.0.2/24")
	b.Weir("load", b.Rules(rules+"pass in on up1 proto esp\npass in on up1 proto udp to port { 500 4500 }\n"))
	b.AwaitHook("up1")
	by := func(address string) {
		b.Helper()
		b.Until(20*time.Second, "the tunnel is up from "+address, func() bool {
			ike := siteOf(b).Site.Up()
			return ike != nil && strings.HasPrefix(ike.Local, address+":") && tunnelAnswers(b, lab.LAN, tunnelFar)
		})
	}
	b.IP(lab.FW, "route add "+wanHost+"/32 via 10.8.0.2")
	by("10.8.0.1")
	b.IP(lab.FW, "route del "+wanHost+"/32 via 10.8.0.2")
	by(fwWAN)
}

// ipsecChecks has weir find what is wrong.
func ipsecChecks(b *lib.Box, far *lib.Charon, rules string) {
	b.Helper()
	again := func(text string) {
		b.Helper()
		far.WriteFile("swanctl.conf", text)
		far.Swanctl("--load-all", "--noprompt")
		b.Try(lab.WAN, "swanctl", "--terminate", "--ike", "near", "--force", "--timeout", "1", "--uri", "unix://"+far.Socket) //nolint:errcheck // there may be nothing to end
		b.Weir("load", b.Rules(rules))                                                                                        // so that weir begins at once
	}
	all := rules
	for _, c := range []struct{ old, new, networks, answer string }{
		{ipsecPSK, "a preshared key of another", "", "the peer refuses us"},
		{"aes256gcm16-prfsha384-ecp384", "aes128-sha1-modp1024", "", "accepts none of our algorithms"},
		{"remote_ts = 0.0.0.0/0,::/0", "remote_ts = 172.16.0.0/16", "", "the peer has agreed to packets from 172.16.0.0/16 only, and ours come from 10.9.0.1"},
		{"remote_ts = 0.0.0.0/0,::/0", "remote_ts = 172.16.0.0/16", "from 192.168.1.0/24 networks 10.2.0.0/16", "the peer has no connection for these networks"},
		{"local_ts = 0.0.0.0/0,::/0", "local_ts = 10.2.7.0/24,::/0", "", "the peer has agreed to 10.2.7.0/24 ::/0 only; nothing goes to 10.2.0.0/16"},
	} {
		if rules = all; c.networks != "" {
			rules = strings.Replace(all, "networks { 10.2.0.0/16 fd02::/48 }", c.networks, 1)
		}
		again(strings.Replace(ipsecSwanctl, c.old, c.new, 1))
		b.Until(30*time.Second, "weir vpn check says "+c.answer, func() bool {
			out, status := b.WeirStatus("vpn", "check", "ipsec0", "--to", "10.9.0.2")
			return status == 1 && strings.Contains(out, c.answer)
		})
	}
	rules = all
	again(ipsecSwanctl)
	b.Until(time.Minute, "the tunnel works again", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
	b.IP(lab.WAN, "address del "+tunnelFar+"/16 dev far0")
	if out, _ := b.WeirStatus("vpn", "check", "ipsec0", "--to", tunnelFar); !strings.Contains(out, "does not answer") && !strings.Contains(out, "one way: ") {
		b.Errorf("without the host behind the peer, weir vpn check says\n%s", out)
	}
	b.IP(lab.WAN, "address add "+tunnelFar+"/16 dev far0")
}

//	lan ── lan0 fw wan0 ══ ipsec0 in ESP over IPv6 ══ wan, a weir, too
//
// Both ends have certificates and begin at the same time; the tunnel is for their networks only. When
// one charon is killed and starts again, the other end does not stay with the old keys.
func TestIPsecBetweenWeirs(t *testing.T) {
	needESP(t, lib.XFRM)
	weir.UnderTCX(t, func(b *lib.Box) {
		a, other := b.Authority("an authority"), b.At(lab.WAN)
		const nearNetwork, farNetwork = "192.168.1.0/24", "10.2.0.0/16"
		tunnel := func(peer, own, id, from, to string) string {
			certificate, key := a.Issue(own)
			return fmt.Sprintf(`ikev2 ipsec0 peer %s srcid %s dstid %s certificate file "%s" key file "%s" ca file "%s" from %s to %s proposals suite-b
`, peer, own, id, certificate, key, a.File, from, to)
		}
		const rules = "block\npass out\npass in on eth0\npass in on lan0\npass in on wan0 proto { esp udp icmp6 }\npass in on ipsec0\n"
		near, far := b.Charon(lab.FW), b.Charon(lab.WAN)
		b.Address(lab.WAN, "lo", tunnelFar+"/32")
		ours := tunnel(wanHost6, ipsecNear, ipsecFar, nearNetwork, farNetwork)
		b.WeirRun(b.Rules(ours + rules))
		other.WeirRun(b.Rules(tunnel("2001:db8:113::2", ipsecFar, ipsecNear, farNetwork, nearNetwork) + rules))
		ipsecRun(b, near)
		ipsecRun(other, far)
		up := func() bool {
			_, err := b.Try(lab.WAN, "ping", "-n", "-c", "1", "-W", "0.5", "-I", tunnelFar, lanHost)
			return err == nil && tunnelAnswers(b, lab.LAN, tunnelFar)
		}
		b.Until(30*time.Second, "the tunnel works", up)
		for _, end := range []*lib.Box{b, other} {
			awaitSite(end)
			ike := siteOf(end).Site.Up()
			if ike == nil || !strings.Contains(ike.Local, "2001:db8:113::") || len(ike.Children) != 1 || len(ike.Children[0].From) != 1 {
				end.Errorf("weir vpn status: %+v", siteOf(end).Site)
			}
		}
		if out, status := b.WeirStatus("vpn", "check", "ipsec0", "--to", tunnelFar); status != 0 {
			b.Errorf("nothing is wrong: %d\n%s", status, out)
		}
		far.Kill()
		far.Start()
		b.Until(30*time.Second, "the tunnel works with another charon", func() bool { return siteOf(other).Site.Up() != nil && up() })
		b.Weir("load", b.Rules(strings.Replace(ours, "dstid "+ipsecFar, "dstid other.example.org", 1)+rules))
		b.Until(30*time.Second, "weir vpn check says who is wrong", func() bool {
			out, status := b.WeirStatus("vpn", "check", "ipsec0", "--to", tunnelFar)
			return status == 1 && (strings.Contains(out, "compare dstid and srcid") || strings.Contains(out, "the peer refuses us"))
		})
		b.Weir("load", b.Rules(ours+rules))
		b.Until(time.Minute, "the tunnel works again", up)
	})
}
