package netif_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"weir/internal/host/hostdb"
	"weir/internal/host/netif"
	"weir/internal/lab"
	"weir/internal/testenv"
)

// inLab calls f in the middle of a lab, on a thread in its namespace.
func inLab(t *testing.T, o lab.Options, f func(l *lab.Lab) error) {
	t.Helper()
	testenv.NeedRoot(t)
	o.Name = fmt.Sprintf("wn%d-%s", os.Getpid(), o.Name)
	t.Cleanup(func() {
		if _, err := lab.Remove(o.Name, lab.Topology{}); err != nil {
			t.Errorf("remove the lab: %v", err)
		}
	})
	l, err := lab.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	join(t, l.Namespace(lab.FW))
	if err := f(l); err != nil {
		t.Fatal(err)
	}
}

// join moves the test's thread into a network namespace. The thread ends with the test.
func join(t *testing.T, name string) {
	t.Helper()
	path, err := netif.NamespacePath(name)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	runtime.LockOSThread()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
}

func find(t *testing.T, links []netif.Link, name string) netif.Link {
	t.Helper()
	i := slices.IndexFunc(links, func(l netif.Link) bool { return l.Name == name })
	if i < 0 {
		t.Fatalf("no link %s in %+v", name, links)
	}
	return links[i]
}

func addLink(l netlink.Link, change func(a *netlink.LinkAttrs)) error {
	change(l.Attrs())
	return netlink.LinkAdd(l)
}

func TestLinks(t *testing.T) {
	inLab(t, lab.Options{Name: "links"}, func(*lab.Lab) error {
		err := errors.Join(
			addLink(&netlink.Bridge{}, func(a *netlink.LinkAttrs) { a.Name = "br0" }),
			addLink(&netlink.Ifb{}, func(a *netlink.LinkAttrs) { a.Name = "port0" }),
			addLink(&netlink.Tuntap{Mode: netlink.TUNTAP_MODE_TUN}, func(a *netlink.LinkAttrs) { a.Name = "tun0" }),
			addLink(&netlink.Tuntap{Mode: netlink.TUNTAP_MODE_TAP}, func(a *netlink.LinkAttrs) { a.Name = "tap0" }),
		)
		if err != nil {
			return err
		}
		port, err := netlink.LinkByName("port0")
		if err != nil {
			return err
		}
		bridge, err := netlink.LinkByName("br0")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetMaster(port, bridge); err != nil {
			return err
		}
		lan, err := netlink.LinkByName("lan0")
		if err != nil {
			return err
		}
		second := &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(192, 168, 1, 2), Mask: net.CIDRMask(24, 32)}}
		managed := &netlink.Addr{ // the kernel adds a temporary one
			IPNet: &net.IPNet{IP: net.ParseIP("2001:db8::1"), Mask: net.CIDRMask(64, 128)}, Flags: unix.IFA_F_NODAD | unix.IFA_F_MANAGETEMPADDR,
		}
		err = errors.Join(
			os.WriteFile("/proc/sys/net/ipv6/conf/lan0/use_tempaddr", []byte("2"), 0),
			netlink.AddrAdd(lan, second), netlink.AddrAdd(lan, managed),
		)
		if err != nil {
			return err
		}
		links, err := netif.Links()
		if err != nil {
			return err
		}
		kinds := map[string]netif.Kind{
			"lo": netif.Loopback, "lan0": netif.Veth, "br0": netif.Bridge,
			"tun0": netif.TUN, "tap0": netif.TAP, "port0": "ifb",
		}
		for name, want := range kinds {
			l := find(t, links, name)
			if l.Kind != want {
				t.Errorf("%s is a %s, want %s", name, l.Kind, want)
			}
			if l.Ethernet != (name != "lo" && name != "tun0") {
				t.Errorf("%s has an Ethernet header: %v", name, l.Ethernet)
			}
			if l.Port() != (name == "port0") {
				t.Errorf("%s is a port: %v", name, l.Port())
			}
		}
		lanLink := find(t, links, "lan0")
		want := netif.Address{Prefix: netip.MustParsePrefix("192.168.1.1/24"), Static: true}
		if len(lanLink.Addresses) == 0 || lanLink.Addresses[0] != want {
			t.Errorf("addresses of lan0 are %+v, want %+v first", lanLink.Addresses, want)
		}
		var temporary []netip.Addr
		for _, a := range lanLink.Addresses {
			if a.Temporary {
				temporary = append(temporary, a.Prefix.Addr())
			}
		}
		network := netip.MustParsePrefix("2001:db8::/64")
		if len(temporary) != 1 || !network.Contains(temporary[0]) || temporary[0] == network.Addr().Next() {
			t.Errorf("%v are temporary, of %+v", temporary, lanLink.Addresses)
		}
		return nil
	})
}

func TestVLANHasItsParent(t *testing.T) {
	inLab(t, lab.Options{Name: "vlan"}, func(*lab.Lab) error {
		lan, err := netlink.LinkByName("lan0")
		if err != nil {
			return err
		}
		index := lan.Attrs().Index
		err = addLink(&netlink.Vlan{VlanId: 7}, func(a *netlink.LinkAttrs) { a.Name, a.ParentIndex = "lan0.7", index })
		if errors.Is(err, unix.EOPNOTSUPP) {
			testenv.SkipOutside(t, "the kernel has no VLAN devices")
		}
		if err != nil {
			return err
		}
		links, err := netif.Links()
		if err != nil {
			return err
		}
		l := find(t, links, "lan0.7")
		if l.Kind != netif.VLAN || l.Parent != index {
			t.Errorf("lan0.7 is a %s on interface %d, want a vlan on %d", l.Kind, l.Parent, index)
		}
		if l.Tag != 7 || l.TagType != 0x8100 || l.KeepsTag || l.Shared {
			t.Errorf("lan0.7: %+v", l)
		}
		off := false
		service := &netlink.Vlan{VlanId: 8, VlanProtocol: netlink.VLAN_PROTOCOL_8021AD, EgressQosMap: map[uint32]uint32{0: 5}, ReorderHdr: &off}
		if err := addLink(service, func(a *netlink.LinkAttrs) { a.Name, a.ParentIndex = "lan0.8", index }); err != nil {
			return err
		}
		if links, err = netif.Links(); err != nil {
			return err
		}
		if l = find(t, links, "lan0.8"); l.Tag != 5<<13|8 || l.TagType != 0x88a8 || !l.KeepsTag {
			t.Errorf("lan0.8: %+v", l)
		}
		return nil
	})
}

// TestSharedLinks checks that a device below a macvlan is shared, also if the macvlan is
// in another namespace.
func TestSharedLinks(t *testing.T) {
	inLab(t, lab.Options{Name: "shared"}, func(l *lab.Lab) error {
		shared := func() (names []string) {
			links, err := netif.Links()
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range links {
				if l.Shared {
					names = append(names, l.Name)
				}
			}
			return names
		}
		if got := shared(); got != nil {
			t.Errorf("%v are shared by nobody", got)
		}
		for _, name := range []string{"lan0", "wan0"} {
			below, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			on := &netlink.Macvlan{Mode: netlink.MACVLAN_MODE_BRIDGE}
			err = addLink(on, func(a *netlink.LinkAttrs) { a.Name, a.ParentIndex = name+"m", below.Attrs().Index })
			if err != nil {
				return err
			}
		}
		if got := shared(); !slices.Equal(got, []string{"lan0", "wan0"}) {
			t.Errorf("shared: %v", got)
		}
		if err := moveUp("wan0m", l.Namespace(lab.WAN)); err != nil {
			return err
		}
		if got := shared(); !slices.Equal(got, []string{"lan0", "wan0"}) {
			t.Errorf("with a macvlan in another namespace, shared: %v", got)
		}
		return nil
	})
}

// moveUp moves an interface to another namespace and brings it up there.
func moveUp(name, namespace string) error {
	path, err := netif.NamespacePath(namespace)
	if err != nil {
		return err
	}
	there, err := netns.GetFromPath(path)
	if err != nil {
		return err
	}
	defer there.Close()
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetNsFd(link, int(there)); err != nil {
		return err
	}
	h, err := netlink.NewHandleAt(there)
	if err != nil {
		return err
	}
	defer h.Close()
	if link, err = h.LinkByName(name); err != nil {
		return err
	}
	return h.LinkSetUp(link)
}

func TestHost(t *testing.T) {
	inLab(t, lab.Options{Name: "host"}, func(*lab.Lab) error {
		links, err := netif.Links()
		if err != nil {
			return err
		}
		h, err := hostdb.Host(links)
		if err != nil {
			return err
		}
		groups := make(map[string][]string)
		gateways := 0
		for _, n := range h.Interfaces {
			groups[n.Name] = n.Groups
			if gateways += len(n.Default); n.Name != "wan0" && len(n.Default) > 0 {
				t.Errorf("%s has the default route by %v", n.Name, n.Default)
			}
		}
		if gateways == 0 {
			t.Error("no default route has a gateway")
		}
		want := map[string][]string{"lo": {"loopback"}, "lan0": {"lan", "veth"}, "wan0": {"wan", "veth", "egress"}}
		if diff := cmp.Diff(want, groups); diff != "" {
			t.Errorf("groups (-want +got):\n%s", diff)
		}
		return nil
	})
}

func TestXDPTargetFollowsTheOtherEnd(t *testing.T) {
	inLab(t, lab.Options{Name: "target", Offloads: lab.OffloadsOff}, func(l *lab.Lab) error {
		links, err := netif.Links()
		if err != nil {
			return err
		}
		index := find(t, links, "wan0").Index
		for _, on := range []bool{true, false} {
			if err := l.SetGRO(lab.WAN, "eth0", on); err != nil {
				return err
			}
			got, err := netif.XDPTargetOf(index)
			if err != nil || got != (netif.XDPTarget{Any: on, Scattered: on}) {
				t.Errorf("XDPTargetOf = %v, %v with GRO at the other end %v", got, err, on)
			}
		}
		got, err := netif.XDPTargetOf(find(t, links, "lo").Index)
		if err != nil || got != (netif.XDPTarget{}) {
			t.Errorf("XDPTargetOf(lo) = %v, %v", got, err)
		}
		return nil
	})
}

func TestVLANStripping(t *testing.T) {
	inLab(t, lab.Options{Name: "strip"}, func(*lab.Lab) error {
		was, err := netif.VLANStripping("lan0")
		if err != nil {
			return err
		}
		if !was["rx-vlan-hw-parse"] {
			t.Fatalf("a veth with its offloads on strips no tags: %v", was)
		}
		if err := netif.SetFeatures("lan0", netif.Features{"rx-vlan-hw-parse": false}); err != nil {
			return err
		}
		now, err := netif.VLANStripping("lan0")
		if err != nil || now["rx-vlan-hw-parse"] {
			t.Errorf("after switching it off: %v, %v", now, err)
		}
		return nil
	})
}

func TestWatch(t *testing.T) {
	inLab(t, lab.Options{Name: "watch"}, func(*lab.Lab) error {
		w, err := netif.Watch()
		if err != nil {
			return err
		}
		defer w.Close()
		changes := make(chan netif.Change, 100)
		go func() {
			for {
				c, err := w.Next()
				if err != nil {
					close(changes)
					return
				}
				changes <- c
			}
		}()
		wan, err := netlink.LinkByName("wan0")
		if err != nil {
			return err
		}
		_, network, err := net.ParseCIDR("198.51.100.0/24")
		if err != nil {
			return err
		}
		steps := []struct {
			name string
			want netif.Change
			do   func() error
		}{
			{"link", netif.ChangedLinks, func() error {
				return addLink(&netlink.Ifb{}, func(a *netlink.LinkAttrs) { a.Name = "new0" })
			}},
			{"address", netif.ChangedAddresses, func() error {
				a, err := netlink.ParseAddr("203.0.113.9/24")
				if err != nil {
					return err
				}
				return netlink.AddrAdd(wan, a)
			}},
			{"route", netif.ChangedRoutes, func() error {
				return netlink.RouteAdd(&netlink.Route{LinkIndex: wan.Attrs().Index, Dst: network})
			}},
			{"routing rule", netif.ChangedRoutes, func() error {
				return netlink.RuleAdd(routingRule())
			}},
			{"routing rule gone", netif.ChangedRoutes, func() error {
				return netlink.RuleDel(routingRule())
			}},
			{"neighbour", netif.ChangedNeighbours, func() error {
				return netlink.NeighAdd(&netlink.Neigh{
					LinkIndex: wan.Attrs().Index, State: unix.NUD_REACHABLE, IP: net.IPv4(203, 0, 113, 77),
					HardwareAddr: []byte{2, 0, 0, 0, 0, 9},
				})
			}},
			{"qdisc", netif.ChangedQueues, func() error {
				at := netlink.QdiscAttrs{LinkIndex: wan.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(5, 0)}
				return netlink.QdiscAdd(netlink.NewHtb(at))
			}},
			{"a filter's end", netif.ChangedQueues, func() error {
				f := &netlink.U32{
					FilterAttrs: netlink.FilterAttrs{LinkIndex: wan.Attrs().Index, Parent: netlink.MakeHandle(5, 0), Priority: 1, Protocol: unix.ETH_P_ALL},
					ClassId:     netlink.MakeHandle(5, 1),
				}
				if err := netlink.FilterAdd(f); err != nil {
					return err
				}
				return netlink.FilterDel(f)
			}},
			{"default route", netif.ChangedDefault, func() error {
				routes, err := netlink.RouteList(wan, netlink.FAMILY_V4)
				if err != nil {
					return err
				}
				i := slices.IndexFunc(routes, func(r netlink.Route) bool { return r.Gw != nil })
				return netlink.RouteDel(&routes[i])
			}},
		}
		for _, step := range steps {
			if err := step.do(); err != nil {
				return fmt.Errorf("%s: %w", step.name, err)
			}
			await(t, changes, step.want, step.name)
		}
		w.Close()
		for range changes { // ends when Next does
		}
		return nil
	})
}

// routingRule is what ip rule add fwmark 2 lookup 100 makes.
func routingRule() *netlink.Rule {
	r := netlink.NewRule()
	r.Family, r.Mark, r.Table = unix.AF_INET, 2, 100
	return r
}

func await(t *testing.T, changes <-chan netif.Change, want netif.Change, name string) {
	t.Helper()
	deadline := time.After(5 * time.Second)
	for {
		select {
		case c := <-changes:
			if c&want != 0 {
				return
			}
		case <-deadline:
			t.Fatalf("%s: no event", name)
		}
	}
}

func TestNamespacePath(t *testing.T) {
	if _, err := netif.NamespacePath("no-such-namespace"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a name that is not there: %v", err)
	}
	if got, err := netif.NamespacePath("/proc/self/ns/net"); err != nil || got != "/proc/self/ns/net" {
		t.Errorf("a path: %q, %v", got, err)
	}
}

func TestSysctl(t *testing.T) {
	if _, err := netif.Sysctl("net/ipv4/conf/nosuch0/forwarding"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a sysctl that is not there: %v", err)
	}
	if netif.HasSysctl("net/ipv4/conf/nosuch0/forwarding") || !netif.HasSysctl("net/ipv4/conf/lo/forwarding") {
		t.Error("HasSysctl does not tell what is there")
	}
}

// All network namespaces are found: those with a name, those that a thread is in, and one that only an open file keeps.
func TestCookies(t *testing.T) {
	inLab(t, lab.Options{Name: "cookies"}, func(l *lab.Lab) error {
		of := map[string]uint64{}
		for _, host := range []string{lab.FW, lab.WAN} {
			err := l.Do(host, func() (err error) {
				of[host], err = netif.Cookie()
				return err
			})
			if err != nil {
				return err
			}
		}
		kept, err := netns.New() // the thread is in it
		if err != nil {
			return err
		}
		if of["kept"], err = netif.Cookie(); err != nil {
			return err
		}
		has := func(when string, want map[string]bool) {
			t.Helper()
			all, err := netif.Cookies()
			if err != nil {
				t.Fatal(err)
			}
			for host, there := range want {
				if all[of[host]] != there {
					t.Errorf("%s: the namespace of %s is found: %v", when, host, all[of[host]])
				}
			}
		}
		has("of a thread", map[string]bool{lab.FW: true, lab.WAN: true, "kept": true})
		join(t, l.Namespace(lab.FW))
		has("open", map[string]bool{lab.FW: true, "kept": true})
		if err := kept.Close(); err != nil {
			return err
		}
		has("closed", map[string]bool{lab.FW: true, lab.WAN: true, "kept": false})
		return nil
	})
}
