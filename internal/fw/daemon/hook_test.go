package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"weir/internal/fw/dataplane"
	"weir/internal/host/netif"
)

func TestChoose(t *testing.T) {
	tests := []struct {
		name string
		link netif.Link
		mode Mode
		want Hook
	}{
		{"physical", netif.Link{Kind: netif.Physical, Ethernet: true}, Auto, XDP},
		{"physical, tcx forced", netif.Link{Kind: netif.Physical, Ethernet: true}, ForceTCX, TCX},
		{"port of a bridge", netif.Link{Kind: netif.Physical, Ethernet: true, MasterOf: "bridge"}, Auto, NoHook},
		{"port of a bond", netif.Link{Kind: netif.Physical, Ethernet: true, MasterOf: "bond"}, ForceXDP, NoHook},
		{"in a VRF", netif.Link{Kind: netif.Physical, Ethernet: true, MasterOf: "vrf"}, Auto, XDP},
		{"bond", netif.Link{Kind: netif.Bond, Ethernet: true}, Auto, XDP},
		{"veth", netif.Link{Kind: netif.Veth, Ethernet: true}, Auto, TCX},
		{"veth, xdp forced", netif.Link{Kind: netif.Veth, Ethernet: true}, ForceXDP, XDP},
		{"tap", netif.Link{Kind: netif.TAP, Ethernet: true}, Auto, TCX},
		{"tun, xdp forced", netif.Link{Kind: netif.TUN}, ForceXDP, TCX},
		{"wireguard, xdp forced", netif.Link{Kind: netif.WireGuard}, ForceXDP, TCX},
		{"ppp", netif.Link{Kind: netif.PPP}, Auto, TCX},
		{"bridge, xdp forced", netif.Link{Kind: netif.Bridge, Ethernet: true}, ForceXDP, TCX},
		{"vlan, xdp forced", netif.Link{Kind: netif.VLAN, Ethernet: true}, ForceXDP, TCX},
		{"loopback, xdp forced", netif.Link{Kind: netif.Loopback}, ForceXDP, TCX},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := Choose(&test.link, test.mode)
			if got.Hook != test.want || got.Why == "" {
				t.Errorf("Choose = %+v, want hook %s and a reason", got, test.want)
			}
		})
	}
}

func TestWhyReadsWell(t *testing.T) {
	for _, test := range []struct {
		link netif.Link
		want string
	}{
		{netif.Link{Kind: "ifb", Ethernet: true}, "an ifb device has no native XDP"},
		{netif.Link{Kind: netif.Bridge, Ethernet: true}, "a bridge device has no native XDP"},
		{netif.Link{Kind: netif.Veth, Ethernet: true, MasterOf: "bond"}, "port of a bond: its master's hooks see its packets"},
	} {
		if got := Choose(&test.link, Auto).Why; got != test.want {
			t.Errorf("%s: %q, want %q", test.link.Kind, got, test.want)
		}
	}
}

// `weir interfaces` reports a refusal in one sentence. The log has the rest.
func TestWhyOfRefusal(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("attach xdp to interface 4: %w", &dataplane.RefusalError{Err: errors.New("failed to attach link: operation not supported")}),
			"the driver refuses XDP"},
		{fmt.Errorf("attach xdp to interface 4: %w", &dataplane.RefusalError{Said: "veth: too large", Err: errors.New("failed to attach link: numerical result out of range")}),
			"the driver refuses XDP: veth: too large"},
		{errors.New("something else"), ""},
	} {
		var log strings.Builder
		b := &box{
			cfg:   &Config{Log: slog.New(slog.NewTextHandler(&log, nil))},
			hooks: map[int]hooked{4: {Choice: Choice{XDP, "physical device"}}},
		}
		refusal := &dataplane.AttachError{Attachment: dataplane.Attachment{Ifindex: 4, Name: "eth0", XDP: true}, Err: test.err}
		refused := b.refused(fmt.Errorf("commit: %w", refusal))
		if refused != (test.want != "") {
			t.Errorf("%v: refused = %v", test.err, refused)
		}
		if refused && (b.hooks[4].Choice != Choice{TCX, test.want} || !strings.Contains(log.String(), "failed to attach link")) {
			t.Errorf("%v: %+v, log %s", test.err, b.hooks[4].Choice, log.String())
		}
	}
}
