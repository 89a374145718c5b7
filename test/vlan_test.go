package test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/view"
	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// needVLANs skips on kernels without VLAN devices; the emulated kernel has them.
func needVLANs(t *testing.T) {
	t.Helper()
	if !lib.Has(lib.VLAN) {
		testenv.SkipOutside(t, "this kernel has no %s devices; the emulated one has", lib.VLAN)
	}
}

// awaitVLAN waits until weir shows this hook for a VLAN device, and why.
func awaitVLAN(b *lib.Box, device, hook, why string) {
	b.Helper()
	b.Until(10*time.Second, fmt.Sprintf("%s is handled by %s (%s)", device, hook, why), func() bool {
		n := b.Hooks()[device]
		return n.Hook == hook && strings.Contains(n.Why, why)
	})
}

// arrived returns how many packets the stack has received by a device of fw.
func arrived(b *lib.Box, device string) (packets int) {
	b.Helper()
	err := b.Do(lab.FW, func() error {
		text, err := os.ReadFile("/proc/thread-self/net/dev")
		for line := range strings.Lines(string(text)) {
			if name, rest, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name == device {
				packets, err = strconv.Atoi(strings.Fields(rest)[1])
			}
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return packets
}

//	lan ══ wire, VLAN 10, VLAN 11 in VLAN 10 ══ fw ══ the same ══ wan
//
// XDP of the parent handles the frames of VLAN devices on their own interfaces. They are
// forwarded to VLANs and to wires, and the stack sees almost none of them. They keep within the rate of
// the parent's queues.
func TestVLANsByXDP(t *testing.T) {
	needVLANs(t)
	t.Parallel()
	b := weir.Box(t, "xdp")
	media := []lib.Medium{lib.Wire, lib.VLAN, lib.QinQ}
	lan, wan := b.Paths(media...)
	b.WeirRun(rulesFor(lan, wan))
	for i := range media[1:] {
		awaitVLAN(b, lan[i+1].Device, "xdp", "XDP program of "+lan[i+1].Under+" handles")
	}
	for i, pair := range [][2]int{{0, 1}, {1, 0}, {1, 1}, {1, 2}, {2, 1}, {2, 2}} {
		from, to := &lan[pair[0]], &wan[pair[1]]
		b.Tell(string(from.Medium)+" to "+string(to.Medium), func(b *lib.Box) {
			seen := func() (packets int) {
				for _, p := range []*lib.Path{from, to} {
					if p.Medium != lib.Wire { // it counts what XDP takes, too
						packets += arrived(b, p.Device)
					}
				}
				return packets
			}
			before := seen()
			crossesTwice(b, from, to, uint16(5301+i))
			// iperf3 alone sends some hundreds in both directions
			if n := seen() - before; n > 75 {
				b.Errorf("the stack saw %d packets come in", n)
			}
		})
	}
	b.Tell("queues of the device below", func(b *lib.Box) {
		b.Weir("load", b.Rules("queue up on "+wan[1].Under+" bandwidth 4M default\n"+rulesFor(lan, wan)))
		queuesBelow(b, &lan[0], &wan[1])
	})
}

// queuesBelow sends by a VLAN whose device below has the queues of 4 Mbit/s. The kernel delays what comes back (netem), and
// weir sees that.
func queuesBelow(b *lib.Box, from, to *lib.Path) {
	if out, err := exec.Command("modprobe", "sch_netem").CombinedOutput(); err != nil {
		b.Fatalf("load netem: %v: %s", err, out)
	}
	b.Run(to.Host, "tc", "qdisc", "add", "dev", "trunk", "root", "netem", "delay", "30ms", "limit", "1000")
	b.Listen(to.Host, 5311, "iperf3", "-s", "-p", "5311")
	for _, ipv6 := range []bool{false, true} {
		line := 4e6 * map[bool]float64{false: payload, true: payload6}[ipv6]
		got := 0.0
		for tries := 0; got < 0.2*line && tries < 3; tries++ { // an emulated machine may be slower, and iperf3 sometimes counts nothing
			got = runIperf3(b, from.Host, to.Addr(10, ipv6), "-p", "5311", "-B", from.Addr(10, ipv6), "-t", "5", "-O", "1", "-l", "4000").rate()
		}
		if b.Logf("IPv6 %v: %.2f of the line", ipv6, got/line); got < 0.2*line || got > 1.08*line {
			b.Errorf("IPv6 %v: a line of %.3g carries %.3g bit/s", ipv6, line, got)
		}
	}
	tree := lib.WeirJSON[view.Queues](b, "queues", "--json").Trees[0]
	if up := tree.Queues[0]; tree.Interface != to.Under || tree.Engine != "phantom" || up.Sent < 1e6 || up.RTT.Samples < 10 || up.RTT.Median < 27 {
		b.Errorf("behind a delay of 30 ms weir queues shows %+v", tree)
	}
}

//	lan ══ trunk: VLAN 10 ══ fw ══ wire ══ wan
//
// If the stack does more with a VLAN device than receive, the device stays with the stack
// and TCX. It goes back to XDP when that is over. Packets pass at all times.
func TestVLANsOfTheStack(t *testing.T) {
	needVLANs(t)
	t.Parallel()
	b := weir.Box(t, "xdp")
	lan, wan := b.Paths(lib.Wire, lib.VLAN)
	from, to := &lan[1], &wan[0]
	// What belongs to the macvlan comes in past the rules and without a state. Its replies need
	// a rule without state: `pass` alone matches no echo reply.
	b.WeirRun(rulesFor(lan, wan) + "pass on " + from.Device + " inet from 10.99.0.0/24 no state\npass on bridge0 inet from 10.98.0.0/24\n")
	var address string
	if err := b.Do(lab.FW, func() error {
		own, err := net.InterfaceByName(from.Device)
		address = own.HardwareAddr.String()
		return err
	}); err != nil {
		b.Fatal(err)
	}
	awaitVLAN(b, from.Device, "xdp", "handles")
	port := uint16(5401)
	cross := func(b *lib.Box) {
		b.Helper()
		crossesTwice(b, from, to, port)
		port++
	}
	b.Tell("at first", cross)
	for _, c := range []struct{ name, change, why, back string }{
		{"another MAC address", "link set " + from.Device + " address 02:77:65:00:09:09", "another MAC address", "link set " + from.Device + " address " + address},
		{"a macvlan on it", "link add link " + from.Device + " name on0 type macvlan mode bridge", "other devices share", "link del on0"},
	} {
		b.Tell(c.name, func(b *lib.Box) {
			b.IP(lab.FW, c.change)
			b.IP(lab.LAN, "neigh flush dev vlan") // it has learnt the other MAC address
			awaitVLAN(b, from.Device, "tcx", c.why)
			cross(b)
			b.IP(lab.FW, c.back)
			b.IP(lab.LAN, "neigh flush dev vlan")
			awaitVLAN(b, from.Device, "xdp", "handles")
			cross(b)
		})
	}
	b.Tell("tags kept", func(b *lib.Box) {
		b.IP(lab.FW, "link set "+from.Device+" type vlan reorder_hdr off")
		awaitVLAN(b, from.Device, "tcx", "leaves tags")
		b.IP(lab.FW, "link set "+from.Device+" type vlan reorder_hdr on")
		awaitVLAN(b, from.Device, "xdp", "handles")
		cross(b)
	})
	b.Tell("a macvlan on it, in another namespace", func(b *lib.Box) {
		wanNS := b.Lab.Namespace(lab.WAN)
		b.IP(lab.FW, "link add link "+from.Device+" name on0 type macvlan mode bridge", "link set on0 netns "+wanNS)
		b.Address(lab.WAN, "on0", "10.99.0.1/24")
		b.Address(lab.LAN, "vlan", "10.99.0.10/24")
		// Nothing tells weir when the macvlan comes up there. A first ping may be lost.
		b.Until(10*time.Second, "the macvlan answers", func() bool {
			_, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", "10.99.0.1")
			return err == nil
		})
		b.Ping(lab.LAN, "10.99.0.1", 2)
		cross(b)
		b.IP(lab.WAN, "link del on0")
		b.IP(lab.LAN, "address del 10.99.0.10/24 dev vlan")
	})
	b.Tell("a port of a bridge", func(b *lib.Box) {
		b.IP(lab.FW, "link add bridge0 type bridge", "link set "+from.Device+" master bridge0")
		b.Address(lab.FW, "bridge0", "10.98.0.1/24")
		b.Address(lab.LAN, "vlan", "10.98.0.10/24")
		b.AwaitHook("bridge0")
		b.Ping(lab.FW, "10.98.0.10", 2)
		b.IP(lab.FW, "link del bridge0")
		awaitVLAN(b, from.Device, "xdp", "handles")
		cross(b)
	})
	b.Tell("in another namespace", func(b *lib.Box) {
		b.IP(lab.FW, "link set "+from.Device+" netns "+b.Lab.Namespace(lab.WAN))
		b.Address(lab.WAN, from.Device, "10.97.0.1/24")
		b.Address(lab.LAN, "vlan", "10.97.0.10/24")
		b.Ping(lab.LAN, "10.97.0.1", 2)
	})
}
