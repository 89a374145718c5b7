package doctor

import (
	"strings"
	"testing"
)

// TestForeignChains checks that a chain's table names its maker, and that the chain is
// listed with its maker's own command.
func TestForeignChains(t *testing.T) {
	b := newBox(2)
	b.card("eth0", "igc", 2500, 2, 2)
	b.s.Weir = &Weir{StateLimit: 1000, Interfaces: []WeirInterface{{Name: "eth0", Hook: "xdp"}}}
	b.s.Before.Weir, b.s.After.Weir = &WeirCount{}, &WeirCount{}
	b.s.Services = []string{"dockerd", "firewalld", "ufw"}
	b.s.Chains = []Chain{
		{Name: "nftables inet firewalld filter_FORWARD", Hook: "forward", Policy: "drop"},
		{Name: "iptables filter FORWARD", Hook: "forward", Policy: "drop"},
		{Name: "iptables nat POSTROUTING", Hook: "postrouting", NAT: true},
	}
	r, err := Examine(b.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"nftables inet firewalld filter_FORWARD": ", and firewalld runs here", "iptables filter FORWARD": ", and dockerd and ufw run here",
		"iptables nat POSTROUTING": "iptables -t nat -nvL --line-numbers",
	}
	for _, f := range r.Findings {
		if w := want[f.Subject]; w != "" && (strings.HasSuffix(f.Says, w) || f.Remedies[0].Command == w) {
			delete(want, f.Subject)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %q of %+v", want, r.Findings)
	}
}
