package test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// Networks of the far end of an IPsec tunnel without an interface. Those of the LAN are lanNetworks.
var (
	siteNetworks = []string{"10.2.0.0/16", "fd02::/48"}
	lanNetworks  = []string{"192.168.1.0/24", "fd00:1::/64"}
)

// siteRules let the LAN reach everything, and the far networks the LAN. Only what goes elsewhere is translated.
const siteRules = `table <far> { 10.2.0.0/16, fd02::/48 }
match out on wan0 inet from (lan0:network) to ! <far> nat-to (wan0)
block
pass in on lan0
pass out
pass in on wan0 proto esp
pass in on wan0 proto udp to port { 500 4500 }
pass in on wan0 proto { icmp icmp6 } from <far>
pass in on wan0 proto tcp from <far> to port 5601
pass in on wan0 inet proto icmp from <far> to lan0 no state
`

// siteUp makes the far networks, which are in wan, and routes to them.
func siteUp(b *lib.Box) {
	b.Helper()
	b.Address(lab.WAN, "lo", tunnelFar+"/32", tunnelFar6+"/128")
	b.IP(lab.FW, "route add 10.2.0.0/16 via "+wanHost, "route add fd02::/48 via "+wanHost6)
	b.IP(lab.WAN, "route replace 192.168.1.0/24 via "+fwWAN+" src "+tunnelFar, "route replace fd00:1::/64 via "+fwWAN6+" src "+tunnelFar6)
}

// nothingInClear fails if packets of the LAN were seen on the wire.
func nothingInClear(b *lib.Box, seen func() string, when string) {
	b.Helper()
	time.Sleep(300 * time.Millisecond) // tcpdump
	if text := seen(); text != "" {
		b.Errorf("%s: packets left in clear:\n%s", when, text)
	}
}

//	lan ── lan0 fw wan0 ── wan; fw has IPsec policies of somebody else, and no keys
//
// What a policy selects leaves no more, whether it was there before the connection or came later; other
// connections go on. A load, the daemon's end and another daemon change nothing. When the policies have
// gone, nothing leaves in clear for a while.
func TestPolicies(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		if _, err := b.Try(lab.FW, "ip", "xfrm", "policy"); err != nil {
			testenv.SkipOutside(b, "this kernel has no IPsec policies")
		}
		siteUp(b)
		daemon := b.WeirRun(b.Rules(siteRules))
		const fromLAN = "src net 192.168.1.0/24 or src net fd00:1::/64"
		before := b.ClearText(fromLAN)
		for _, to := range []string{tunnelFar, tunnelFar6, wanHost} {
			b.Ping(lab.LAN, to, 2)
		}
		if b.Info().Policies != nil {
			b.Errorf("policies are followed before there are any: %+v", b.Info().Policies)
		}
		b.FloodEvery(lab.LAN, tunnelFar, 5*time.Millisecond)
		elsewhere := b.FloodEvery(lab.LAN, wanHost, 20*time.Millisecond)
		b.Until(5*time.Second, "tcpdump sees what leaves in clear", func() bool { return strings.Count(before(), "\n") > 10 })
		esp := lib.BareESP(b)
		for n, far := range siteNetworks {
			b.IP(lab.FW, esp.Policies(lab.FW, "add", lanNetworks[n], far)...)
		}
		b.Until(5*time.Second, "the policies are followed", func() bool { p := b.Info().Policies; return p != nil && p.Followed == 4 })
		clear := b.ClearText(fromLAN)
		quiet := func(when string) {
			b.Helper()
			for _, to := range []string{tunnelFar, tunnelFar6} {
				if tunnelAnswers(b, lab.LAN, to) {
					b.Errorf("%s: %s answers", when, to)
				}
			}
			nothingInClear(b, clear, when)
		}
		quiet("with policies")
		if n := b.Packets("lan0", reason.UpPolicy); n < 20 {
			b.Errorf("%d packets count as up-policy", n)
		}
		if said := b.Weir("info"); !strings.Contains(said, "IPsec policies: 4 followed") {
			b.Errorf("weir info says\n%s", said)
		}
		b.Weir("load", b.Rules(siteRules+"pass in on wan0 proto udp to port 9\n"))
		quiet("after a load")
		for n, far := range siteNetworks { // a rekey that leaves a gap
			b.IP(lab.FW, esp.Policies(lab.FW, "delete", lanNetworks[n], far)...)
			b.IP(lab.FW, esp.Policies(lab.FW, "add", lanNetworks[n], far)...)
		}
		quiet("after other policies")
		daemon.Kill()
		quiet("without a daemon")
		b.WeirRun(b.Rules(siteRules))
		quiet("with another daemon")
		elsewhere.AllAnswered(50)
		for n, far := range siteNetworks {
			b.IP(lab.FW, esp.Policies(lab.FW, "delete", lanNetworks[n], far)...)
		}
		quiet("after the policies")
		if p := b.Info().Policies; p == nil || p.Held == 0 {
			b.Errorf("no policy is held: %+v", p)
		}
		if n := b.Packets("wan0", reason.Policy); n == 0 {
			b.Errorf("no packet counts as policy")
		}
		b.IP(lab.FW, "xfrm policy setdefault fwd block")
		b.Until(5*time.Second, "a default of block is followed", func() bool { return !tunnelAnswers(b, lab.LAN, wanHost) })
		b.IP(lab.FW, "xfrm policy setdefault fwd accept")
		b.Until(5*time.Second, "it is over", func() bool { return tunnelAnswers(b, lab.LAN, wanHost) })
	})
}

//	lan ── lan0 fw wan0 ══ ESP ══ wan; both ends have policies and keys by ip xfrm, and no interface
//
// Packets of both families go both ways, encrypted: those of the LAN and of the box, and iperf3 from both sides. Others
// go on in clear. New keys, no keys and policies that go let nothing out in clear.
func TestPolicyESP(t *testing.T) {
	if !lib.HasESP() {
		testenv.SkipOutside(t, "this kernel has no ESP; the emulated one has")
	}
	weir.BothAtOnce(t, func(b *lib.Box) {
		siteUp(b)
		esp := b.ESP(0)
		for n, far := range siteNetworks {
			b.IP(lab.FW, esp.Policies(lab.FW, "add", lanNetworks[n], far)...)
			b.IP(lab.WAN, esp.Policies(lab.WAN, "add", far, lanNetworks[n])...)
		}
		b.WeirRun(b.Rules(siteRules))
		clear := b.Unencrypted(lanNetworks...)
		sitePackets(b)
		b.FloodEvery(lab.LAN, tunnelFar, 20*time.Millisecond)
		esp.Rekey()
		b.Ping(lab.LAN, tunnelFar, 2)
		spoofed(b)
		unknownSource(b, esp)
		unknownOfFamily(b, esp)
		nothingInClear(b, clear, "with keys")
		esp.Remove()
		if tunnelAnswers(b, lab.LAN, tunnelFar) || tunnelAnswers(b, lab.LAN, tunnelFar6) {
			b.Errorf("the far end answers without keys")
		}
		for n, far := range siteNetworks {
			b.IP(lab.FW, esp.Policies(lab.FW, "delete", lanNetworks[n], far)...)
		}
		if tunnelAnswers(b, lab.LAN, tunnelFar) || tunnelAnswers(b, lab.LAN, tunnelFar6) {
			b.Errorf("the far end answers without policies")
		}
		nothingInClear(b, clear, "without keys and policies")
		b.Weir("stop")
		b.Sysctl(lab.FW, "net/ipv4/ip_forward", "1")
		if tunnelAnswers(b, lab.LAN, tunnelFar) || clear() == "" {
			b.Errorf("nobody would have seen packets in clear")
		}
	})
}

// sitePackets sends packets through a tunnel without an interface, from and to everywhere.
func sitePackets(b *lib.Box) {
	b.Helper()
	for _, to := range []string{tunnelFar, tunnelFar6} {
		b.Ping(lab.LAN, to, 3)
		server := b.Listen(lab.WAN, 5201, "iperf3", "-s", "-1")
		b.Run(lab.LAN, "iperf3", "-c", to, "--bidir", "-n", "300K")
		server.Wait(10*time.Second, 0)
	}
	b.Ping(lab.LAN, wanHost, 1)
	b.Run(lab.WAN, "ping", "-n", "-c", "3", "-i", "0.1", "-W", "2", "-I", tunnelFar, lanHost)
	b.Run(lab.WAN, "ping", "-n", "-c", "3", "-i", "0.1", "-W", "2", "-I", tunnelFar6, lanHost6)
	b.Run(lab.FW, "ping", "-n", "-c", "2", "-i", "0.1", "-W", "2", "-I", fwLAN, tunnelFar)
	b.Listen(lab.LAN, 5601, "iperf3", "-s", "-1", "-p", "5601")
	b.Run(lab.WAN, "iperf3", "-c", lanHost, "-B", tunnelFar, "-p", "5601", "-n", "300K")
	for _, r := range []reason.Reason{reason.Malformed, reason.Short, reason.Guard, reason.Internal, reason.Policy} {
		for _, device := range []string{"wan0", "lan0"} {
			if n := b.Packets(device, r); n != 0 {
				b.Errorf("%d packets of %s count as %s", n, device, r)
			}
		}
	}
}

// spoofed has somebody send the LAN packets of the far network that are not encrypted. The rules pass them, as
// they pass those that were; the kernel drops them.
func spoofed(b *lib.Box) {
	b.Helper()
	seen := b.Start(lab.LAN, "tcpdump", "-n", "-l", "-i", "eth0", "icmp and src host 10.2.0.66")
	b.AwaitSaid(seen, "listening on")
	b.Scapy(lab.WAN, fmt.Sprintf(`sendp(Ether(dst=getmacbyip("%s"))/IP(src="10.2.0.66", dst="%s")/ICMP(), iface="eth0", count=3, verbose=0)`, fwWAN, lanHost))
	b.Ping(lab.LAN, tunnelFar, 1)
	if strings.Contains(seen.Said(), "10.2.0.66 >") {
		b.Errorf("the LAN gets packets of the far network that were not encrypted:\n%s", seen.Said())
	}
}

// unknownSource has the far end send the LAN packets through the tunnel from an address of which fw's policies know
// nothing. The rules pass them; the kernel drops them.
func unknownSource(b *lib.Box, esp *lib.ESP) {
	b.Helper()
	const source = "198.18.0.1"
	b.Address(lab.WAN, "lo", source+"/32")
	b.IP(lab.WAN, esp.Policies(lab.WAN, "add", source+"/32", lanNetworks[0])...)
	b.Weir("load", b.Rules(siteRules+"pass in on wan0 proto icmp from "+source+"\n"))
	in := b.Start(lab.LAN, "tcpdump", "-n", "-l", "-i", "eth0", "icmp and src host "+source)
	b.AwaitSaid(in, "listening on")
	before := b.Packets("wan0", reason.UpPolicy)
	if _, err := b.Try(lab.WAN, "ping", "-n", "-c", "3", "-i", "0.1", "-W", "1", "-I", source, lanHost); err == nil {
		b.Errorf("the LAN answers an address of the far end that no policy selects")
	}
	if n := b.Packets("wan0", reason.UpPolicy) - before; n < 3 {
		b.Errorf("%d packets of that address went up", n)
	}
	if text := in.Said(); strings.Contains(text, source+" >") {
		b.Errorf("the LAN gets packets from an address of the far end that no policy selects:\n%s", text)
	}
	b.IP(lab.WAN, esp.Policies(lab.WAN, "delete", source+"/32", lanNetworks[0])...)
}

// unknownOfFamily has the far end do the same with an IPv6 address, to a host of the LAN that has only an IPv4 one. af-to
// would translate the packets, and the kernel would never see them as they came.
func unknownOfFamily(b *lib.Box, esp *lib.ESP) {
	b.Helper()
	const source, prefix, host = "2001:db8:77::1", "64:ff9b::/96", "64:ff9b::192.168.1.10"
	b.Address(lab.WAN, "lo", source+"/128")
	b.IP(lab.WAN, append(esp.Policies(lab.WAN, "add", source+"/128", prefix), "route add "+prefix+" via "+fwWAN6)...)
	b.Weir("load", b.Rules(siteRules+"pass in on wan0 inet6 proto icmp6 from "+source+" to "+prefix+" af-to inet from (lan0)\n"))
	in := b.Start(lab.LAN, "tcpdump", "-n", "-l", "-i", "eth0", "icmp[icmptype] == icmp-echo and src host "+fwLAN)
	b.AwaitSaid(in, "listening on")
	before := b.Packets("wan0", reason.Policy)
	if _, err := b.Try(lab.WAN, "ping", "-n", "-c", "3", "-i", "0.1", "-W", "1", "-I", source, host); err == nil {
		b.Errorf("the LAN answers an address of the far end that no policy selects, by af-to")
	}
	if n := b.Packets("wan0", reason.Policy) - before; n != 3 {
		b.Errorf("%d packets of 3 that af-to would translate count as policy", n)
	}
	if text := in.Said(); strings.Contains(text, fwLAN+" >") {
		b.Errorf("the LAN gets translated packets from an address of the far end that no policy selects:\n%s", text)
	}
	b.IP(lab.WAN, esp.Policies(lab.WAN, "delete", source+"/128", prefix)...)
}

// siteSwanctl returns swanctl's file of one end of a tunnel without an interface.
func siteSwanctl(own, peer, near, far, start string) string {
	return fmt.Sprintf(`connections {
	site {
		version = 2
		local_addrs = %[1]s
		remote_addrs = %[2]s
		proposals = aes256gcm16-prfsha384-ecp384
		local {
			auth = psk
			id = %[1]s
		}
		remote {
			auth = psk
			id = %[2]s
		}
		children {
			site {
				local_ts = %[3]s
				remote_ts = %[4]s
				esp_proposals = aes256gcm16-ecp384
				start_action = %[5]s
			}
		}
	}
}
secrets {
	ike-site {
		id = %[2]s
		secret = "`+ipsecPSK+`"
	}
}
`, own, peer, near, far, start)
}

// siteCharons starts a charon at both ends, with plain connections of swanctl, and has them make a tunnel.
func siteCharons(b *lib.Box) (near, far *lib.Charon) {
	b.Helper()
	siteUp(b)
	b.WeirRun(b.Rules(siteRules))
	near, far = b.Charon(lab.FW), b.Charon(lab.WAN)
	networks := func(all []string) string { return strings.Join(all, ",") }
	near.WriteFile("swanctl.conf", siteSwanctl(fwWAN, wanHost, networks(lanNetworks), networks(siteNetworks), "none"))
	far.WriteFile("swanctl.conf", siteSwanctl(wanHost, fwWAN, networks(siteNetworks), networks(lanNetworks), "none"))
	far.Swanctl("--load-all", "--noprompt")
	near.Swanctl("--load-all", "--noprompt")
	near.Swanctl("--initiate", "--child", "site", "--timeout", "20")
	b.Until(5*time.Second, "charon's policies are followed", func() bool { p := b.Info().Policies; return p != nil && p.Followed == 4 && p.All == "" })
	return near, far
}

//	lan ── lan0 fw wan0 ══ ESP ══ wan; a plain strongSwan at both ends, without interfaces
//
// Nothing leaves in clear while both ends renew their keys under traffic, before it and after it.
func TestIPsecRekey(t *testing.T) {
	if !lib.HasESP() {
		testenv.SkipOutside(t, "this kernel has no ESP; the emulated one has")
	}
	weir.BothAtOnce(t, func(b *lib.Box) {
		near, far := siteCharons(b)
		clear := b.Unencrypted(lanNetworks...)
		b.Ping(lab.LAN, tunnelFar, 2)
		flood := b.FloodEvery(lab.LAN, tunnelFar, 20*time.Millisecond)
		for _, c := range []*lib.Charon{near, far} {
			before := c.SPIs()
			c.Swanctl("--rekey", "--child", "site")
			b.Until(10*time.Second, "there are new keys", func() bool {
				return slices.ContainsFunc(c.SPIs(), func(spi string) bool { return !slices.Contains(before, spi) })
			})
		}
		near.Swanctl("--rekey", "--ike", "site")
		b.Ping(lab.LAN, tunnelFar6, 3)
		flood.AllAnswered(50)
		nothingInClear(b, clear, "while both ends renew their keys")
		b.FloodEvery(lab.LAN, tunnelFar, 20*time.Millisecond)
		near.Swanctl("--rekey", "--ike", "site", "--reauth") // all is made anew
		b.Until(20*time.Second, "the tunnel works again", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
		nothingInClear(b, clear, "during a reauthentication")
	})
}

// Nothing leaves in clear when charon is killed, which leaves the kernel its policies, and for a while when it
// ends, which takes them.
func TestIPsecGone(t *testing.T) {
	if !lib.HasESP() {
		testenv.SkipOutside(t, "this kernel has no ESP; the emulated one has")
	}
	weir.BothAtOnce(t, func(b *lib.Box) {
		near, _ := siteCharons(b)
		clear := b.Unencrypted(lanNetworks...)
		b.Ping(lab.LAN, tunnelFar, 2)
		flood := b.FloodEvery(lab.LAN, tunnelFar, 20*time.Millisecond)
		near.Kill()
		b.Ping(lab.LAN, tunnelFar, 2) // the kernel has the keys
		flood.AllAnswered(5)
		near.Start()
		near.Swanctl("--load-all", "--noprompt")
		near.Swanctl("--initiate", "--child", "site", "--timeout", "20")
		b.Ping(lab.LAN, tunnelFar, 2)
		b.FloodEvery(lab.LAN, tunnelFar, 20*time.Millisecond)
		near.Signal(syscall.SIGTERM)
		near.Wait(20*time.Second, 0)
		b.Until(5*time.Second, "the policies that have gone are held", func() bool { p := b.Info().Policies; return p != nil && p.Held > 0 })
		if tunnelAnswers(b, lab.LAN, tunnelFar) || tunnelAnswers(b, lab.LAN, tunnelFar6) {
			b.Errorf("the far end answers without a tunnel")
		}
		nothingInClear(b, clear, "after charon's end")
	})
}
