package daemon

import (
	"net"
	"testing"

	"weir/internal/host/netif"
)

// XDP handles a VLAN device's frames only if the stack would deliver them to that device
// and do nothing else with them.
func TestWhichVLANsXDPHandles(t *testing.T) {
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	eth := func() *netif.Link {
		return &netif.Link{Index: 2, Name: "eth0", Kind: netif.Physical, Ethernet: true, Up: true, MAC: mac}
	}
	vlan := func(change ...func(*netif.Link)) *netif.Link {
		l := &netif.Link{Index: 3, Name: "eth0.10", Kind: netif.VLAN, Ethernet: true, Up: true, MAC: mac, Parent: 2, Tag: 10, TagType: 0x8100}
		for _, c := range change {
			c(l)
		}
		return l
	}
	inner := &netif.Link{Index: 4, Name: "eth0.10.20", Kind: netif.VLAN, Ethernet: true, Up: true, MAC: mac, Parent: 3, Tag: 20, TagType: 0x8100}
	for _, test := range []struct {
		name string
		hook Hook
		vlan *netif.Link
		of   *netif.Link // the VLAN device under test; nil: vlan
		by   string
		why  string
	}{
		{name: "plain", hook: XDP, vlan: vlan(), by: "eth0"},
		{name: "in a VLAN", hook: XDP, vlan: vlan(), of: inner, by: "eth0"},
		{name: "with a priority", hook: XDP, vlan: vlan(func(l *netif.Link) { l.Tag |= 5 << 13 }), by: "eth0"},
		{name: "on a device with TCX", hook: TCX, vlan: vlan(), why: "TCX handles what comes in by eth0"},
		{name: "in a VLAN on a device with TCX", hook: TCX, vlan: vlan(), of: inner, why: "TCX handles what comes in by eth0"},
		{name: "from another namespace", hook: XDP, vlan: vlan(func(l *netif.Link) { l.Parent = 0 }), why: "its parent is in another namespace"},
		{name: "down", hook: XDP, vlan: vlan(func(l *netif.Link) { l.Up = false }), why: "eth0.10 is down"},
		{name: "in one that is down", hook: XDP, vlan: vlan(func(l *netif.Link) { l.Up = false }), of: inner, why: "eth0.10 is down"},
		{name: "in a VRF", hook: XDP, vlan: vlan(func(l *netif.Link) { l.Master, l.MasterOf = 9, "vrf" }), why: "eth0.10 is a port of a vrf"},
		{name: "under a macvlan", hook: XDP, vlan: vlan(func(l *netif.Link) { l.Shared = true }), why: "other devices share eth0.10 (macvlan, ipvlan)"},
		{name: "with another MAC", hook: XDP, vlan: vlan(func(l *netif.Link) { l.MAC = net.HardwareAddr{2, 0, 0, 0, 0, 2} }), why: "eth0.10 has another MAC address than eth0"},
		{name: "with tags", hook: XDP, vlan: vlan(func(l *netif.Link) { l.KeepsTag = true }), why: "eth0.10 leaves tags in its frames (reorder_hdr off)"},
		{name: "of id 0", hook: XDP, vlan: vlan(func(l *netif.Link) { l.Tag = 5 << 13 }), why: "a tag with VLAN id 0 is a priority"},
		{
			name: "of a high index", hook: XDP, vlan: vlan(func(l *netif.Link) { l.Index = 20000 }),
			why: "its packets are dropped: its index is 20000, weir handles up to 16383; create it with a lower index or restart the machine",
		},
	} {
		b := &box{hooks: map[int]hooked{2: {Choice: Choice{Hook: test.hook}}, 3: {}, 4: {}}}
		links := map[int]*netif.Link{2: eth(), 3: test.vlan, 4: inner}
		of := test.of
		if of == nil {
			of = test.vlan
		}
		if got := b.parentHookOf(of, links); got.by != test.by || got.why != test.why {
			t.Errorf("%s: by %q, since %q; want by %q, since %q", test.name, got.by, got.why, test.by, test.why)
		}
	}
}
