package tune_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/host/tune"
	"weir/internal/host/tune/db"
	"weir/internal/testenv"
)

// TestNamespaceCard checks that a card of a namespace, here one end of a veth pair, is
// set by name as its driver allows, and put back.
func TestNamespaceCard(t *testing.T) {
	testenv.NeedRoot(t)
	runtime.LockOSThread() // the thread ends with the test, in its namespace
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.NumRxQueues, attributes.NumTxQueues = "v.1", 4, 4
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: "w"}); err != nil {
		t.Fatal(err)
	}
	h := &tune.Host{}
	in := tune.Inputs{Cores: 2, Ports: 1}
	keys := []string{"nic.v.1.gro", "nic.v.1.queues", "nic.v.1.lro", "nic.v.1.rps"}
	queues, err := h.Read("nic.v.1.queues")
	if err != nil {
		t.Fatal(err)
	}
	p := apply(t, h, in, keys...)
	if diff := cmp.Diff([]string{"nic.v.1.gro=on", "nic.v.1.queues=rx 2 tx 2"}, changes(p)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if got := why(p, "nic.v.1.lro"); got != "the device, or its driver, does not have it" {
		t.Errorf("lro: %q", got)
	}
	if s := status(t, h); s.Drift != 0 || len(s.Keys) != 2 || len(s.Unkept) > 0 {
		t.Errorf("status: %+v", s)
	}
	if again := plan(t, h, in, keys...); len(again.Changes) > 0 {
		t.Errorf("a second time: %q", changes(again))
	}
	if _, err := h.Revert(false); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"nic.v.1.gro": "off", "nic.v.1.queues": queues} {
		if now, err := h.Read(key); err != nil || now != want {
			t.Errorf("%s is %q, %v; was %q", key, now, err, want)
		}
	}
}

// TestNamespace checks that, in a network namespace of its own, weir sets the namespace's
// settings with the kernel's consent, leaves the host's alone, and puts everything back.
func TestNamespace(t *testing.T) {
	testenv.NeedRoot(t)
	runtime.LockOSThread() // the thread ends with the test, in its namespace
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	h := &tune.Host{}
	if _, err := h.Read("net.core.netdev_budget"); err == nil {
		t.Fatal("the namespace shows the host's settings: it is none")
	}
	// The namespace inherits these from the machine. They are set only here.
	keys := []string{"net.ipv4.ip_early_demux", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_mtu_probing", "net.core.netdev_budget", "cpu.governor"}
	before := map[string]string{}
	for _, key := range keys[:4] {
		value, err := h.Read(key)
		if err != nil {
			t.Fatal(err)
		}
		before[key] = value
	}
	in := tune.Inputs{Role: db.Endpoint, Link: 100_000_000_000, RTT: 80 * time.Millisecond}
	p := apply(t, h, in, keys...)
	for _, key := range keys[4:] {
		if got := why(p, key); got != "it affects the whole host, and this is a network namespace" {
			t.Errorf("%s: %q", key, got)
		}
	}
	s := status(t, h)
	if s.Drift != 0 || len(s.Keys) == 0 || len(s.Keys) != len(p.Changes) {
		t.Errorf("status: %+v", s)
	}
	if again := plan(t, h, in, keys...); len(again.Changes) > 0 {
		t.Errorf("a second time: %q", changes(again))
	}
	if _, err := h.Revert(false); err != nil {
		t.Fatal(err)
	}
	for key, want := range before {
		if got, err := h.Read(key); err != nil || got != want {
			t.Errorf("%s is %q, %v; was %q", key, got, err, want)
		}
	}
	if s := status(t, h); len(s.Keys) != 0 {
		t.Errorf("afterwards: %+v", s)
	}
}
