package dataplane

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
	"weir/internal/oracle/model"
	"weir/pf/resolve"
)

// A testSocket is a socket of the box in a test: listening for TCP, bound or connected for
// UDP.
type testSocket struct {
	proto  uint8
	local  string // an address and a port; [::] is all addresses of both families
	remote string // "": not connected
	owner  model.Owner
}

// testSockets are the box's, with those that count first before those that count if there is
// no better one.
var testSockets = []testSocket{
	{unix.IPPROTO_UDP, "203.0.113.2:53", "198.51.100.7:53", model.Owner{User: 1000, Group: 0}},
	{unix.IPPROTO_TCP, "192.168.1.1:80", "", model.Owner{User: 0, Group: 33}},
	{unix.IPPROTO_TCP, "[fd00:1::1]:22", "", model.Owner{User: 1000, Group: 33}},
	{unix.IPPROTO_UDP, "[2001:db8:113::2]:4000", "", model.Owner{User: 0, Group: 1000}},
	{unix.IPPROTO_TCP, "[::]:80", "", model.Owner{User: 33, Group: 33}},
	{unix.IPPROTO_TCP, "[::]:8080", "", model.Owner{User: 1000, Group: 1000}},
	{unix.IPPROTO_UDP, "[::]:53", "", model.Owner{User: 33, Group: 1000}},
	{unix.IPPROTO_UDP, "0.0.0.0:4001", "", model.Owner{User: 0, Group: 0}},
}

// testSocketOwner is what the kernel's look-up returns.
func testSocketOwner(proto uint8, local, remote netip.AddrPort) model.Owner {
	for _, s := range testSockets {
		at := netip.MustParseAddrPort(s.local)
		everywhere := at.Addr().IsUnspecified() && (at.Addr().Is6() || local.Addr().Is4())
		if proto == s.proto && at.Port() == local.Port() && (everywhere || at.Addr() == local.Addr()) &&
			(s.remote == "" || s.remote == remote.String()) {
			return s.owner
		}
	}
	return model.Owner{User: resolve.Nobody, Group: resolve.Nobody}
}

// openTestSockets opens testSockets in the test's namespace.
func openTestSockets(tb testing.TB) {
	tb.Helper()
	var all []int
	for _, s := range testSockets {
		local, kind, family := netip.MustParseAddrPort(s.local), unix.SOCK_DGRAM, unix.AF_INET
		if s.proto == unix.IPPROTO_TCP {
			kind = unix.SOCK_STREAM
		}
		if local.Addr().Is6() {
			family = unix.AF_INET6
		}
		fd := must(unix.Socket(family, kind|unix.SOCK_CLOEXEC, int(s.proto)))(tb)
		tb.Cleanup(func() { unix.Close(fd) })
		check(tb, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
		if family == unix.AF_INET6 {
			check(tb, unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0))
			check(tb, unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1)) // the address may be tentative
		}
		check(tb, unix.Bind(fd, socketAddress(local)))
		if s.remote != "" {
			check(tb, unix.Connect(fd, socketAddress(netip.MustParseAddrPort(s.remote))))
		}
		if s.proto == unix.IPPROTO_TCP {
			check(tb, unix.Listen(fd, 8))
		}
		all = append(all, fd)
	}
	for i, fd := range all { // only sockets of one user share a port
		check(tb, unix.Fchown(fd, int(testSockets[i].owner.User), int(testSockets[i].owner.Group)))
	}
}

func socketAddress(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// Conditions on the user and the group of the socket that a packet is for, or that sends
// it.
func testOwners(h *harness) {
	openTestSockets(h.tb)
	const pass = "pass proto { tcp, udp } "
	h.plays([]play{
		{"listening", "block\n" + pass + "user 33", []step{
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:80 S", "up local done"},
			{"tcx wan", "tcp [2001:db8:9::1]:4000 > [2001:db8:113::2]:80 S", "up local"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 192.168.1.1:80 S", "drop block"}, // root's is on this address
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:81 S", "drop block"},
			{"xdp wan", "udp 198.51.100.9:4000 > 203.0.113.2:80", "drop block"},
			{"xdp wan", "icmp 198.51.100.9 > 203.0.113.2 type 8 id 7", "drop block"},
		}},
		{"connected", "block\n" + pass + "user 1000", []step{
			{"xdp wan", "udp 198.51.100.7:53 > 203.0.113.2:53", "up local done"},
			{"xdp wan", "udp 198.51.100.8:53 > 203.0.113.2:53", "drop block"},
			{"out wan", "udp 203.0.113.2:53 > 198.51.100.7:53", "up state"},
			{"out wan", "udp 203.0.113.2:53 > 198.51.100.8:53", "drop block"},
		}},
		{"sends", "block\n" + pass + "user 33 group { 33, 1000 }", []step{
			{"out wan", "udp 203.0.113.2:53 > 198.51.100.8:53", "up rule"},
			{"out wan", "udp [2001:db8:113::2]:53 > [2001:db8:9::1]:53", "up rule"},
			{"out wan", "tcp 203.0.113.2:80 > 198.51.100.8:4000 SA", "drop block"}, // not flags S/SA
			{"out wan", "tcp 203.0.113.2:80 > 198.51.100.8:4000 S", "up rule"},
			{"out wan", "udp 203.0.113.2:54 > 198.51.100.8:53", "drop block"},
		}},
		{"group", "block\n" + pass + "group 1000", []step{
			{"tcx wan", "tcp 198.51.100.9:4000 > 203.0.113.2:8080 S", "up local"},
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:80 S", "drop block"},
			{"xdp wan", "udp [2001:db8:9::1]:4000 > [2001:db8:113::2]:4000", "up local done"},
		}},
		{"nobody", "block\n" + pass + "user unknown", []step{
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:81 S", "up local done"},
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:80 S", "drop block"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S", "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S ttl 63"},
		}},
		{"not root", "block\n" + pass + "user != 0", []step{ // as in pf, nobody is not root
			{"xdp lan", "tcp 192.168.1.10:4000 > 192.168.1.1:80 S", "drop block"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 192.168.1.1:8080 S", "up local done"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S", "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S ttl 63"},
		}},
		{"at least root", "block\n" + pass + "user >= 0", []step{ // but compares with no number
			{"xdp lan", "tcp 192.168.1.10:4000 > 192.168.1.1:80 S", "up local done"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S", "drop block"},
		}},
		{"forwarded with a port of the box", "block\n" + pass + "user 33", []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S", "drop block"},
			{"xdp lan", "udp 192.168.1.10:53 > 198.51.100.7:53", "drop block"},
		}},
		{"before translation", "block\npass in proto tcp to port 80 user 33 rdr-to 192.168.1.10\npass out proto tcp user unknown", []step{
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:80 S", "forward rule lan tcp 198.51.100.9:4000 > 192.168.1.10:80 S ttl 63"},
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:8080 S", "drop block"},
		}},
		{"broadcast", "block\n" + pass + "user 33", []step{
			{"tcx lan", "udp 192.168.1.10:4000 > 192.168.1.255:53", "up local"},
			{"tcx lan", "udp 192.168.1.10:4000 > 255.255.255.255:53", "up up-multicast"},
		}},
		{"no state, both ways", "block\npass in proto tcp to port 80 user 33 flags any no state\npass out proto tcp from port 80 user 33 flags any no state", []step{
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:80 S", "up local done"},
			{"out wan", "tcp 203.0.113.2:80 > 198.51.100.9:4000 SA", "up rule"},
			{"out wan", "tcp 203.0.113.2:8080 > 198.51.100.9:4000 SA", "drop block"},
		}},
	})
}

// received-on: the interface by which a packet came in, also where it leaves.
func testReceivedOn(h *harness) {
	const (
		fromLAN = "udp 192.168.1.10:4000 > 198.51.100.9:53"
		fromWAN = "udp 198.51.100.9:53 > 192.168.1.10:4000"
		own     = "udp 203.0.113.2:4000 > 198.51.100.9:53"
		pass    = "pass in no state\nblock out\npass out "
	)
	h.plays([]play{
		{"an interface", pass + "received-on lan0 no state", []step{
			{"xdp lan", fromLAN, "forward rule wan " + fromLAN + " ttl 63"},
			{"tcx wan", fromWAN, "drop block"},
			{"out wan", own, "drop block"},
		}},
		{"not an interface", pass + "! received-on lan0 no state", []step{
			{"tcx lan", fromLAN, "drop block"},
			{"xdp wan", fromWAN, "forward rule lan " + fromWAN + " ttl 63"},
			{"out wan", own, "up rule"},
		}},
		{"any", pass + "received-on any no state", []step{
			{"xdp lan", fromLAN, "forward rule wan " + fromLAN + " ttl 63"},
			{"out wan", own, "drop block"},
		}},
		{"not any", pass + "! received-on any no state", []step{
			{"xdp lan", fromLAN, "drop block"},
			{"out wan", own, "up rule"},
		}},
		{"a group", pass + "received-on egress no state", []step{
			{"xdp lan", fromLAN, "drop block"},
			{"xdp wan", fromWAN, "forward rule lan " + fromWAN + " ttl 63"},
		}},
		{"none of that name", pass + "received-on none0 no state", []step{
			{"xdp lan", fromLAN, "drop block"},
			{"out wan", own, "drop block"},
		}},
		{"where it comes in", "block\npass in received-on wan0 no state\npass out no state", []step{
			{"xdp lan", fromLAN, "drop block"},
			{"xdp wan", fromWAN, "forward rule lan " + fromWAN + " ttl 63"},
		}},
		{"a side that keeps no state", "pass in\nblock out\npass out received-on lan0 no state", []step{
			{"xdp lan", fromLAN, "forward rule wan " + fromLAN + " ttl 63"},
			{"xdp lan", fromLAN, "forward state wan " + fromLAN + " ttl 63"},
			{"tcx wan", fromWAN, "forward state lan " + fromWAN + " ttl 63"}, // met by pass in
		}},
	})
}

// The programs that look up owners are loaded when a rule asks: by a load, or when rules are
// replaced under traffic. From then on, packets go through them before the rules.
func TestOwnersWhenNeeded(t *testing.T) {
	n := newNet(t)
	cfg := n.blank()
	cfg.XDP = false
	d := build(t, cfg)
	commit(t, d, n.attachments(false)[:1])
	expect := func(d *Dataplane, name string, loaded bool) {
		t.Helper()
		if is := d.objects.Programs[name] != nil; is != loaded {
			t.Errorf("%s is loaded: %v, want %v", name, is, loaded)
		}
	}
	slot := func(tails string, i int) uint32 { return programIn(t, d.objects.Maps[tails], uint32(i)) }
	expect(d, "weir_tc_in_owner", false)
	miss := slot("in_tails", 0)
	if miss == 0 || slot("in_tails", tailRules) != 0 {
		t.Error("packets without a state do not meet the rules at once")
	}
	rules, faults := resolve.Load("test.conf", []byte("anchor a {\npass proto tcp user 5\n}\n"), &resolve.Host{})
	check(t, faults.Err())
	program := must(ruleset.Compile(rules, ruleset.Snapshot{}))(t)
	check(t, d.ReplaceRules(program, &d.config.Options))
	for _, name := range []string{"weir_tc_in_owner", "weir_tc_out_owner"} {
		expect(d, name, true)
	}
	if slot("in_tails", 0) == miss || slot("in_tails", tailRules) != miss {
		t.Error("packets without a state do not take the program for owners, and then the rules")
	}
	expect(d, "weir_xdp_owner", false)
	check(t, d.Attach(n.attachments(true)[1]))
	expect(d, "weir_xdp_owner", true)
	check(t, d.SetCapture(64, []CaptureFilter{{Readers: 1, All: true}}))
	if slot("tails", tailRules) == 0 || slot("out_tails", tailRules) == 0 {
		t.Error("the other hooks have no program with the rules")
	}
	check(t, d.SetCapture(0, nil))
	cfg.Program = program
	next := build(t, cfg)
	expect(next, "weir_tc_out_owner", true)
}

// If the kernel refuses the programs that look up owners, rules that ask for them are
// refused, and the error says why. All others load.
func TestOwnersRefused(t *testing.T) {
	n := newNet(t)
	cfg := n.config()
	cfg.specs = func() ([]*bpfload.Spec, error) {
		specs, err := copiedSpecs()
		for _, s := range specs {
			if p := s.Programs["weir_tc_in_owner"]; p != nil {
				p.Instructions = p.Instructions[:1] // it runs past its end
			}
		}
		return specs, err
	}
	d := build(t, cfg)
	check(t, d.Close())
	rules, faults := resolve.Load("test.conf", []byte("pass proto tcp user 5\n"), &resolve.Host{})
	check(t, faults.Err())
	cfg.Program = must(ruleset.Compile(rules, ruleset.Snapshot{}))(t)
	if _, err := Build(cfg); !errors.Is(err, ErrOwners) || !strings.Contains(err.Error(), "user or group") {
		t.Errorf("err = %v; want that users cannot be looked up", err)
	}
}
