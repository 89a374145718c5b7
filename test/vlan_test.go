package test

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

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
// forwarded to VLANs and to wires, and the stack sees almost none of them.
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
