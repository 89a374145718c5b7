package daemon

import (
	"testing"

	"weir/internal/host/netif"
	"weir/pf/resolve"
)

// An interface that vanishes while rules are loaded is no failure of the load.
func TestVanishedInterface(t *testing.T) {
	const index = 1 << 13
	b := &box{hooks: map[int]hooked{index: {}}, rules: &compiled{}, host: &resolve.Host{}}
	if err := b.setInterface(&netif.Link{Index: index, Name: "ghost0", Kind: netif.Veth}); err != nil {
		t.Error(err)
	}
}
