package tune_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/host/tune"
	"weir/internal/testenv"
)

// ownMachine is the environment variable that says that the test owns the whole machine,
// as in test/kernels: it may configure it, and the machine is thrown away afterwards.
const ownMachine = "WEIR_TEST_OWN_MACHINE"

// TestWholeMachine sets host-wide settings on a whole host: sysctls, connection tracking,
// and a card's queues, offloads and interrupts. They are set, read back and kept for the
// boot. A second run changes nothing, and revert restores every byte.
func TestWholeMachine(t *testing.T) {
	testenv.NeedRoot(t)
	if os.Getenv(ownMachine) == "" {
		testenv.SkipOutside(t, "it would set up this whole machine, and so runs in an emulated one only (%s)", ownMachine)
	}
	for _, folder := range []string{"/var/lib", "/etc/sysctl.d", "/etc/systemd"} {
		if err := unix.Mount("tmpfs", folder, "tmpfs", 0, ""); err != nil {
			t.Fatalf("make %s writable: %v", folder, err)
		}
	}
	h := &tune.Host{}
	keys := []string{"net.core.netdev_budget", "net.core.netdev_max_backlog", "net.ipv4.neigh.default.gc_thresh3", "net.netfilter.nf_conntrack_max", "net.ipv4.ip_early_demux"}
	card := virtioCard(t)
	for _, setting := range []string{"queues", "gro", "irqs", "rps", "xps", "threaded"} {
		keys = append(keys, "nic."+card+"."+setting)
	}
	before := map[string]string{}
	for _, key := range keys {
		value, err := h.Read(key)
		if err != nil {
			t.Fatal(err)
		}
		before[key] = value
	}
	t.Logf("found: %v", before)
	in := tune.Inputs{Link: 10_000_000_000, Memory: 64 << 30, Cores: 1, Ports: 2} // one queue for each card
	p := apply(t, h, in, keys...)
	t.Logf("set: %q", changes(p))
	for _, key := range []string{"net.core.netdev_budget=1625", "net.core.netdev_max_backlog=8333", "net.netfilter.nf_conntrack_max=1048576", "nic." + card + ".queues=combined 1", "nic." + card + ".rps=3", "nic." + card + ".threaded=1"} {
		if !strings.Contains("\n"+strings.Join(changes(p), "\n")+"\n", "\n"+key+"\n") {
			t.Errorf("%s is not set", key)
		}
	}
	if again := plan(t, h, in, keys...); len(again.Changes) > 0 {
		t.Errorf("a second time: %q", changes(again))
	}
	if s := status(t, h); s.Drift != 0 || s.CutOff {
		t.Errorf("status: %+v", s)
	}
	if text, err := os.ReadFile("/etc/sysctl.d/90-weir-tune.conf"); err != nil || !strings.Contains(string(text), "\n-net.core.netdev_budget = 1625\n") {
		t.Errorf("for the boot: %q, %v", text, err)
	}
	if err := h.Try(t.Context(), plan(t, h, in, "nic."+card+".lro", "net.ipv4.tcp_mtu_probing"), time.Millisecond); err == nil {
		t.Error("nobody confirmed")
	}
	if _, err := h.Revert(false); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if now, err := h.Read(key); err != nil || now != before[key] {
			t.Errorf("%s is %q, %v; was %q", key, now, err, before[key])
		}
	}
	for _, trace := range []string{"/var/lib/weir", "/etc/sysctl.d/90-weir-tune.conf", "/etc/systemd/system/weir-tune.service"} {
		if _, err := os.Lstat(trace); err == nil {
			t.Errorf("%s is left", trace)
		}
	}
}

// virtioCard returns a card of the machine, and brings it up.
func virtioCard(t *testing.T) string {
	t.Helper()
	folders, err := filepath.Glob("/sys/class/net/*/device")
	if err != nil || len(folders) == 0 {
		t.Fatalf("the machine has no card: %v", err)
	}
	name := filepath.Base(filepath.Dir(folders[0]))
	link, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		t.Fatal(err)
	}
	return name
}
