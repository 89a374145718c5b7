package userspace

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, t := range texts {
		all = append(all, netip.MustParsePrefix(t))
	}
	return all
}

// What has not changed is not said again: a port would be opened anew, a peer that roams be sent back.
func TestChanges(t *testing.T) {
	a, b, c := key.Public{1}, key.Public{2}, key.Public{3}
	private := key.NewPrivate()
	at := netip.MustParseAddrPort("192.0.2.1:51820")
	from := &tunnel.Config{Private: private, Port: 51820, Peers: []tunnel.Peer{
		{Key: a, Endpoint: at, Allowed: prefixes("10.1.0.0/16"), Keepalive: 25}, {Key: b, Allowed: prefixes("10.2.0.0/16")},
	}}
	if said := changes(from, from); said != "" {
		t.Errorf("nothing has changed, and it says\n%s", said)
	}
	to := &tunnel.Config{Private: private, Port: 51820, Peers: []tunnel.Peer{
		{Key: a, Endpoint: at, Allowed: prefixes("10.1.0.0/16", "fd01::/48"), Keepalive: 25}, {Key: c, Endpoint: at},
	}}
	want := "public_key=" + a.Hex() + "\nreplace_allowed_ips=true\nallowed_ip=10.1.0.0/16\nallowed_ip=fd01::/48\n" +
		"public_key=" + c.Hex() + "\npreshared_key=" + strings.Repeat("0", 64) + "\nendpoint=192.0.2.1:51820\nreplace_allowed_ips=true\npersistent_keepalive_interval=0\n"
	if diff := cmp.Diff(want, changes(from, to)); diff != "" {
		t.Errorf("(-want +said)\n%s", diff)
	}
	if diff := cmp.Diff("public_key="+b.Hex()+"\nremove=true\n", removals(from, to)); diff != "" {
		t.Errorf("(-want +said)\n%s", diff)
	}
	if said := removals(nil, from); said != "replace_peers=true\n" {
		t.Errorf("the first time it removes %s", said)
	}
	if said := changes(nil, from); !strings.HasPrefix(said, "private_key=") || !strings.Contains(said, "listen_port=51820\n") {
		t.Errorf("the first time it says\n%s", said)
	}
}

func TestReadStates(t *testing.T) {
	a, b := key.Public{1}, key.Public{2}
	text := "private_key=00\nlisten_port=51820\npublic_key=" + a.Hex() + "\npreshared_key=00\nendpoint=[2001:db8::1]:7\nlast_handshake_time_sec=100\n" +
		"last_handshake_time_nsec=5\ntx_bytes=18446744073709551615\nrx_bytes=2\nallowed_ip=10.0.0.0/8\npublic_key=" + b.Hex() + "\nlast_handshake_time_sec=0\nlast_handshake_time_nsec=0\n"
	got, err := readStates(strings.NewReader(text))
	want := []tunnel.State{
		{Key: a, Endpoint: netip.MustParseAddrPort("[2001:db8::1]:7"), Handshake: time.Unix(100, 5), Sent: 1<<64 - 1, Received: 2}, {Key: b},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for _, wrong := range []string{"public_key=0\n", "public_key=" + a.Hex() + "\nendpoint=x\n", "public_key=" + a.Hex() + "\nrx_bytes=-1\n"} {
		if _, err := readStates(strings.NewReader(wrong)); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
