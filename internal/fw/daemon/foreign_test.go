package daemon

import (
	"testing"

	"weir/internal/host/netif"
)

// TestWhyFollowsKind corrects the reason for TCX when a device turns out to be of another
// kind, and leaves other reasons.
func TestWhyFollowsKind(t *testing.T) {
	links := []netif.Link{
		{Index: 2, Name: "ppp0", Kind: netif.PPPoE, Ethernet: true},
		{Index: 3, Name: "eth0", Kind: netif.Physical, Ethernet: true},
		{Index: 4, Name: "tun0", Kind: netif.TUN},
	}
	b := &box{cfg: &Config{Mode: Auto}, hooks: map[int]hooked{
		2: {Choice: Choice{TCX, "sockets at the other end send frames whose checksum only TCX can complete"}},
		3: {Choice: Choice{TCX, "the driver refuses"}},
		4: {Choice: Choice{TCX, "no Ethernet header"}},
	}}
	if err := b.keepHooks(&machine{links: links}); err != nil {
		t.Fatal(err)
	}
	for index, want := range map[int]string{2: "a pppoe device has no native XDP", 3: "the driver refuses", 4: "no Ethernet header"} {
		if h := b.hooks[index]; h.Hook != TCX || h.Why != want {
			t.Errorf("interface %d: %+v, want %q", index, h.Choice, want)
		}
	}
}
