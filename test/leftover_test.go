package test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
	"weir/internal/lab"
	"weir/test/lib"
)

//	fw A: weir run and weir vpn run, kill -9, the namespace goes      fw B: weir run
//
// What is left of a namespace that is gone is removed by the next start anywhere. weir vpn run's folder in a namespace that
// is there stays.
func TestLeftoversAreRemoved(t *testing.T) {
	a := weir.Box(t, "tcx")
	first := a.WeirRun("block all\n")
	tunnels := vpnRun(a)
	folder := a.RunFolder()
	pins, vpn := filepath.Join("/run/weir/bpf", filepath.Base(folder)), rundir.Folder(folder).VPN()
	first.Kill()
	tunnels.Kill()
	for _, path := range []string{folder, pins, vpn} {
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("nothing was left of the killed daemon: %v", err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	a.Until(10*time.Second, "the kernel has taken the namespace down", func() bool {
		gone, err := dataplane.Leftover(pins)
		return err == nil && gone
	})
	b, c := weir.Box(t, "tcx"), weir.Box(t, "tcx")
	vpnRun(c).Kill()
	b.WeirRun("block all\n")
	for _, path := range []string{folder, pins, vpn} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
	if _, err := os.Stat(rundir.Folder(c.RunFolder()).VPN()); err != nil {
		t.Errorf("the folder of tunnels in a namespace that is there: %v", err)
	}
}

//	fw: weir run, weir stop
//
// The last weir of the machine removes the bpffs and its folder. If others run, they keep
// theirs.
func TestLastStopLeavesNothing(t *testing.T) {
	b := weir.Box(t, "tcx")
	b.WeirRun("block all\n")
	b.Weir("stop")
	entries, err := os.ReadDir(rundir.Root)
	if err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != filepath.Base(dataplane.Base) }) {
		return // another weir runs on this machine
	}
	mounts, unread := os.ReadFile("/proc/1/mounts")
	if !errors.Is(err, fs.ErrNotExist) || unread != nil || strings.Contains(string(mounts), dataplane.Base) {
		t.Errorf("%s: %v (%v); mounts: %v\n%s", rundir.Root, entries, err, unread, mounts)
	}
}

//	fw: weir run inside "ip netns exec", whose mounts end with it
//
// Its pins are visible from outside and outlive it. If the mounts of process 1 cannot be
// joined, it refuses and names --netns.
func TestRunInPrivateMounts(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	found := b.Machine(lab.FW)
	p := b.WeirInside("run", "-f", gatewayConf(t))
	b.Until(lib.StartPatience, "weir is ready, or has refused", func() bool {
		return strings.Contains(p.Said(), "weir: ready") || !p.Running()
	})
	if !p.Running() {
		if said := p.Wait(time.Second, 2); !strings.Contains(said, "use --netns NAME") {
			t.Errorf("weir run said\n%s", said)
		}
		b.SameMachine(lab.FW, found, "after a start that was refused")
		return
	}
	p.Kill()
	b.Ping(lab.LAN, wanHost, 3)
	if !strings.Contains(b.Weir("info"), "gateway.conf") {
		t.Error("info from outside does not know the rules")
	}
}

//	fw: interfaces in JSON ──▶ weir check --host
//
// The output of weir interfaces is valid input as a host's description.
func TestInterfacesAreAHost(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	file := filepath.Join(t.TempDir(), "host.json")
	if err := os.WriteFile(file, []byte(b.Weir("interfaces", "--json")), 0o600); err != nil {
		t.Fatal(err)
	}
	here := b.Weir("check", gatewayConf(t))
	there, status := weir.Run("check", "--host", file, gatewayConf(t))
	if status != 0 || there != here {
		t.Errorf("check --host: status %d, said\n%s\nand in the namespace\n%s", status, there, here)
	}
}
