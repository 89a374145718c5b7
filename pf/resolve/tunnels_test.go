package resolve_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/pf/resolve"
)

// The record of tunnels is read as it is written, and as earlier versions have written it.
func TestTunnelsRecord(t *testing.T) {
	all := resolve.Tunnels{WireGuard: []resolve.WireGuard{{Name: "wg0"}}, IKEv2: []resolve.IKEv2{{Name: "ipsec0", ID: resolve.InterfaceID("ipsec0")}}}
	for _, c := range []struct {
		written any
		want    resolve.Tunnels
	}{{all, all}, {all.WireGuard, resolve.Tunnels{WireGuard: all.WireGuard}}, {resolve.Tunnels{}, resolve.Tunnels{}}, {[]int{}, resolve.Tunnels{WireGuard: []resolve.WireGuard{}}}} {
		text, err := json.Marshal(c.written)
		if err != nil {
			t.Fatal(err)
		}
		got := resolve.Tunnels{IKEv2: []resolve.IKEv2{{Name: "before"}}}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	if a, b := resolve.InterfaceID("ipsec0"), resolve.InterfaceID("ipsec1"); a == b || a < 1<<31 {
		t.Errorf("%x %x", a, b)
	}
}
