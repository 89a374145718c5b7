package lib

import (
	"net/netip"
	"testing"

	"weir/internal/lab"
)

// ISP is the host at the other end of a second uplink.
const ISP = "isp"

// Addresses of the second uplink: of isp, and of fw there.
const (
	ISPHost  = "192.0.2.1"
	ISPHost6 = "2001:db8:2::1"
	FWISP    = "192.0.2.2"
	FWISP6   = "2001:db8:2::2"
)

// BothUplinks tells a story twice, side by side, in a lab with two uplinks: fw's default
// route leads to wan. The hosts wan and isp both have far's addresses, so who answers
// tells by which uplink a packet went.
//
//	          ┌─ wan0 ── wan, FarHost
//	lan ── fw ┤
//	          └─ wan1 ── isp, FarHost
func (w Binary) BothUplinks(t *testing.T, story func(b *Box)) { w.uplinks(t, bothHooks, story) }

// UplinksUnderTCX is BothUplinks for what hooks do not matter to.
func (w Binary) UplinksUnderTCX(t *testing.T, story func(b *Box)) {
	w.uplinks(t, []string{"tcx"}, story)
}

func (w Binary) uplinks(t *testing.T, hooks []string, story func(b *Box)) {
	t.Parallel()
	for _, hook := range hooks {
		t.Run(hook, func(t *testing.T) {
			t.Parallel()
			b := w.build(t, hook, uplinks())
			for _, host := range []string{lab.WAN, ISP} {
				b.IP(host, "address add "+FarHost+"/32 dev lo", "address add "+FarHost6+"/128 dev lo nodad")
			}
			story(b)
		})
	}
}

func uplinks() lab.Topology {
	t := lab.Gateway()
	t.Hosts = append(t.Hosts, lab.Host{Name: ISP, Routes: []lab.Route{
		{To: netip.MustParsePrefix("192.168.1.0/24"), Via: netip.MustParseAddr(FWISP)},
		{To: netip.MustParsePrefix("fd00:1::/64"), Via: netip.MustParseAddr(FWISP6)},
	}})
	t.Wires = append(t.Wires, lab.Wire{
		{Host: lab.FW, Device: "wan1", MAC: "02:77:65:00:03:01", Addresses: []netip.Prefix{
			netip.MustParsePrefix(FWISP + "/24"), netip.MustParsePrefix(FWISP6 + "/64"),
		}},
		{Host: ISP, Device: "eth0", MAC: "02:77:65:00:03:02", Addresses: []netip.Prefix{
			netip.MustParsePrefix(ISPHost + "/24"), netip.MustParsePrefix(ISPHost6 + "/64"),
		}},
	})
	return t
}
