package keeper

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/vpn/ipsec"
	"weir/pf/resolve"
)

// What has changed with a tunnel of IPsec is noted, once.
func TestObserved(t *testing.T) {
	k := &keeper{}
	s := &site{keeper: k, of: resolve.IKEv2{Name: "ipsec0"}}
	up := ipsec.State{SAs: []ipsec.IKE{{State: "ESTABLISHED", Remote: "192.0.2.7:500", RemoteID: "branch", LocalID: "hq", Algorithms: "AES", Children: []ipsec.Child{{State: "INSTALLED"}}}}}
	refused := ipsec.State{Error: "the peer refuses us", ErrorTime: time.Unix(1000, 0)}
	for _, is := range []Status{
		{Site: &Site{}, Problem: "no charon listens"}, {Site: &Site{}, Problem: "no charon listens"}, {Site: &Site{State: refused}}, {Site: &Site{State: refused}},
		{Site: &Site{State: up}}, {Site: &Site{State: up}}, {Site: &Site{State: refused}},
	} {
		s.observe(&is)
	}
	var said []string
	for _, e := range k.journal.after(0).Events {
		said = append(said, fmt.Sprintf("%s %s: %s (%d)", e.Interface, e.Kind, e.Text, e.Times))
	}
	want := []string{
		"ipsec0 tunnel: no charon listens (1)", "ipsec0 tunnel: it works (1)", "ipsec0 error: the peer refuses us (1)",
		"ipsec0 handshake: up, with 192.0.2.7:500 [branch], who knows us as hq: AES (1)", "ipsec0 handshake: there are no keys for packets any more (1)",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
}
