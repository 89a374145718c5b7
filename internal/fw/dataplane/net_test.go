package dataplane

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/testenv"
)

// A testNet is a network namespace with two interfaces, as in examples/gateway.conf,
// and a bpffs of the test's own. Nothing answers at the other ends of the wires:
// neighbours are permanent.
//
//	192.168.1.10, fd00:1::10 – lan0 [here] wan0 – 203.0.113.1, 2001:db8:113::1
type testNet struct {
	tb   testing.TB
	dir  string // in the bpffs
	lan0 int
	wan0 int
}

// Stations on both sides of the gateway.
const (
	lan0MAC, lanHostMAC = "02:77:65:00:00:01", "02:77:65:00:00:02"
	wan0MAC, wanHostMAC = "02:77:65:00:01:01", "02:77:65:00:01:02"
)

// newNet makes the network. The test's goroutine stays on one thread, which is in the
// namespace until the test ends.
func newNet(tb testing.TB) *testNet {
	tb.Helper()
	return newNetOf(tb, addWire)
}

// newNetOf makes the network with devices that add makes.
func newNetOf(tb testing.TB, add func(tb testing.TB, name, mac, farMAC string, addrs ...string) int) *testNet {
	tb.Helper()
	testenv.NeedRoot(tb)
	n := &testNet{tb: tb, dir: filepath.Join(mountBPF(tb), "ns")}
	enterNetns(tb)
	setUp(tb, must(netlink.LinkByName("lo"))(tb))
	n.lan0 = add(tb, "lan0", lan0MAC, lanHostMAC, "192.168.1.1/24", "fd00:1::1/64")
	n.wan0 = add(tb, "wan0", wan0MAC, wanHostMAC, "203.0.113.2/24", "2001:db8:113::2/64")
	addNeighbour(tb, n.lan0, "192.168.1.10", lanHostMAC)
	addNeighbour(tb, n.lan0, "fd00:1::10", lanHostMAC)
	addNeighbour(tb, n.wan0, "203.0.113.1", wanHostMAC)
	addNeighbour(tb, n.wan0, "2001:db8:113::1", wanHostMAC)
	addDefault(tb, n.wan0, "203.0.113.1")
	addDefault(tb, n.wan0, "2001:db8:113::1")
	setSysctl(tb, "net/ipv4/ip_forward", "1")
	setSysctl(tb, "net/ipv6/conf/all/forwarding", "1")
	return n
}

// must returns a value. An error ends the test.
func must[T any](value T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return value
	}
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func mountBPF(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	check(tb, bpfload.MountFS(dir))
	tb.Cleanup(func() { check(tb, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// enterNetns moves the test's thread to a new network namespace until the test ends.
func enterNetns(tb testing.TB) {
	tb.Helper()
	runtime.LockOSThread()
	before := must(netns.Get())(tb)
	inside := must(netns.New())(tb)
	tb.Cleanup(func() {
		check(tb, netns.Set(before))
		inside.Close()
		before.Close()
		runtime.UnlockOSThread()
	})
}

// addWire makes a pair of devices. The near end gets addresses. It returns the near end's
// index.
func addWire(tb testing.TB, name, mac, farMAC string, addrs ...string) int {
	tb.Helper()
	near, far := must(net.ParseMAC(mac))(tb), must(net.ParseMAC(farMAC))(tb)
	veth := &netlink.Veth{
		LinkAttrs:        netlink.LinkAttrs{Name: name, HardwareAddr: near, MTU: 1500},
		PeerName:         name + "-far",
		PeerHardwareAddr: far,
	}
	check(tb, netlink.LinkAdd(veth))
	link := must(netlink.LinkByName(name))(tb)
	peer := must(netlink.LinkByName(veth.PeerName))(tb)
	setSysctl(tb, "net/ipv6/conf/"+veth.PeerName+"/disable_ipv6", "1")
	setUp(tb, peer)
	return address(tb, link, addrs)
}

// address gives a device addresses, sets it up and returns its index.
func address(tb testing.TB, link netlink.Link, addrs []string) int {
	tb.Helper()
	for _, text := range addrs {
		addAddress(tb, link.Attrs().Index, text)
	}
	setUp(tb, link)
	return link.Attrs().Index
}

func addAddress(tb testing.TB, ifindex int, text string) {
	tb.Helper()
	a := must(netlink.ParseAddr(text))(tb)
	if a.IP.To4() == nil {
		a.Flags = unix.IFA_F_NODAD
	}
	check(tb, netlink.AddrAdd(must(netlink.LinkByIndex(ifindex))(tb), a))
}

func dropAddress(tb testing.TB, ifindex int, text string) {
	tb.Helper()
	check(tb, netlink.AddrDel(must(netlink.LinkByIndex(ifindex))(tb), must(netlink.ParseAddr(text))(tb)))
}

func setUp(tb testing.TB, link netlink.Link) {
	tb.Helper()
	check(tb, netlink.LinkSetUp(link))
}

func addNeighbour(tb testing.TB, ifindex int, addr, mac string) {
	tb.Helper()
	check(tb, netlink.NeighSet(&netlink.Neigh{
		LinkIndex: ifindex, State: netlink.NUD_PERMANENT,
		IP: net.ParseIP(addr), HardwareAddr: must(net.ParseMAC(mac))(tb),
	}))
}

func addDefault(tb testing.TB, ifindex int, gateway string) {
	tb.Helper()
	check(tb, netlink.RouteAdd(&netlink.Route{LinkIndex: ifindex, Gw: net.ParseIP(gateway)}))
}

// addresses returns the addresses of the box, with their interfaces.
func (n *testNet) addresses() []Address {
	return []Address{
		{netip.MustParsePrefix("192.168.1.1/24"), n.lan0},
		{netip.MustParsePrefix("fd00:1::1/64"), n.lan0},
		{netip.MustParsePrefix("203.0.113.2/24"), n.wan0},
		{netip.MustParsePrefix("2001:db8:113::2/64"), n.wan0},
	}
}

// attachments attaches TCX to both interfaces, and XDP if xdp is set.
func (n *testNet) attachments(xdp bool) []Attachment {
	return []Attachment{{n.lan0, "lan0", xdp}, {n.wan0, "wan0", xdp}}
}

// setSysctl sets a sysctl of the test's network namespace. /proc/sys/net shows the
// namespace of the thread that opens it.
func setSysctl(tb testing.TB, name, value string) {
	tb.Helper()
	check(tb, os.WriteFile("/proc/sys/"+name, []byte(value), 0o644))
}
