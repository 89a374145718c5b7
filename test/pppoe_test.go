package test

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/reason"
	"weir/internal/host/netif"
	"weir/internal/lab"
	"weir/test/lib"
)

// pppoeStatus returns what weir says about ppp0.
func pppoeStatus(b *lib.Box) control.PPPoE {
	b.Helper()
	all := lib.WeirJSON[[]control.PPPoE](b, "pppoe", "status")
	if len(all) != 1 || all[0].Interface != "ppp0" {
		b.Fatalf("weir pppoe status: %+v", all)
	}
	return all[0]
}

// awaitPPPoE waits until ppp0 is in a state, and if that is up, has both families.
func awaitPPPoE(b *lib.Box, state control.PPPoEState) (s control.PPPoE) {
	b.Helper()
	b.Until(20*time.Second, "ppp0 is "+string(state), func() bool {
		all := lib.WeirJSON[[]control.PPPoE](b, "pppoe", "status")
		if len(all) != 1 || all[0].Interface != "ppp0" { // the daemon looks at new rules each second
			return false
		}
		s = all[0]
		return s.State == state && (state != control.PPPoEUp || s.IPv4.IsValid() && s.IPv6.IsValid())
	})
	return s
}

// leftBy returns how many packets have left by a device of fw, past XDP.
func leftBy(b *lib.Box, device string) (packets int) {
	b.Helper()
	text := b.Run(lab.FW, "cat", "/proc/net/dev")
	for line := range strings.Lines(text) {
		if name, rest, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name == device {
			packets, _ = strconv.Atoi(strings.Fields(rest)[9]) //nolint:errcheck // the kernel writes numbers
		}
	}
	return packets
}

// synAt has a host connect, and returns what tcpdump prints of its SYN at the far end.
func synAt(b *lib.Box, from, to string) string {
	b.Helper()
	dump := b.Start(lab.WAN, "tcpdump", "-n", "-l", "-i", "isp0", "tcp[tcpflags] & tcp-syn != 0 or (ip6 and ip6[6] = 6)")
	b.AwaitSaid(dump, "listening on")
	b.Try(from, "curl", "-s", "--max-time", "1", "http://"+net.JoinHostPort(to, "9")) //nolint:errcheck // nobody listens
	b.AwaitSaid(dump, "Flags [S]")
	defer dump.Kill()
	return dump.Said()
}

//	lan ── lan0 fw wan0 ══ ppp0 in a PPPoE session ══ wan, a concentrator
//
// The session is a statement of the rules. Its packets meet the rules at ppp0, by XDP of wan0 or by
// TCX of ppp0. It outlives the daemon.
func TestPPPoE(t *testing.T) {
	weir.Both(t, func(b *lib.Box) {
		p, password := b.Provider(1500)
		b.IP(lab.FW, "route del default", "-6 route del default")
		text := fmt.Sprintf(`set spread wan0 auto
pppoe ppp0 on wan0 user me password file "%s"
match out on ppp0 inet from (lan0:network) nat-to (ppp0)
block
pass in on lan0
pass out on lan0 from self
pass out on ppp0
pass in on ppp0 inet proto icmp
`, password)
		rules := b.Rules(text)
		daemon := b.WeirRun(b.Rules("pass"))
		dropped := capture(b, "wan0", "--json")
		b.Weir("load", rules)
		up := awaitPPPoE(b, control.PPPoEUp)
		p.Await(up.Session)
		strangerIsShown(b, up.Session, dropped)
		if up.IPv4.String() != lib.ProviderClient || up.MTU != 1492 || len(up.DNS) != 1 || up.Auth != "CHAP-MD5" {
			b.Errorf("the session: %+v", up)
		}
		hook, why := "tcx", "TCX handles"
		if b.Hook == "xdp" {
			hook, why = "xdp", "XDP program of wan0 handles"
		}
		awaitVLAN(b, "ppp0", hook, why)
		if b.Hook == "xdp" {
			b.Tell("an interface that is made slowly", pppoeMadeSlowly)
		}
		b.Tell("packets", pppoePackets)
		spreading := map[string][]string{"tcx": {"it has no XDP"}, "xdp": {"no core is full", "its driver takes no redirected frames", "there is one core", "a core is full, but not"}}
		b.Until(5*time.Second, "it says why frames are not spread", func() bool {
			shown := b.Weir("interfaces")
			return slices.ContainsFunc(spreading[b.Hook], func(why string) bool { return strings.Contains(shown, "set spread: "+why) })
		})
		flood := b.Flood(lab.LAN, lib.ProviderPeer)
		time.Sleep(200 * time.Millisecond)
		daemon.Kill()
		time.Sleep(2 * time.Second)
		if len(p.Sessions()) == 0 {
			b.Error("the concentrator has ended the session: nobody has answered its echo requests")
		}
		b.Ping(lab.FW, lib.ProviderPeer, 3)
		daemon = b.WeirRun(rules)
		again := awaitPPPoE(b, control.PPPoEUp)
		b.Weir("load", rules)
		time.Sleep(200 * time.Millisecond)
		flood.AllAnswered(100)
		if again.Session != up.Session || !again.Since.Equal(up.Since) {
			b.Errorf("after the next start: %+v, was %+v", again, up)
		}
		b.Tell("others", pppoeOthers)
		b.Tell("commands", func(b *lib.Box) { pppoeCommands(b, p, &up) })
		pppoeEnds(b, p, daemon, rules)
		b.Tell("larger packets than have room", func(b *lib.Box) {
			b.Weir("load", b.Rules(strings.Replace(text, "user me", "mtu 1498 user me", 1)))
			const small = "wan0 has an MTU of 1500, and packets of 1498 bytes need 1506 there: 1492 are asked for"
			b.Until(20*time.Second, "weir pppoe status says so", func() bool { return pppoeStatus(b).Small == small })
			s := awaitPPPoE(b, control.PPPoEUp)
			p.Await(s.Session)
			if s.MTU != 1492 || len(s.Quirks) != 0 || !strings.Contains(b.Weir("pppoe", "status"), "\n  "+small+"\n") {
				b.Errorf("the session: %+v", s)
			}
		})
		b.Tell("packets of 1,500 bytes", func(b *lib.Box) {
			b.IP(lab.FW, "link set wan0 mtu 1508")
			b.IP(lab.WAN, "link set eth0 mtu 1508")
			generation := generationOf(b)
			b.Weir("load", b.Rules(strings.Replace(text, "user me", "mtu 1500 user me", 1)))
			b.Until(20*time.Second, "the MTU is 1500", func() bool { return pppoeStatus(b).MTU == 1500 })
			p.Await(awaitPPPoE(b, control.PPPoEUp).Session)
			b.IP(lab.LAN, "route flush cache") // it has learnt of 1492 bytes
			b.Run(lab.LAN, "ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", "1472", lib.ProviderPeer)
			b.Run(lab.FW, "ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", "1472", lib.ProviderPeer)
			b.Until(5*time.Second, "no rule holds TCP's segments", func() bool { return !strings.Contains(b.Weir("rules"), "max-mss") })
			if now := generationOf(b); now != generation {
				b.Errorf("another statement has loaded all programs anew: generation %d, was %d", now, generation)
			}
		})
		b.Tell("the end", func(b *lib.Box) {
			b.Weir("stop")
			b.Until(5*time.Second, "the concentrator has no session", func() bool { return len(p.Sessions()) == 0 })
			if out := b.Run(lab.FW, "ip", "-o", "link"); strings.Contains(out, "ppp0") {
				b.Errorf("interfaces after weir stop: %s", out)
			}
		})
	})
}

// pppoePackets sends packets through the session, from and to everywhere.
func pppoePackets(b *lib.Box) {
	b.Helper()
	b.Ping(lab.FW, lib.ProviderPeer, 3)
	b.Ping(lab.LAN, lib.ProviderPeer, 3)
	b.Ping(lab.LAN, lib.ProviderPeer6, 3)
	b.Ping(lab.WAN, lib.ProviderClient, 3)
	b.Run(lab.LAN, "ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", "1464", lib.ProviderPeer)
	if out, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", "1465", lib.ProviderPeer); err == nil || !strings.Contains(out, "1492") {
		b.Errorf("a packet of 1493 bytes: %s", out)
	}
	for i, to := range []string{lib.ProviderPeer, lib.ProviderPeer6} {
		want := fmt.Sprintf("mss %d", []int{1452, 1432}[i])
		if syn := synAt(b, lab.LAN, to); !strings.Contains(syn, want) {
			b.Errorf("a SYN to %s: %s, want %s", to, syn, want)
		}
		for j, way := range []string{"-b0", "-R"} {
			for k, from := range []string{lab.LAN, lab.FW} {
				port := uint16(5500 + 4*i + 2*j + k)
				b.Listen(lab.WAN, port, "iperf3", "-s", "-1", "-p", fmt.Sprint(port))
				before := leftBy(b, "ppp0")
				out := b.Run(from, "iperf3", "-c", to, "-p", fmt.Sprint(port), "-n", "16M", way, "-f", "m")
				b.Logf("%s to %s %s:%s", from, to, way, lastOf(out))
				// 16 MB are 11,000 packets, or their acknowledgements
				if n := leftBy(b, "ppp0") - before; b.Hook == "xdp" && from == lab.LAN && n > 500 {
					b.Errorf("%d packets left by ppp0, not by XDP of lan0", n)
				} else if way != "-R" && n < 5000 && (b.Hook == "tcx" || from == lab.FW) {
					b.Errorf("%d packets left by ppp0", n)
				}
			}
		}
	}
	dump := b.Start(lab.FW, "tcpdump", "-n", "-l", "-i", "ppp0", "icmp")
	b.AwaitSaid(dump, "listening on")
	b.Ping(lab.FW, lib.ProviderPeer, 1)
	b.AwaitSaid(dump, "echo request")
	b.AwaitSaid(dump, "echo reply")
}

// lastOf returns the summary of iperf3.
func lastOf(out string) (last string) {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "bits/sec") {
			last = strings.TrimRight(line, "\n")
		}
	}
	return last
}

// pppoeEnds has the concentrator end sessions, with a daemon and without one.
func pppoeEnds(b *lib.Box, p *lib.Provider, daemon *lib.Process, rules string) {
	b.Helper()
	next := func(before string) string {
		b.Helper()
		b.Until(20*time.Second, "there is another session than "+before, func() bool {
			s := pppoeStatus(b)
			return s.State == control.PPPoEUp && s.Session != before && s.IPv4.IsValid()
		})
		session := pppoeStatus(b).Session
		p.Await(session)
		return session
	}
	first := pppoeStatus(b).Session
	p.End(first, false)
	second := next(first)
	b.Ping(lab.LAN, lib.ProviderPeer, 3)
	b.Ping(lab.WAN, lib.ProviderClient, 3)
	daemon.Kill()
	p.End(second, true)
	time.Sleep(100 * time.Millisecond)
	dump := b.Start(lab.WAN, "tcpdump", "-n", "-l", "-i", "eth0", "-Q", "in", "ether proto 0x8864")
	b.AwaitSaid(dump, "listening on")
	for host, to := range map[string]string{lab.LAN: lib.ProviderPeer, lab.FW: lib.ProviderPeer, lab.WAN: lib.ProviderClient} {
		if out, err := b.Try(host, "ping", "-n", "-c", "3", "-i", "0.1", "-W", "0.5", to); err == nil {
			b.Errorf("%s gets answers from %s in a session that is over:\n%s", host, to, out)
		}
	}
	dump.Kill()
	if said := dump.Said(); strings.Contains(said, "PPPoE") {
		b.Errorf("sent into a session that is over:\n%s", said)
	}
	b.WeirRun(rules)
	next(second)
	b.Ping(lab.LAN, lib.ProviderPeer, 3)
	s := pppoeStatus(b)
	if s.Ended.PADT == 0 || s.Ended.Terminate == 0 || s.Drops.Out == 0 || s.Drops.Over == 0 {
		b.Errorf("ended %+v, dropped %+v", s.Ended, s.Drops)
	}
}

// pppoeOthers removes what the session needs, as others do: systemd-networkd removes routes that it does not know when it starts. The
// daemon adds it again.
func pppoeOthers(b *lib.Box) {
	b.Helper()
	all := func() string {
		return b.Run(lab.FW, "ip", "route", "show", "dev", "ppp0") + b.Run(lab.FW, "ip", "-6", "route", "show", "default", "dev", "ppp0") + b.Run(lab.FW, "ip", "-o", "address", "show", "dev", "ppp0")
	}
	before := all()
	for _, what := range []string{"route del default dev ppp0", "-6 route del default dev ppp0", "-4 address flush dev ppp0", "-6 address flush dev ppp0"} {
		b.IP(lab.FW, what)
		b.Until(5*time.Second, "the daemon adds again what ip "+what+" has removed", func() bool { return all() == before })
	}
	b.Ping(lab.LAN, lib.ProviderPeer, 3)
	b.Ping(lab.LAN, lib.ProviderPeer6, 3)
}

// pppoeMadeSlowly marks a line so late that the daemon has taken both devices for others.
func pppoeMadeSlowly(b *lib.Box) {
	b.Helper()
	b.IP(lab.FW, "link add ppp9 type veth peer name ppp9-line")
	awaitVLAN(b, "ppp9", "xdp", "forced")
	b.Run(lab.FW, "ip", "link", "set", "ppp9-line", "alias", netif.LineAlias+"ppp9")
	b.IP(lab.FW, "link set ppp9 up") // the kernel tells of no alias of a device that is down
	awaitVLAN(b, "ppp9", "tcx", "no native XDP")
	if n, there := b.Hooks()["ppp9-line"]; there {
		b.Errorf("a line is an interface: %+v", n)
	}
	b.IP(lab.FW, "link del ppp9")
}

// strangerIsShown sends a packet into the session from another station. It is dropped, and weir capture shows it,
// which began before there was PPPoE.
func strangerIsShown(b *lib.Box, session string, shown *lib.Process) {
	b.Helper()
	id, err := strconv.ParseUint(session, 0, 16)
	if err != nil {
		b.Fatal(err)
	}
	packet := []byte{0x45, 0, 0, 20, 0, 0, 0, 0, 64, 253, 0, 0, 192, 0, 2, 1, 198, 51, 100, 10}
	frame := slices.Concat([]byte{2, 0x77, 0x65, 0, 1, 1}, []byte{2, 0x77, 0x65, 9, 9, 9}, []byte{0x88, 0x64, 0x11, 0, byte(id >> 8), byte(id), 0, 22, 0, 0x21}, packet)
	before := pppoeStatus(b).Drops.Peer
	sender, sent := b.Frames(lab.WAN, "eth0"), uint64(0)
	b.Until(20*time.Second, "the capture has seen that there is PPPoE, and shows the frame", func() bool {
		sender.Send(frame)
		sent++
		time.Sleep(100 * time.Millisecond)
		return strings.Contains(shown.Said(), reason.MartianSource.String())
	})
	interrupt(shown)
	if n := pppoeStatus(b).Drops.Peer - before; n != sent {
		b.Errorf("%d frames of another station were dropped, want %d", n, sent)
	}
}

func pppoeCommands(b *lib.Box, p *lib.Provider, up *control.PPPoE) {
	b.Helper()
	if log := b.Weir("pppoe", "log"); !strings.Contains(log, "up") {
		b.Errorf("the log:\n%s", log)
	}
	b.IP(lab.FW, "nexthop add id 7 dev ppp0", "route add 203.0.114.0/24 nhid 7", "route add 203.0.115.0/24 nexthop dev ppp0 nexthop dev ppp0")
	others := func() string {
		return b.Run(lab.FW, "ip", "route", "show", "203.0.114.0/24") + b.Run(lab.FW, "ip", "route", "show", "203.0.115.0/24") + b.Run(lab.FW, "ip", "nexthop")
	}
	before := others()
	b.Weir("pppoe", "down", "ppp0")
	awaitPPPoE(b, control.PPPoEDown)
	if out := b.Run(lab.FW, "ip", "-o", "link", "show", "ppp0"); !strings.Contains(out, "NO-CARRIER") || len(p.Sessions()) != 0 {
		b.Errorf("after weir pppoe down: %s, and %d sessions", out, len(p.Sessions()))
	}
	if out := b.Run(lab.FW, "ip", "route"); strings.Contains(out, "default") {
		b.Errorf("routes after weir pppoe down: %s", out)
	}
	b.Weir("pppoe", "reconnect", "ppp0")
	again := awaitPPPoE(b, control.PPPoEUp)
	if again.Session == up.Session {
		b.Errorf("after weir pppoe reconnect: session %s as before", again.Session)
	}
	p.Await(again.Session)
	b.Ping(lab.LAN, lib.ProviderPeer, 3)
	if after := others(); after != before {
		b.Errorf("with the next session, what others have added to ppp0 is\n%swas\n%s", after, before)
	}
	b.IP(lab.FW, "nexthop del id 7", "route del 203.0.115.0/24")
	file := filepath.Join(b.TempDir(), "log.pcapng")
	b.Weir("pppoe", "log", "-w", file, "ppp0")
	out := b.Run(lab.FW, "tshark", "-r", file)
	for _, text := range []string{"(PADI)", "(PADS)", "Challenge", "Response", "Success", "PPP IPCP", "PPP IPV6CP"} {
		if !strings.Contains(out, text) {
			b.Errorf("the frames have no %s:\n%s", text, out)
		}
	}
	if out := b.Run(lab.FW, "tshark", "-r", file, "-Y", "chap.code == 2", "-T", "fields", "-e", "chap.value"); strings.Trim(out, "0\n") != "" || out == "" {
		b.Errorf("the answer to a challenge: %s", out)
	}
}
