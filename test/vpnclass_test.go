package test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/view"
	"weir/internal/lab"
	"weir/internal/vpn/key"
	"weir/test/lib"
)

//	lan ── lan0 fw wan0 ══ wg0 in UDP ══ wan, a plain WireGuard
//
// The outer packets have the code point that the rules say, so that queues at wan0 tell them apart. A mark of
// congestion that they meet comes to the inner packets.
func TestVPNClasses(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		secret := filepath.Join(b.TempDir(), "wg0.key")
		public, err := key.ParsePublic(strings.TrimSpace(b.Weir("vpn", "genkey", secret)))
		if err != nil {
			b.Fatal(err)
		}
		far := b.FarEnd(public, key.Secret{}, "10.9.0.1/32,192.168.1.0/24", "10.9.0.2/30", tunnelFar+"/16")
		b.IP(lab.WAN, "route add 192.168.1.0/24 dev "+lib.FarDevice)
		rules := func(option string) string {
			return b.Rules(fmt.Sprintf(`queue up on wan0 bandwidth 50M
queue bulk parent up bandwidth 30M default
queue voice parent up bandwidth 20M
wireguard wg0 key file "%s" address 10.9.0.1/30 engine userspace %s
peer far on wg0 key "%s" endpoint %s port %d allowed { 10.9.0.2 10.2.0.0/16 }
pass
match out on wan0 proto udp to port %d set queue (bulk, voice)
`, secret, option, far.Key, wanHost, far.Port, far.Port))
		}
		b.WeirRun(rules(""))
		vpnRun(b)
		b.AwaitHook("wg0")
		b.Until(10*time.Second, "the tunnel works", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
		outer := b.Start(lab.WAN, "tcpdump", "-n", "-l", "-v", "-i", "eth0", fmt.Sprintf("udp dst port %d and greater 160", far.Port))
		b.AwaitSaid(outer, "listening on")
		voice := func() uint64 {
			for _, q := range lib.WeirJSON[view.Queues](b, "queues", "--json").Trees[0].Queues {
				if q.Name == "voice" {
					return q.Sent
				}
			}
			b.Fatal("there is no queue voice")
			return 0
		}
		for _, c := range []struct {
			option, want string
			voice        bool // an EF packet takes the second queue
		}{{"", "tos 0x0, ", false}, {"dscp copy", "tos 0xb8, ", true}, {"dscp af41", "tos 0x88, ", false}, {"dscp clear", "tos 0x0, ", false}} {
			b.Weir("load", rules(c.option))
			b.Until(5*time.Second, "outer packets are marked: "+c.option, func() bool {
				before, queued := len(outer.Said()), voice()
				b.Run(lab.LAN, "ping", "-n", "-c", "3", "-i", "0.1", "-W", "2", "-Q", "0xb8", "-s", "100", tunnelFar)
				time.Sleep(100 * time.Millisecond)
				said := outer.Said()[before:]
				return strings.Count(said, c.want) >= 3 && strings.Count(said, "tos ") == strings.Count(said, c.want) && (voice()-queued >= 400) == c.voice
			})
		}
		b.Tell("congestion", vpnCongestion)
	})
}

// vpnCongestion has the wire mark packets of all kinds, and looks what comes out: section 4.2 of RFC 6040.
func vpnCongestion(b *lib.Box) {
	const notECT, ect1, ect0, ce, dropped = 0, 1, 2, 3, -1
	names := []string{notECT: "not-ect", ect1: "ect1", ect0: "ect0", ce: "ce"} //nolint:misspell // words of nft
	b.Run(lab.WAN, "nft", "add table inet marks; add chain inet marks out { type filter hook output priority 0; }")
	inner := b.Start(lab.FW, "tcpdump", "-n", "-l", "-v", "-i", "wg0", "icmp[0] == 8 and dst host 10.9.0.1")
	b.AwaitSaid(inner, "listening on")
	for in, row := range [][4]int{
		notECT: {notECT: notECT, ect1: notECT, ect0: notECT, ce: dropped},
		ect1:   {notECT: ect1, ect1: ect1, ect0: ect1, ce: ce},
		ect0:   {notECT: ect0, ect1: ect1, ect0: ect0, ce: ce},
		ce:     {notECT: ce, ect1: ce, ect0: ce, ce: ce},
	} {
		for out, want := range row {
			b.Run(lab.WAN, "nft", "flush chain inet marks out; add rule inet marks out udp sport 51999 ip ecn set "+names[out])
			before := len(inner.Said())
			_, err := b.Try(lab.WAN, "ping", "-n", "-c", "1", "-W", "0.5", "-Q", fmt.Sprint(in), "10.9.0.1")
			if (err != nil) != (want == dropped) {
				b.Errorf("inner %s, outer %s: %v", names[in], names[out], err)
			}
			if want == dropped {
				continue
			}
			text := fmt.Sprintf("tos 0x%x, ", want)
			if want > 0 {
				text = fmt.Sprintf("tos 0x%x,%s, ", want, map[int]string{ect1: "ECT(1)", ect0: "ECT(0)", ce: "CE"}[want]) //nolint:misspell // a word of RFC 3168
			}
			b.Until(2*time.Second, "the packet is there", func() bool { return strings.Contains(inner.Said()[before:], "tos ") })
			if said := inner.Said()[before:]; !strings.Contains(said, text) {
				b.Errorf("inner %s, outer %s: not %q but %s", names[in], names[out], text, said)
			}
		}
	}
}
