package kernel

import (
	"net/netip"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
)

// A peer that is as it should be is left alone, whatever the order of its networks.
func TestSame(t *testing.T) {
	p := tunnel.Peer{Key: key.Public{1}, Keepalive: 25, Allowed: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("fd02::/48")}}
	c := (&Engine{}).peer(&p)
	has := wgtypes.Peer{PublicKey: c.PublicKey, PersistentKeepaliveInterval: 25 * time.Second}
	for i := range c.AllowedIPs {
		has.AllowedIPs = append(has.AllowedIPs, c.AllowedIPs[len(c.AllowedIPs)-1-i])
	}
	if !same(&has, &c) {
		t.Error("a peer has not changed, and is told anew")
	}
	for _, spoil := range []func(){
		func() { has.AllowedIPs = has.AllowedIPs[:1] }, func() { has.PersistentKeepaliveInterval = 0 }, func() { has.PresharedKey[0] = 1 },
	} {
		before := has
		if spoil(); same(&has, &c) {
			t.Errorf("%+v is not noticed", has)
		}
		has = before
	}
}
