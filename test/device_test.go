package test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/dataplane"
	"weir/internal/fw/reason"
	"weir/internal/host/netif"
	"weir/internal/lab"
	"weir/test/lib"
)

//	lan eth0 ── lan0 fw wan0 ── wan
//	    dmz  ── dmz0           (goes, and another device has its index at once)
//
// A device that reuses the index of another is a new interface. It has its own programs,
// the rules of its own name, counters that begin at 0, and no states of link-local
// addresses.
func TestIndexIsUsedAgain(t *testing.T) {
	const rules = `
set skip on { lo dmz0 }
block all
pass on lan0
`
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.Wire("dmz0", lab.LAN, "dmz")
		b.Address(lab.FW, "dmz0", "10.9.0.1/24", "fe80::1/64")
		b.Address(lab.LAN, "dmz", "10.9.0.2/24", "fe80::2/64")
		a := b.WeirRun(rules)
		b.Ping(lab.LAN, "10.9.0.1", 2)
		index := b.Hooks()["dmz0"].Index
		if b.Packets("dmz0", reason.Skip) == 0 {
			b.Errorf("dmz0 is not skipped:\n%s", b.Weir("info"))
		}
		a.Signal(syscall.SIGSTOP) // it does not look in between
		b.IP(lab.FW, "link del dmz0", fmt.Sprintf("link add other0 index %d type veth peer name dmz netns %s", index, b.Namespace(lab.LAN)))
		a.Signal(syscall.SIGCONT)
		b.Address(lab.FW, "other0", "10.9.0.1/24", "fe80::1/64")
		b.Address(lab.LAN, "dmz", "10.9.0.2/24", "fe80::2/64")
		b.AwaitHook("other0")
		b.Until(10*time.Second, "other0 is not skipped as dmz0 was", func() bool { return !b.Hooks()["other0"].Skip })
		if out, err := b.Try(lab.LAN, "ping", "-n", "-c", "2", "-i", "0.1", "-W", "1", "10.9.0.1"); err == nil {
			b.Errorf("no rule passes ping on other0, and it is answered:\n%s", out)
		}
		if b.Packets("other0", reason.Block) != 2 || b.Packets("other0", reason.Skip) != 0 {
			b.Errorf("other0 has counted\n%s", b.Weir("info"))
		}
		b.Ping(lab.LAN, fwLAN, 2)
	})
}

//	lan eth0 ── lan0 fw wan0 ── wan
//	    dmz  ── dmz0          (index 20000; dmz1 with 20001 comes later)
//
// An interface whose index is too high has programs, which drop its packets. weir says so.
// Everything else goes on.
func TestIndexIsTooHigh(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.IP(lab.FW, "link add dmz0 index 20000 type veth peer name dmz netns "+b.Namespace(lab.LAN))
		b.Address(lab.FW, "dmz0", "10.9.0.1/24")
		b.Address(lab.LAN, "dmz", "10.9.0.2/24")
		a := b.WeirRun("set skip on lo\npass\n")
		b.IP(lab.FW, "link add dmz1 index 20001 type veth peer name dmz2", "link set dmz1 up")
		b.AwaitHook("dmz1")
		for _, name := range []string{"dmz0", "dmz1"} {
			if h := b.Hooks()[name]; h.Hook != "tcx" || !strings.Contains(h.Why, "packets are dropped: its index is 2000") {
				b.Errorf("%s has %+v", name, h)
			}
		}
		if out, err := b.Try(lab.LAN, "ping", "-n", "-c", "2", "-i", "0.1", "-W", "1", "10.9.0.1"); err == nil {
			b.Errorf("ping through dmz0 is answered:\n%s", out)
		}
		if b.Packets("(others)", reason.Interface) == 0 {
			b.Errorf("the others have counted no packet of an unknown interface:\n%s", b.Weir("info"))
		}
		b.Ping(lab.LAN, fwLAN, 2)
		b.IP(lab.FW, "link del dmz1", "link del dmz0")
		b.Until(10*time.Second, "both are forgotten", func() bool { return len(b.Hooks()) == 3 }) // lo, lan0, wan0
		if said := a.Said(); strings.Contains(said, "weir: error") {
			b.Errorf("weir said\n%s", said)
		}
	})
}

//	fw: somebody detaches weir's links of lan0 (bpftool link detach)
//
// weir attaches again, and weir stop still restores the settings that it found.
func TestLinksAreDetached(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		found := b.Machine(lab.FW)
		a := b.WeirRun(gatewayConf(t))
		index := b.Hooks()["lan0"].Index
		pins, err := filepath.Glob(filepath.Join(dataplane.Base, filepath.Base(b.RunFolder()), "links", fmt.Sprintf("%d-*", index)))
		if err != nil || len(pins) < 2 {
			b.Fatalf("links of lan0: %q, %v", pins, err)
		}
		for _, pin := range pins {
			l, err := bpfload.OpenLink(pin)
			if err == nil {
				err = errors.Join(l.Detach(), l.Close())
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		b.Run(lab.FW, "ip", "link", "set", "lan0", "mtu", "1400") // nothing announces a link's end
		b.Until(10*time.Second, "weir attaches again", func() bool { return strings.Count(a.Said(), "attached interface=lan0") == 2 })
		b.Ping(lab.LAN, wanHost, 2)
		b.Run(lab.FW, "ip", "link", "set", "lan0", "mtu", "1500")
		b.Weir("stop")
		b.SameMachine(lab.FW, found, "after somebody detached weir's links, and weir stop")
	})
}

//	fw: 4,200 addresses
//
// A box with more addresses than weir handles is filtered. weir says what it does not know.
func TestAddressesAreTooMany(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	var batch strings.Builder
	for i := range 4200 {
		fmt.Fprintf(&batch, "address add 10.8.%d.%d/32 dev lo\n", i>>8, i&255)
	}
	b.Run(lab.FW, "ip", "-batch", b.Rules(batch.String()))
	a := b.WeirRun(gatewayConf(t))
	if !strings.Contains(a.Said(), "more addresses than weir handles") || !strings.Contains(a.Said(), "room for 4096") {
		b.Errorf("weir said\n%s", a.Said())
	}
	b.Ping(lab.LAN, wanHost, 2)
}

//	lan eth0 ── lan0 fw wan0 ── wan       fw: no default route
//	    dmz  ── dmz0          (goes)
//
// If an interface is gone, the kernel replies to packets on their way there: no route.
// The states end by their timeouts, with and without the daemon.
func TestInterfaceGoesWithStates(t *testing.T) {
	const rules = `
set skip on lo
set timeout { icmp.first 3, icmp.error 3 }
pass
`
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.Wire("dmz0", lab.WAN, "dmz")
		b.Address(lab.FW, "dmz0", "10.9.0.1/24")
		b.Address(lab.WAN, "dmz", "10.9.0.2/24")
		b.IP(lab.FW, "route del default")
		b.IP(lab.WAN, "route add 192.168.1.0/24 via 10.9.0.1")
		a := b.WeirRun(rules)
		for _, alive := range []bool{true, false} {
			ping := b.Start(lab.LAN, "ping", "-n", "-i", "0.1", "10.9.0.2")
			b.Until(10*time.Second, "ping is answered", func() bool { return strings.Contains(ping.Said(), "bytes from 10.9.0.2") })
			b.IP(lab.FW, "link del dmz0")
			b.Until(10*time.Second, "the kernel answers for what is gone", func() bool {
				return strings.Contains(ping.Said(), "From "+fwLAN+" icmp_seq=") && strings.Contains(ping.Said(), "Net Unreachable")
			})
			if b.Packets("lan0", reason.UpRoute) == 0 {
				b.Errorf("lan0 has counted\n%s", b.Weir("info"))
			}
			ping.Kill()
			b.Until(20*time.Second, "the states have ended", func() bool { return len(b.States("proto", "icmp")) == 0 })
			if alive {
				if !a.Running() {
					b.Fatalf("the daemon ended:\n%s", a.Said())
				}
				b.Wire("dmz0", lab.WAN, "dmz")
				b.Address(lab.FW, "dmz0", "10.9.0.1/24")
				b.Address(lab.WAN, "dmz", "10.9.0.2/24")
				b.IP(lab.WAN, "route add 192.168.1.0/24 via 10.9.0.1")
				b.AwaitHook("dmz0")
				a.Kill()
			}
		}
	})
}

//	lan ══ ping ══▶ fw wan0 (MTU 1280, then another MAC) ── wan
//
// weir follows an interface's MTU and its own MAC address.
func TestInterfaceChanges(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(gatewayConf(b))
		b.Ping(lab.LAN, wanHost, 2)
		b.IP(lab.FW, "link set wan0 mtu 1280")
		b.Until(10*time.Second, "packets over the new MTU are refused", func() bool {
			out, _ := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", "-M", "do", "-s", "1400", wanHost) //nolint:errcheck // tried again until it is so
			return strings.Contains(out, "mtu = 1280") || strings.Contains(out, "mtu=1280")
		})
		b.IP(lab.FW, "link set wan0 mtu 1500", "link set wan0 address 02:77:65:00:01:77")
		b.Until(20*time.Second, "the neighbour answers to the new MAC", func() bool {
			_, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", wanHost)
			return err == nil
		})
		if out := b.Run(lab.WAN, "ip", "neighbour", "show", fwWAN); !strings.Contains(out, "02:77:65:00:01:77") {
			b.Errorf("the neighbour knows %s", out)
		}
	})
}

//	lan ── lan0 (set skip) fw wan0 ── wan
//
// An interface under set skip keeps its programs: packets that cross to another interface
// are filtered and translated there. lo is an interface like others unless it is skipped.
func TestSkippedInterface(t *testing.T) {
	const rules = `
set skip on lan0
match out on wan0 inet from 192.168.1.0/24 nat-to (wan0)
block all
pass on lo
block in on lo inet proto icmp
pass out on wan0 inet proto icmp
`
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(rules)
		if h := b.Hooks()["lan0"]; h.Hook != b.Hook || !h.Skip {
			b.Errorf("lan0 has hook %s, skipped: %t", h.Hook, h.Skip)
		}
		b.Ping(lab.LAN, wanHost, 2)
		states := b.States("proto", "icmp", "host", fwWAN)
		if len(states) != 1 || states[0].Src.Addr.String() != lanHost {
			b.Errorf("states:\n%s", b.Weir("states", "-v"))
		}
		b.Ping(lab.LAN, fwLAN, 2)
		for _, try := range []struct{ host, to string }{{lab.LAN, wanHost6}, {lab.WAN, fwWAN}, {lab.FW, "127.0.0.1"}} {
			if out, err := b.Try(try.host, "ping", "-n", "-c", "1", "-W", "1", try.to); err == nil {
				b.Errorf("ping %s from %s is answered:\n%s", try.to, try.host, out)
			}
		}
		b.Run(lab.FW, "ping", "-n", "-c", "1", "-W", "1", "::1")
	})
}

// macvlanRules pass without states, in both directions, except what a reject and an ICMP
// error of a state need.
const macvlanRules = `
set skip on lo
block
pass on { lan0 up0 } no state
block return in on up0 to (up0)
pass in on up0 proto udp to { 192.168.1.10, fd00:1::10 } port 9 keep state
pass in on up0 inet proto udp to (up0) port 10 af-to inet6 from (lan0) to fd00:1::10
`

//	lan ── lan0 fw up0 (macvlan on wan0) ── wan
//
// A macvlan gives packets on to the device below it, where weir sees them once more. It
// lets through what it has redirected to the macvlan: packets without a state, late
// fragments, rejects, and ICMP errors of a state.
func TestUplinkIsAMacvlan(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.IP(lab.FW, "address flush dev wan0", "link add link wan0 name up0 type macvlan mode bridge")
		b.Address(lab.FW, "up0", fwWAN+"/24", fwWAN6+"/64")
		b.IP(lab.FW, "link set wan0 up", "route replace default via "+wanHost, "-6 route replace default via "+wanHost6)
		b.IP(lab.WAN, "neigh flush all", "route replace 192.168.1.0/24 via "+fwWAN, "-6 route replace fd00:1::/64 via "+fwWAN6)
		b.WeirRun(macvlanRules, "--or-block") // XDP where a device has it
		for _, to := range []string{wanHost, wanHost6} {
			b.Ping(lab.LAN, to, 3)
			b.Run(lab.LAN, "ping", "-n", "-c", "2", "-W", "2", "-s", "4000", to)
		}
		for _, to := range []string{fwWAN, fwWAN6} {
			refused(b, lab.WAN, map[bool]string{false: wanHost, true: wanHost6}[to == fwWAN6], to, 81)
		}
		for from, to := range map[string]string{wanHost: lanHost, wanHost6: lanHost6} {
			refusedUDP(b, lab.WAN, from, to, 9)
		}
		refusedUDP(b, lab.WAN, wanHost, fwWAN, 10) // by IPv6
		if n := b.Packets("wan0", reason.Guard); n != 0 {
			b.Errorf("wan0 dropped %d packets that weir had passed:\n%s", n, b.Weir("info"))
		}
	})
}

// tagged sends, by scapy, pings in frames with a VLAN tag (802.1Q and 802.1ad), and
// two in frames with a priority tag.
const tagged = `
from scapy.all import *
conf.verb = 0
ping = lambda n: IP(src="192.168.1.10", dst="203.0.113.1") / ICMP(id=n)
to = Ether(dst="02:77:65:00:00:01")
sendp([to / Dot1Q(vlan=10) / ping(10), to / Dot1Q(type=0x88a8, vlan=10) / ping(11),
       to / Dot1Q(vlan=10) / Dot1Q(vlan=0) / ping(12), to / Dot1AD(vlan=10) / ping(13),
       to / Dot1Q(vlan=0, prio=5) / ping(20), to / Dot1AD(vlan=0) / ping(21)], iface="eth0")
`

//	lan ── frames with tags ──▶ lan0 fw wan0 ── wan: tcpdump
//
// Frames with a tag do not belong to lan0, and there is no VLAN device for them: nothing
// passes. A tag with VLAN id 0 counts as no tag.
func TestTaggedFrames(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun("pass\n")
		b.Ping(lab.LAN, fwLAN, 1)
		seen := b.Start(lab.WAN, "tcpdump", "-e", "-n", "-l", "--immediate-mode", "-i", "eth0", "icmp or vlan")
		b.Until(10*time.Second, "tcpdump listens", func() bool { return strings.Contains(seen.Said(), "listening on") })
		b.Run(lab.LAN, "/usr/bin/python3", "-c", tagged) // the distribution's, which has scapy
		b.Until(10*time.Second, "pings with a priority tag pass", func() bool {
			return strings.Contains(seen.Said(), "id 20,") && strings.Contains(seen.Said(), "id 21,")
		})
		for id := 10; id < 14; id++ {
			if strings.Contains(seen.Said(), fmt.Sprintf("id %d,", id)) {
				b.Errorf("tcpdump saw a tagged frame's packet:\n%s", seen.Said())
			}
		}
		if strings.Contains(seen.Said(), "vlan 0") {
			b.Errorf("a priority tag has crossed the router:\n%s", seen.Said())
		}
	})
}

//	fw: ethtool -K lan0 rxvlan on
//
// XDP needs the tags in the frame. weir turns stripping off, also if it is turned on
// while weir runs.
func TestTagsStayInTheFrame(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "xdp")
	b.Run(lab.FW, "ethtool", "-K", "lan0", "rxvlan", "on")
	strips := func() bool {
		var on bool
		if err := b.Do(lab.FW, func() error {
			features, err := netif.VLANStripping("lan0")
			for _, strips := range features {
				on = on || strips
			}
			return err
		}); err != nil {
			b.Fatal(err)
		}
		return on
	}
	if !strips() {
		t.Fatal("lan0 strips no tags")
	}
	b.WeirRun("pass\n")
	if strips() || b.Hooks()["lan0"].Hook != "xdp" {
		t.Errorf("lan0 strips tags: %t\n%s", strips(), b.Weir("interfaces"))
	}
	b.Run(lab.FW, "ethtool", "-K", "lan0", "rxvlan", "on")
	b.Until(10*time.Second, "lan0 strips no tags any more", func() bool { return !strips() })
	b.Weir("stop")
	if !strips() {
		t.Error("weir stop did not give back that lan0 strips tags")
	}
}
