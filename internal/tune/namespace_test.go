package tune_test

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/testenv"
	"weir/internal/tune"
	"weir/internal/tune/db"
)

// In a network namespace of its own weir sets what is the namespace's, to the
// kernel's satisfaction, leaves alone what is the host's, and puts all back.
func TestNamespace(t *testing.T) {
	testenv.NeedRoot(t)
	runtime.LockOSThread() // and the thread ends with the test, in its namespace
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	h := &tune.Host{}
	if _, err := h.Read("net.core.netdev_budget"); err == nil {
		t.Fatal("the namespace shows the host's settings: it is none")
	}
	// The namespace inherits these from the machine; only here they are set.
	keys := []string{"net.ipv4.ip_early_demux", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_mtu_probing", "net.core.netdev_budget"}
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
	if got := why(p, "net.core.netdev_budget"); got != "it is the whole host's, and this is a network namespace" {
		t.Errorf("netdev_budget: %q", got)
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
