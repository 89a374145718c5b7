package affinity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"weir/internal/host/doctor"
	"weir/internal/host/netif"
	"weir/internal/host/tune"
	"weir/internal/host/undolog"
	"weir/internal/testenv"
)

// host returns a host in a network namespace of its own, with a veth of two queues.
func host(t *testing.T) *tune.Host {
	t.Helper()
	testenv.NeedRoot(t)
	runtime.LockOSThread() // never unlocked: the thread, and its namespace, end with the test
	must(t, unix.Unshare(unix.CLONE_NEWNET))
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.NumRxQueues, attrs.NumTxQueues = "v0", 2, 2
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "v1"}))
	for _, name := range []string{"v0", "v1"} {
		l, err := netlink.LinkByName(name)
		must(t, err)
		must(t, netlink.LinkSetUp(l))
	}
	cookie, err := netif.Cookie()
	must(t, err)
	h, err := Open()
	must(t, err)
	t.Cleanup(func() {
		if _, err := h.Revert(true); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(fmt.Sprintf("/run/weir-affinity/%d.json", cookie)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the journal is left: %v", err)
		}
		h.Close()
	})
	return h
}

func rps(queue int, to string) tune.Change {
	return tune.Change{Key: fmt.Sprintf("v0:%d/rps", queue), To: to}
}

// apply makes changes, permanently if confirm is zero.
func apply(ctx context.Context, t *testing.T, h *tune.Host, confirm time.Duration, changes ...tune.Change) error {
	t.Helper()
	plan, err := h.PlanOf(changes, nil)
	must(t, err)
	if confirm == 0 {
		return h.Apply(plan)
	}
	return h.Try(ctx, plan, confirm)
}

// setByHand changes a setting as somebody else would.
func setByHand(t *testing.T, queue int, mask string) {
	t.Helper()
	fd, sys, err := netif.Sysfs()
	must(t, err)
	defer unix.Close(fd)
	must(t, os.WriteFile(fmt.Sprintf("%s/class/net/v0/queues/rx-%d/rps_cpus", sys, queue), []byte(mask), 0))
}

// expect compares the kernel's RPS of the two queues.
func expect(t *testing.T, h *tune.Host, want ...string) {
	t.Helper()
	var got []string
	for q := range want {
		now, err := h.Read(rps(q, "").Key)
		must(t, err)
		got = append(got, now)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestApplyAndRevert(t *testing.T) {
	h := host(t)
	setByHand(t, 1, "1")
	must(t, apply(t.Context(), t, h, 0, rps(0, "0-1"), rps(1, "")))
	expect(t, h, "0-1", "")
	must(t, apply(t.Context(), t, h, 0, rps(0, "1")))
	expect(t, h, "1", "")
	restored, err := h.Revert(true)
	must(t, err)
	expect(t, h, "", "0")
	if len(restored) != 2 || restored[0].Same || restored[1].Same {
		t.Errorf("%+v", restored)
	}
}

// TestFails checks that an error undoes all changes before it and leaves no journal. A
// missing queue cannot be planned for.
func TestFails(t *testing.T) {
	h := host(t)
	must(t, apply(t.Context(), t, h, 0, rps(1, "1")))
	if _, err := h.PlanOf([]tune.Change{rps(7, "0")}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if err := apply(t.Context(), t, h, 0, rps(1, "0"), rps(0, "0-1"), rps(0, "no list")); err == nil {
		t.Error("no list of cores was taken")
	}
	expect(t, h, "", "1")
}

// TestConfirm checks that an unconfirmed change goes back to the value before it, which
// an earlier change had set.
func TestConfirm(t *testing.T) {
	h := host(t)
	must(t, apply(t.Context(), t, h, 0, rps(1, "1")))
	if err := apply(t.Context(), t, h, 300*time.Millisecond, rps(0, "0"), rps(1, "0-1")); !errors.Is(err, undolog.ErrUnconfirmed) {
		t.Errorf("%v", err)
	}
	expect(t, h, "", "1")

	ctx, hangUp := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, hangUp)
	if err := apply(ctx, t, h, time.Hour, rps(0, "0")); !errors.Is(err, undolog.ErrUnconfirmed) {
		t.Errorf("%v", err)
	}
	expect(t, h, "", "1")

	confirmed := make(chan error, 1)
	inNamespace(t, 300*time.Millisecond, func() {
		_, err := h.Confirm()
		confirmed <- err
	})
	must(t, apply(t.Context(), t, h, time.Minute, rps(0, "0")))
	must(t, <-confirmed)
	expect(t, h, "0", "1")
	if _, err := h.Confirm(); err == nil {
		t.Error("nothing waited, and was confirmed")
	}
}

// inNamespace calls f after some time, on a thread in this thread's network namespace,
// because the journal belongs to the namespace.
func inNamespace(t *testing.T, after time.Duration, f func()) {
	t.Helper()
	here, err := netns.Get()
	must(t, err)
	go func() {
		runtime.LockOSThread() // the thread ends with this goroutine
		defer here.Close()
		if err := netns.Set(here); err != nil {
			t.Error(err)
		}
		time.Sleep(after)
		f()
	}()
}

// TestRevertMeanwhile checks that a waiting trial is told of a revert, also if something
// else is set by then.
func TestRevertMeanwhile(t *testing.T) {
	h := host(t)
	again := make(chan error, 1)
	inNamespace(t, 300*time.Millisecond, func() {
		_, err := h.Revert(true)
		again <- errors.Join(err, apply(t.Context(), t, h, 0, rps(1, "1")))
	})
	if err := apply(t.Context(), t, h, time.Minute, rps(0, "0")); !errors.Is(err, tune.ErrReverted) {
		t.Errorf("%v", err)
	}
	must(t, <-again)
	expect(t, h, "", "1")
}

// TestTrialOfAnother checks that a trial puts back only what it changed, to the values
// that it found. What somebody else has set since an earlier change stays. A revert puts
// back the first found values.
func TestTrialOfAnother(t *testing.T) {
	h := host(t)
	must(t, apply(t.Context(), t, h, 0, rps(0, "1")))
	setByHand(t, 0, "3")
	if err := apply(t.Context(), t, h, 300*time.Millisecond, rps(1, "0")); !errors.Is(err, undolog.ErrUnconfirmed) {
		t.Errorf("%v", err)
	}
	expect(t, h, "0-1", "")
	if err := apply(t.Context(), t, h, 300*time.Millisecond, rps(1, "0"), rps(0, "0")); !errors.Is(err, undolog.ErrUnconfirmed) {
		t.Errorf("%v", err)
	}
	expect(t, h, "0-1", "")
	restored, err := h.Revert(true)
	must(t, err)
	expect(t, h, "", "")
	if len(restored) != 1 || restored[0].Found != "0-1" {
		t.Errorf("%+v", restored)
	}
}

// TestThreads checks that a receiving thread is bound and found again by its queue. Its
// settings are put back together with the setting that created it.
func TestThreads(t *testing.T) {
	testenv.NeedKernelThreads(t)
	h := host(t)
	e, err := ethtool.NewEthtool()
	must(t, err)
	defer e.Close()
	must(t, e.Change("v0", map[string]bool{"rx-gro": true})) // otherwise it has no receivers
	threaded, thread := tune.Change{Key: "v0/threaded", To: "1"}, tune.Change{Key: "v0:0 (thread)", To: "0"}
	must(t, apply(t.Context(), t, h, 0, threaded))
	must(t, apply(t.Context(), t, h, 0, thread))
	if now, err := h.Read(thread.Key); err != nil || now != "0" {
		t.Errorf("%q, %v", now, err)
	}
	_, err = h.Revert(true)
	must(t, err)
	if now, err := h.Read(threaded.Key); err != nil || now != "0" {
		t.Errorf("%q, %v", now, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestParse(t *testing.T) {
	s := &doctor.Snapshot{
		CPUs: []doctor.CPU{{ID: 0}, {ID: 1}, {ID: 2}, {ID: 3}},
		Interfaces: []doctor.Interface{{Name: "eth1", Kind: "physical", Up: true, RxQueues: 2},
			{Name: "wan0.7", Kind: "vlan", Up: true}},
		IRQs: []doctor.IRQ{{Number: 41, Name: "eth1-TxRx-0", Interface: "eth1"}, {Number: 42, Name: "eth1-TxRx-1", Interface: "eth1"}},
	}
	for word, want := range map[string][]tune.Change{
		"eth1:1=2":         {{Key: "eth1 (interrupt 42, eth1-TxRx-1)", To: "2"}},
		"eth1=1,3":         {{Key: "eth1 (interrupt 41, eth1-TxRx-0)", To: "1"}, {Key: "eth1 (interrupt 42, eth1-TxRx-1)", To: "3"}},
		"irq41=0-2":        {{Key: "eth1 (interrupt 41, eth1-TxRx-0)", To: "0-2"}},
		"eth1:0/rps=0,2-3": {{Key: "eth1:0/rps", To: "0,2-3"}},
		"eth1:1/xps=none":  {{Key: "eth1:1/xps"}},
		"eth1/threaded=on": {{Key: "eth1/threaded", To: "1"}},
		"eth1/queues=2":    {{Key: "eth1/queues", To: "2"}},
	} {
		got, err := Parse([]string{word}, s)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", word, err, diff)
		}
	}
	for word, want := range map[string]string{
		"eth1:1": "want eth1:3=2", "eth1:1=": "want eth1:3=2", "eth1:-1=0": "want eth1:3=2", "eth1:1=none": "want eth1:3=2",
		"eth1:1=4": "no online cpu4", "eth9:0=1": "no interface \"eth9\"", "eth1:5=1": "no queue 5", "irq7=1": "interrupt 7",
		"eth1/queues=0": "number from 1", "eth1/threaded=yes": "on or off", "eth1/rps=1": "want eth1:3=2", "wan0.7:0=1": "no queue 0", "eth1:0/xyz=1": "want eth1:3=2",
		"eth1:2/rps=1": "eth1 has 2 queues for rps, from 0 on",
	} {
		if got, err := Parse([]string{word}, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", word, got, err, want)
		}
	}
}

// workersOfTest are a tunnel's workers.
type workersOfTest map[string]string

func (w workersOfTest) Cores(tunnel string, queue int) (string, error) {
	cores, known := w[fmt.Sprintf("%s:%d", tunnel, queue)]
	if !known {
		return "", fs.ErrNotExist
	}
	return cores, nil
}

func (w workersOfTest) Place(tunnel string, queue int, cores string) error {
	w[fmt.Sprintf("%s:%d", tunnel, queue)] = cores
	return nil
}

// TestWorkers checks that workers of tunnels are placed and put back as queues are, and
// that one which is gone does not keep revert from the rest.
func TestWorkers(t *testing.T) {
	h := host(t)
	w := workersOfTest{"wg0:0": "0-1", "wg0:1": "0-1"}
	h.Workers = w
	s := &doctor.Snapshot{
		CPUs: []doctor.CPU{{ID: 0}, {ID: 1}}, Interfaces: []doctor.Interface{{Name: "wg0", Kind: "tun"}},
		After: &doctor.Counters{VPN: []doctor.VPNCount{{Interface: "wg0", Workers: []doctor.VPNWorker{{Queue: 0}, {Queue: 1}}}}},
	}
	for _, c := range []struct {
		word string
		want workersOfTest
	}{
		{"wg0:1=1", workersOfTest{"wg0:0": "0-1", "wg0:1": "1"}},
		{"wg0=1,0", workersOfTest{"wg0:0": "0", "wg0:1": "1"}},
		{"wg0:0=0,1", workersOfTest{"wg0:0": "0-1", "wg0:1": "1"}},
	} {
		changes, err := Parse([]string{c.word}, s)
		must(t, err)
		must(t, apply(t.Context(), t, h, 0, changes...))
		if diff := cmp.Diff(c.want, w); diff != "" {
			t.Errorf("%s: %s", c.word, diff)
		}
	}
	for _, word := range []string{"wg0:2=1", "wg0:0=none", "wg0:0=2", "wg0:x=1", "wg0:0/rps="} {
		if changes, err := Parse([]string{word}, s); err == nil {
			t.Errorf("%s is accepted: %v", word, changes)
		}
	}
	delete(w, "wg0:0")
	if _, err := h.Revert(true); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(workersOfTest{"wg0:1": "0-1"}, w); diff != "" {
		t.Error(diff)
	}
}
