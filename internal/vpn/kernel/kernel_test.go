package kernel

import (
	"net"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
)

// A peer that is as it should be is left alone, whatever the order of its networks, also by a new process, which finds it where it was. Only
// what has changed is told, and the networks are not replaced while the peer keeps all of them: it would have none for a moment.
func TestChange(t *testing.T) {
	network := func(text string) net.IPNet {
		n := netip.MustParsePrefix(text)
		return net.IPNet{IP: n.Addr().AsSlice(), Mask: net.CIDRMask(n.Bits(), n.Addr().BitLen())}
	}
	first, second, third := network("10.2.0.0/16"), network("fd02::/48"), network("10.3.0.0/16")
	at, other := netip.MustParseAddrPort("192.0.2.1:51820"), netip.MustParseAddrPort("[2001:db8::1]:51820")
	p := tunnel.Peer{Key: key.Public{1}, Endpoint: at, Keepalive: 25, Allowed: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("fd02::/48")}}
	c := (&Engine{}).peer(&p)
	for _, step := range []struct {
		what  string
		spoil func(has *wgtypes.Peer)
		want  *wgtypes.PeerConfig // nil: nothing is told
	}{
		{"nothing", func(*wgtypes.Peer) {}, nil},
		{"a network is missing", func(has *wgtypes.Peer) { has.AllowedIPs = has.AllowedIPs[:1] }, &wgtypes.PeerConfig{AllowedIPs: []net.IPNet{first}}},
		{"it has one more", func(has *wgtypes.Peer) { has.AllowedIPs = append(has.AllowedIPs, third) }, &wgtypes.PeerConfig{ReplaceAllowedIPs: true, AllowedIPs: []net.IPNet{first, second}}},
		{"another keepalive", func(has *wgtypes.Peer) { has.PersistentKeepaliveInterval = 0 }, &wgtypes.PeerConfig{PersistentKeepaliveInterval: c.PersistentKeepaliveInterval}},
		{"another preshared key", func(has *wgtypes.Peer) { has.PresharedKey[0] = 1 }, &wgtypes.PeerConfig{PresharedKey: c.PresharedKey}},
		{"another endpoint", func(has *wgtypes.Peer) { has.Endpoint = net.UDPAddrFromAddrPort(other) }, &wgtypes.PeerConfig{Endpoint: c.Endpoint}},
		{"no endpoint", func(has *wgtypes.Peer) { has.Endpoint = nil }, &wgtypes.PeerConfig{Endpoint: c.Endpoint}},
	} {
		has := wgtypes.Peer{PublicKey: c.PublicKey, PersistentKeepaliveInterval: 25 * time.Second, Endpoint: net.UDPAddrFromAddrPort(at), AllowedIPs: []net.IPNet{second, first}}
		step.spoil(&has)
		got, needed := changeOf(&has, &c)
		if step.want != nil {
			step.want.PublicKey, step.want.UpdateOnly = c.PublicKey, true
		}
		if needed != (step.want != nil) || needed && !reflect.DeepEqual(got, *step.want) {
			t.Errorf("%s: told %v, %+v, want %+v", step.what, needed, got, step.want)
		}
	}
}
