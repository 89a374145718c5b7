package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// Packets from 10 on a path of the LAN keep their address; packets from 20 are translated
// to fw's address where they leave.
const (
	pairRules = `
block all
pass in on { LAN }
pass out on { WAN }
`
	wireGuardRules = `
pass on %s inet proto udp from any port %d to any port %[2]d
`
)

func rulesFor(lan, wan []lib.Path) string {
	names := func(paths []lib.Path) string {
		var all []string
		for _, p := range paths {
			all = append(all, p.Device)
		}
		return strings.Join(all, " ")
	}
	var text strings.Builder
	for _, w := range wan {
		for _, l := range lan {
			fmt.Fprintf(&text, "match out on %s inet from %s nat-to (%s)\n", w.Device, l.Addr(20, false), w.Device)
			fmt.Fprintf(&text, "match out on %s inet6 from %s nat-to (%s)\n", w.Device, l.Addr(20, true), w.Device)
		}
	}
	text.WriteString(strings.NewReplacer("LAN", names(lan), "WAN", names(wan)).Replace(pairRules))
	for _, p := range append(lan, wan...) {
		if p.Medium == lib.WireGuard {
			fmt.Fprintf(&text, wireGuardRules, p.Under, p.WireGuardPort())
		}
	}
	return text.String()
}

//	lan ══ wire, bridge, tun ══ fw ══ wire, bridge, tun ══ wan
//	ping, iperf3                                  iperf3 -s
//
// Packets of both families cross between any two hooks, in both directions, with and
// without translation. Under XDP the wires have XDP and the others TCX, so each pair of
// hooks occurs. Under TCX offloads are on, and super-packets cross.
func TestEveryPairOfHooks(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		lan, wan := b.Paths(lib.Wire, lib.Bridge, lib.Tunnel)
		b.WeirRun(rulesFor(lan, wan))
		hooks := b.Hooks()
		for _, p := range append(lan, wan...) {
			want := "tcx"
			if b.Hook == "xdp" && p.Medium == lib.Wire {
				want = "xdp"
			}
			if h := hooks[p.Device]; h.Hook != want {
				b.Errorf("%s has hook %s (%s), want %s", p.Device, h.Hook, h.Why, want)
			}
		}
		for i, l := range lan {
			for k, w := range wan {
				b.Tell(string(l.Medium)+" to "+string(w.Medium), func(b *lib.Box) { crosses(b, &l, &w, uint16(5201+i*len(wan)+k)) })
			}
		}
		for _, p := range append(lan, wan...) {
			if n := b.Packets(p.Device, reason.Guard); n != 0 {
				b.Errorf("%d packets came past the programs to %s", n, p.Device)
			}
		}
	})
}

// crosses runs ping and iperf3 from one path to another: both families, translated and not.
func crosses(b *lib.Box, from, to *lib.Path, port uint16) {
	b.Helper()
	for _, ipv6 := range []bool{false, true} {
		crossesAs(b, from, to, port, ipv6, false)
		crossesAs(b, from, to, port, ipv6, true)
	}
}

// crossesTwice does it for IPv4 without translation and for IPv6 with it.
func crossesTwice(b *lib.Box, from, to *lib.Path, port uint16) {
	b.Helper()
	crossesAs(b, from, to, port, false, false)
	crossesAs(b, from, to, port, true, true)
}

func crossesAs(b *lib.Box, from, to *lib.Path, port uint16, ipv6, translated bool) {
	b.Helper()
	own := from.Addr(10, ipv6)
	seen := own
	if translated {
		own, seen = from.Addr(20, ipv6), to.Addr(1, ipv6)
	}
	b.Run(lab.LAN, "ping", "-n", "-c", "2", "-i", "0.1", "-W", "2", "-I", own, to.Addr(10, ipv6))
	server := b.Listen(lab.WAN, port, "iperf3", "-s", "-1", "-p", fmt.Sprint(port))
	b.Run(lab.LAN, "iperf3", "-c", to.Addr(10, ipv6), "-p", fmt.Sprint(port), "-B", own, "--bidir", "-n", "500K")
	if said := server.Wait(10*time.Second, 0); !strings.Contains(said, "Accepted connection from "+seen+",") {
		b.Errorf("%s to %s: the server did not see %s:\n%s", own, to.Addr(10, ipv6), seen, said)
	}
}

//	lan ══ wire, bridge, VLAN, WireGuard, ppp ══ fw ══ the same ══ wan
//
// The same on devices that not every kernel has. From XDP the way to a VLAN device is
// also by XDP: its parent sends the frame with the tag in it.
func TestEveryDevice(t *testing.T) {
	media := []lib.Medium{lib.Wire, lib.Bridge, lib.VLAN, lib.WireGuard, lib.PPP}
	for _, m := range media {
		if !lib.Has(m) {
			testenv.SkipOutside(t, "this kernel has no %s devices; the emulated one has", m)
		}
	}
	weir.BothAtOnce(t, func(b *lib.Box) {
		lan, wan := b.Paths(media...)
		b.WeirRun(rulesFor(lan, wan))
		for i := range media {
			// each from a wire and to one, and each to the next
			pairs := [][2]int{{0, i}, {i, 0}, {i, (i + 1) % len(media)}}
			switch i {
			case 0:
				pairs = pairs[:1]
			case len(media) - 1:
				pairs = pairs[:2]
			}
			for _, pair := range pairs {
				l, w := &lan[pair[0]], &wan[pair[1]]
				b.Tell(string(l.Medium)+" to "+string(w.Medium), func(b *lib.Box) {
					up := b.Packets(l.Device, reason.UpDevice)
					crosses(b, l, w, uint16(5201+pair[0]*len(media)+pair[1]))
					if n := b.Packets(l.Device, reason.UpDevice) - up; n != 0 && (w.Medium == lib.VLAN || w.Medium == lib.Wire) {
						b.Errorf("%d packets went up on their way to %s", n, w.Device)
					}
				})
			}
		}
	})
}

//	lan ═══ fw ═══ wan            an MTU of 9000 on all wires
//	ping -s 8972, iperf3          iperf3 -s
//
// Jumbo frames fill several buffers under XDP. The MTU is raised while weir runs. A frame
// for a wire with a smaller MTU gets the answer that says so.
func TestJumboFrames(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun("block\npass in on lan0\npass out on wan0 nat-to (wan0)\n")
		b.Ping(lab.LAN, wanHost, 2)
		for _, end := range []struct{ host, device string }{{lab.LAN, "eth0"}, {lab.FW, "lan0"}, {lab.FW, "wan0"}, {lab.WAN, "eth0"}} {
			b.IP(end.host, "link set "+end.device+" mtu 9000")
		}
		for _, to := range []string{wanHost, wanHost6} {
			size := "8972"
			if to == wanHost6 {
				size = "8952"
			}
			b.Until(10*time.Second, "frames of 9000 bytes pass to "+to, func() bool {
				_, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", "-M", "do", "-s", size, to)
				return err == nil
			})
			b.Run(lab.LAN, "ping", "-n", "-c", "20", "-i", "0.05", "-W", "2", "-M", "do", "-s", size, to)
		}
		if hook := b.Hooks()["lan0"].Hook; hook != b.Hook {
			b.Errorf("lan0 has %s", hook)
		}
		b.Listen(lab.WAN, 5201, "iperf3", "-s")
		for _, args := range [][]string{{"-n", "16M"}, {"-n", "16M", "-R"}, {"-u", "-b", "200M", "-l", "8900", "-t", "1"}} {
			b.Run(lab.LAN, "iperf3", append([]string{"-c", wanHost}, args...)...)
		}
		b.IP(lab.FW, "link set wan0 mtu 1400")
		b.IP(lab.WAN, "link set eth0 mtu 1400")
		b.Until(10*time.Second, "the box says that the wire is narrower", func() bool {
			said, _ := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", "-M", "do", "-s", "8000", wanHost)
			return strings.Contains(said, "(mtu = 1400)") || strings.Contains(said, "mtu=1400")
		})
		for _, device := range []string{"lan0", "wan0"} {
			if n := b.Packets(device, reason.Malformed); n > 0 {
				b.Errorf("%d packets of %s count as malformed", n, device)
			}
		}
	})
}
