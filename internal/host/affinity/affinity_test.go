package affinity

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/host/doctor"
	"weir/internal/host/undolog"
	"weir/internal/testenv"
)

// host is one in a network namespace of its own, with a veth of two queues.
func host(t *testing.T) *Host {
	t.Helper()
	testenv.NeedRoot(t)
	runtime.LockOSThread() // never unlocked: the thread, and its namespace, end with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.NumRxQueues, attrs.NumTxQueues = "v0", 2, 2
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: "v1"}
	if err := netlink.LinkAdd(pair); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"v0", "v1"} {
		l, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetUp(l)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	h, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := h.Revert(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(h.dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the journal is left: %v", err)
		}
		h.Close()
	})
	return h
}

func rps(queue int, to string) Change {
	return Change{Setting: Setting{Kind: doctor.KindRPS, Interface: "v0", Queue: queue}, To: to}
}

func inStep(changes ...Change) Step {
	return func() ([]Change, error) { return changes, nil }
}

// expect compares what the kernel says of the two queues' RPS.
func expect(t *testing.T, h *Host, want ...string) {
	t.Helper()
	var got []string
	for q := range want {
		c := rps(q, "")
		now, err := h.Read(&c.Setting)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, now)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestApplyAndRevert(t *testing.T) {
	h := host(t)
	own := rps(1, "0")
	must(t, h.set(&own.Setting, own.To)) // somebody's
	must(t, h.Apply(t.Context(), 0, inStep(rps(0, "0-1")), inStep(rps(1, ""))))
	expect(t, h, "0-1", "")
	must(t, h.Apply(t.Context(), 0, inStep(rps(0, "1"))))
	expect(t, h, "1", "")
	restored, err := h.Revert()
	must(t, err)
	expect(t, h, "", "0")
	if len(restored) != 2 {
		t.Errorf("%+v", restored)
	}
}

// An error in a later step takes all of them back, and nothing is journaled.
func TestFails(t *testing.T) {
	h := host(t)
	must(t, h.Apply(t.Context(), 0, inStep(rps(1, "1"))))
	err := h.Apply(t.Context(), 0, inStep(rps(1, "0")), inStep(rps(0, "0-1")), inStep(rps(7, "0")))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	expect(t, h, "", "1")
}

// Unless it is confirmed, a change goes back to what was there before it: what an
// earlier one has set.
func TestConfirm(t *testing.T) {
	h := host(t)
	must(t, h.Apply(t.Context(), 0, inStep(rps(1, "1"))))
	err := h.Apply(t.Context(), 300*time.Millisecond, inStep(rps(0, "0"), rps(1, "0-1")))
	if !errors.Is(err, undolog.ErrUnconfirmed) {
		t.Errorf("%v", err)
	}
	expect(t, h, "", "1")

	ctx, hangUp := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, hangUp)
	if err := h.Apply(ctx, time.Hour, inStep(rps(0, "0"))); !errors.Is(err, undolog.ErrUnconfirmed) {
		t.Errorf("%v", err)
	}
	expect(t, h, "", "1")

	confirmed := make(chan error, 1)
	time.AfterFunc(300*time.Millisecond, func() { confirmed <- h.Confirm() })
	must(t, h.Apply(t.Context(), time.Minute, inStep(rps(0, "0"))))
	must(t, <-confirmed)
	expect(t, h, "0", "1")
	if err := h.Confirm(); err == nil {
		t.Error("nothing waited, and was confirmed")
	}
}

// Who waits is told of a revert, also where something is set by then.
func TestRevertMeanwhile(t *testing.T) {
	h := host(t)
	again := make(chan error, 1)
	time.AfterFunc(300*time.Millisecond, func() {
		_, err := h.Revert()
		again <- errors.Join(err, h.Apply(t.Context(), 0, inStep(rps(1, "1"))))
	})
	if err := h.Apply(t.Context(), time.Minute, inStep(rps(0, "0"))); !errors.Is(err, ErrReverted) {
		t.Errorf("%v", err)
	}
	must(t, <-again)
	expect(t, h, "", "1")
}

// What goes back is what the trial changed, to what it found: what somebody has set
// since an earlier change is theirs.
func TestTrialOfAnother(t *testing.T) {
	h := host(t)
	must(t, h.Apply(t.Context(), 0, inStep(rps(0, "1"))))
	own := rps(0, "0-1")
	must(t, h.set(&own.Setting, own.To)) // somebody's
	err := h.Apply(t.Context(), 300*time.Millisecond, inStep(rps(1, "0")))
	if !errors.Is(err, undolog.ErrUnconfirmed) {
		t.Errorf("%v", err)
	}
	expect(t, h, "0-1", "")
	err = h.Apply(t.Context(), 0, inStep(rps(1, "0"), rps(0, "0")), inStep(rps(7, "0")))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	expect(t, h, "0-1", "")
}

// A session that was killed leaves an open transaction: nothing can be changed
// until it is put back.
func TestCutOff(t *testing.T) {
	h := host(t)
	_, err := h.change(time.Minute, []Step{inStep(rps(0, "0-1"))})
	must(t, err)
	if err := h.Apply(t.Context(), 0, inStep(rps(1, "1"))); !errors.Is(err, errOpen) {
		t.Errorf("%v", err)
	}
	if _, err := h.Revert(); err != nil {
		t.Error(err)
	}
	expect(t, h, "", "")
}

// A thread that receives is bound, and found again by its queue; its settings are
// put back with what made it.
func TestThreads(t *testing.T) {
	h := host(t)
	e, err := ethtool.NewEthtool()
	must(t, err)
	defer e.Close()
	must(t, e.Change("v0", map[string]bool{"rx-gro": true})) // else it has no receivers
	threaded := Change{Setting: Setting{Kind: doctor.KindThreaded, Interface: "v0"}, To: "1"}
	thread := Change{Setting: Setting{Kind: doctor.KindThread, Interface: "v0"}, To: "0"}
	must(t, h.Apply(t.Context(), 0, inStep(threaded), inStep(thread)))
	if now, err := h.Read(&thread.Setting); err != nil || now != "0" {
		t.Errorf("%q, %v", now, err)
	}
	_, err = h.Revert()
	must(t, err)
	if now, err := h.Read(&threaded.Setting); err != nil || now != "0" {
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
	irq := func(number, queue int, to string) Change {
		return Change{Setting: Setting{Kind: doctor.KindIRQ, Interface: "eth1", Queue: queue, IRQ: number, Name: []string{"eth1-TxRx-0", "eth1-TxRx-1"}[number-41]}, To: to}
	}
	both := []Setting{irq(41, 0, "").Setting, irq(42, 0, "").Setting}
	for word, want := range map[string][]Change{
		"eth1:1=2":         {irq(42, 1, "2")},
		"eth1=1,3":         {irq(41, 0, "1"), irq(42, 1, "3")},
		"irq41=0-2":        {irq(41, 0, "0-2")},
		"eth1:0/rps=0,2-3": {{Setting: Setting{Kind: doctor.KindRPS, Interface: "eth1"}, To: "0,2-3"}},
		"eth1:1/xps=none":  {{Setting: Setting{Kind: doctor.KindXPS, Interface: "eth1", Queue: 1}, To: ""}},
		"eth1/threaded=on": {{Setting: Setting{Kind: doctor.KindThreaded, Interface: "eth1"}, To: "1", Besides: both}},
		"eth1/queues=2":    {{Setting: Setting{Kind: doctor.KindQueues, Interface: "eth1"}, To: "2", Besides: both}},
	} {
		got, err := Parse([]string{word}, s)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", word, err, diff)
		}
	}
	for word, want := range map[string]string{
		"eth1:1": "want eth1:3=2", "eth1:1=": "want eth1:3=2", "eth1:-1=0": "want eth1:3=2", "eth1:1=none": "want eth1:3=2",
		"eth1:1=4": "no cpu4 online", "eth9:0=1": "no interface \"eth9\"", "eth1:5=1": "no queue 5", "irq7=1": "interrupt 7",
		"eth1/queues=0": "number from 1", "eth1/threaded=yes": "on or off", "eth1/rps=1": "want eth1:3=2", "wan0.7:0=1": "no queue 0", "eth1:0/xyz=1": "want eth1:3=2",
	} {
		if got, err := Parse([]string{word}, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", word, got, err, want)
		}
	}
}

// An interrupt is set and put back; one whose number another device has by then is
// left alone. The tree is recorded: interrupts are the machine's.
func TestInterrupts(t *testing.T) {
	h := host(t)
	h.irq = t.TempDir()
	file := filepath.Join(h.irq, "41", "smp_affinity_list")
	must(t, os.MkdirAll(filepath.Join(h.irq, "41", "v0-TxRx-0"), 0o755))
	must(t, os.WriteFile(file, []byte("0-3\n"), 0o600))
	now := func() string {
		text, err := os.ReadFile(file)
		must(t, err)
		return strings.TrimSpace(string(text))
	}
	c := Change{Setting: Setting{Kind: doctor.KindIRQ, Interface: "v0", IRQ: 41, Name: "v0-TxRx-0"}, To: "0-2"} // as long as what was there: a file is not cut off
	must(t, h.Apply(t.Context(), 0, inStep(c)))
	if got := now(); got != "0-2" {
		t.Errorf("set to %q", got)
	}
	_, err := h.Revert()
	must(t, err)
	if got := now(); got != "0-3" {
		t.Errorf("put back to %q", got)
	}
	must(t, h.Apply(t.Context(), 0, inStep(c)))
	must(t, os.Rename(filepath.Join(h.irq, "41", "v0-TxRx-0"), filepath.Join(h.irq, "41", "nvme0q1")))
	_, err = h.Revert()
	must(t, err)
	if got := now(); got != "0-2" {
		t.Errorf("another's interrupt was set to %q", got)
	}
}

// What a card that is down does not show is kept until it is up again: it will have
// what weir has set.
func TestDown(t *testing.T) {
	h := host(t)
	h.irq = t.TempDir()
	folder, file := filepath.Join(h.irq, "41", "v0-TxRx-0"), filepath.Join(h.irq, "41", "smp_affinity_list")
	must(t, os.MkdirAll(folder, 0o755))
	must(t, os.WriteFile(file, []byte("0-3\n"), 0o600))
	c := Change{Setting: Setting{Kind: doctor.KindIRQ, Interface: "v0", IRQ: 41, Name: "v0-TxRx-0"}, To: "0-2"}
	l, err := netlink.LinkByName("v0")
	must(t, err)
	expectDown := func(err error) {
		t.Helper()
		if err == nil || errors.Is(err, undolog.ErrUnconfirmed) || !strings.Contains(err.Error(), "v0 is down") {
			t.Errorf("%v", err)
		}
	}
	down := func() { must(t, errors.Join(netlink.LinkSetDown(l), os.Remove(folder))) }
	up := func() { must(t, errors.Join(os.Mkdir(folder, 0o755), netlink.LinkSetUp(l))) }

	must(t, h.Apply(t.Context(), 0, inStep(rps(0, "1"), c)))
	down()
	_, err = h.Revert()
	expectDown(err)
	expect(t, h, "")
	own := rps(0, "0")
	must(t, h.set(&own.Setting, own.To)) // somebody's, as the first revert was done with it
	up()
	restored, err := h.Revert()
	must(t, err)
	if text, err := os.ReadFile(file); string(text) != "0-3" && string(text) != "0-3\n" || len(restored) != 1 {
		t.Errorf("%q, %v; %+v", text, err, restored)
	}
	expect(t, h, "0")

	fails := func() ([]Change, error) { down(); return nil, errors.New("no") }
	expectDown(h.Apply(t.Context(), 0, inStep(c), fails))
	up()
	if restored, err := h.Revert(); err != nil || len(restored) != 1 {
		t.Errorf("%+v, %v", restored, err)
	}
}

// With a change of how a card receives goes what its driver makes of its interrupts:
// of those that the snapshot says are its own, whatever they are called.
func TestInterruptsBesides(t *testing.T) {
	h := host(t)
	e, err := ethtool.NewEthtool()
	must(t, err)
	defer e.Close()
	must(t, e.Change("v0", map[string]bool{"rx-gro": true})) // else it has no receivers
	h.irq = t.TempDir()
	s := &doctor.Snapshot{
		Interfaces: []doctor.Interface{{Name: "v0"}},
		IRQs:       []doctor.IRQ{{Number: 41, Name: "virtio0-input.0", Interface: "v0"}, {Number: 42, Name: "v00-TxRx-0", Interface: "v00"}},
	}
	file := func(number int) string { return filepath.Join(h.irq, strconv.Itoa(number), "smp_affinity_list") }
	for i := range s.IRQs {
		irq := &s.IRQs[i]
		must(t, os.MkdirAll(filepath.Join(h.irq, strconv.Itoa(irq.Number), irq.Name), 0o755))
		must(t, os.WriteFile(file(irq.Number), []byte("0-3"), 0o600))
	}
	parsed, err := Parse([]string{"v0/threaded=on"}, s)
	must(t, err)
	planned := ChangeOf(&doctor.Placement{Kind: doctor.KindThreaded, Interface: "v0", To: "1"}, s.IRQs)
	for _, change := range append(parsed, planned) {
		must(t, h.Apply(t.Context(), 0, inStep(change)))
		for _, irq := range s.IRQs {
			must(t, os.WriteFile(file(irq.Number), []byte("2-3"), 0o600)) // a driver's, and somebody's
		}
		_, err = h.Revert()
		must(t, err)
		for number, want := range map[int]string{41: "0-3", 42: "2-3"} {
			if text, err := os.ReadFile(file(number)); string(text) != want {
				t.Errorf("interrupt %d: %q, %v", number, text, err)
			}
		}
		must(t, os.WriteFile(file(41), []byte("0-3"), 0o600))
	}
}
