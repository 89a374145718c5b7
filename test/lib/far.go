package lib

import (
	"net/netip"
	"testing"

	"weir/internal/lab"
)

// Far is a host behind wan, which routes to it.
const Far = "far"

// Addresses of far.
const (
	FarHost  = "198.51.100.9"
	FarHost6 = "2001:db8:9::9"
)

// BothFar tells a story twice, side by side, in a lab with one more host: lan - fw - wan
// - far.
func (w Binary) BothFar(t *testing.T, story func(b *Box)) {
	w.far(t, bothHooks, story)
}

// FarUnderTCX is BothFar for what hooks do not matter to.
func (w Binary) FarUnderTCX(t *testing.T, story func(b *Box)) { w.far(t, []string{"tcx"}, story) }

// FarAlone tells a story under XDP in such a lab, with nothing beside it. Each device has one queue.
func (w Binary) FarAlone(t *testing.T, story func(b *Box)) {
	t.Run("xdp", func(t *testing.T) { story(w.farBox(t, "xdp", 1)) })
}

// farBox builds the lab; queues are those of each device, 0: one for each core.
func (w Binary) farBox(t *testing.T, hook string, queues int) *Box {
	t.Helper()
	b := w.buildOf(t, hook, lab.Options{Topology: farther(), Queues: queues})
	b.Sysctl(lab.WAN, "net/ipv4/ip_forward", "1")
	b.Sysctl(lab.WAN, "net/ipv6/conf/all/forwarding", "1")
	return b
}

func (w Binary) far(t *testing.T, hooks []string, story func(b *Box)) {
	t.Parallel()
	for _, hook := range hooks {
		t.Run(hook, func(t *testing.T) {
			t.Parallel()
			story(w.farBox(t, hook, 0))
		})
	}
}

func farther() lab.Topology {
	t := lab.Gateway()
	t.Hosts = append(t.Hosts, lab.Host{Name: Far, Routes: []lab.Route{
		{To: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("198.51.100.1")},
		{To: netip.MustParsePrefix("::/0"), Via: netip.MustParseAddr("2001:db8:9::1")},
	}})
	t.Wires = append(t.Wires, lab.Wire{
		{Host: lab.WAN, Device: "far0", MAC: "02:77:65:00:02:01", Addresses: []netip.Prefix{
			netip.MustParsePrefix("198.51.100.1/24"), netip.MustParsePrefix("2001:db8:9::1/64"),
		}},
		{Host: Far, Device: "eth0", MAC: "02:77:65:00:02:02", Addresses: []netip.Prefix{
			netip.MustParsePrefix(FarHost + "/24"), netip.MustParsePrefix(FarHost6 + "/64"),
		}},
	})
	return t
}
