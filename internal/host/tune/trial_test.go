package tune_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"weir/internal/host/tune"
	"weir/internal/host/tune/db"
	"weir/internal/host/undolog"
)

const budget = "proc/sys/net/core/netdev_budget"

// put writes a file of a tree.
func put(t *testing.T, h *tune.Host, name, text string) {
	t.Helper()
	path := filepath.Join(h.Root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// trial begins a trial, and returns once its values are set.
func trial(ctx context.Context, t *testing.T, h *tune.Host) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	p := plan(t, h, tune.Inputs{Role: db.Forwarder})
	go func() { done <- h.Try(ctx, p, time.Hour) }()
	waitFor(t, func() bool { s := status(t, h); return s.Confirm != nil && s.Drift == 0 })
	unlock, err := h.Lock() // the trial releases the lock only after its last value
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	return done
}

// TestStalePlan checks that a plan made during a trial does not take the trial's values
// for found ones, and that a plan older than somebody's change is refused.
func TestStalePlan(t *testing.T) {
	h, files := tree(t, nil)
	before := files()
	ctx, cancel := context.WithCancel(t.Context())
	done := trial(ctx, t, h)
	stale := plan(t, h, tune.Inputs{Link: 100_000_000_000}, "net.core.netdev_budget")
	if len(stale.Changes) != 1 || stale.Changes[0].From != "1625" {
		t.Fatalf("the plan is not of the trial's values: %+v", stale.Changes)
	}
	cancel()
	if err := <-done; !errors.Is(err, undolog.ErrUnconfirmed) {
		t.Fatal(err)
	}
	if err := h.Apply(stale); err == nil || !strings.Contains(err.Error(), "the host has changed since the plan was made: plan again") {
		t.Errorf("apply of a plan from the trial's time: %v", err)
	}
	p := plan(t, h, tune.Inputs{Role: db.Forwarder})
	put(t, h, budget, "500\n")
	if err := h.Apply(p); err == nil || !strings.Contains(err.Error(), "net.core.netdev_budget was 300 and is 500") {
		t.Errorf("apply of a plan from before a change: %v", err)
	}
	before[budget] = "500\n"
	if diff := cmp.Diff(before, files()); diff != "" {
		t.Errorf("afterwards (-before +after):\n%s", diff)
	}
}

// TestTryWaitsForLock checks that a trial that has to be put back waits while another
// weir tune is at work.
func TestTryWaitsForLock(t *testing.T) {
	h, files := tree(t, nil)
	before := files()
	ctx, cancel := context.WithCancel(t.Context())
	done := trial(ctx, t, h)
	unlock, err := h.Lock()
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case err := <-done:
		t.Errorf("it did not wait: %v", err)
		done = nil
	case <-time.After(50 * time.Millisecond): // if it has not got that far yet, nothing is proven and nothing fails
	}
	if err := h.Apply(plan(t, h, tune.Inputs{Role: db.Forwarder})); err == nil || err.Error() != "another weir tune is running on this host" {
		t.Errorf("apply beside another: %v", err)
	}
	unlock()
	if done == nil {
		return
	}
	if err := <-done; !errors.Is(err, undolog.ErrUnconfirmed) {
		t.Errorf("after the wait: %v", err)
	}
	if diff := cmp.Diff(before, files()); diff != "" {
		t.Errorf("not confirmed (-before +after):\n%s", diff)
	}
}

// TestLockIsRoots checks that a lock on the root directory, which anybody can take, keeps
// nobody out.
func TestLockIsRoots(t *testing.T) {
	h, _ := tree(t, nil)
	folder, err := os.Open(h.Root)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := unix.Flock(int(folder.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	apply(t, h, tune.Inputs{Role: db.Forwarder})
}

// TestTryReverted checks that a trial that somebody else put back is not reported as
// kept, nor one whose confirmation failed.
func TestTryReverted(t *testing.T) {
	h, files := tree(t, nil)
	before := files()
	done := trial(t.Context(), t, h)
	if _, err := h.Revert(false); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, tune.ErrReverted) {
		t.Errorf("reverted: %v", err)
	}
	if diff := cmp.Diff(before, files()); diff != "" {
		t.Errorf("reverted (-before +after):\n%s", diff)
	}
	done = trial(t.Context(), t, h)
	put(t, h, "etc/sysctl.d", "no folder")
	if _, err := h.Confirm(); err == nil || !strings.Contains(err.Error(), "keep values for the next boot") {
		t.Errorf("confirm: %v", err)
	}
	if err := <-done; !errors.Is(err, tune.ErrReverted) {
		t.Errorf("a confirmation that failed: %v", err)
	}
	if got := files()[budget]; got != before[budget] {
		t.Errorf("netdev_budget is %q, want %q", got, before[budget])
	}
}

// TestRevertLeavesAdministrators checks that revert leaves and reports what the
// administrator has set after weir, unless it is told to put back everything.
func TestRevertLeavesAdministrators(t *testing.T) {
	const demux = "proc/sys/net/ipv4/ip_early_demux"
	for _, all := range []bool{false, true} {
		h, files := tree(t, nil)
		apply(t, h, tune.Inputs{Role: db.Forwarder}, "net.core.netdev_budget", "net.core.netdev_max_backlog", "net.ipv4.ip_early_demux")
		put(t, h, budget, "999\n")
		put(t, h, "etc/sysctl.d/50-mine.conf", "net.ipv4.ip_early_demux=0\n") // the administrator's, and in force
		restored, err := h.Revert(all)
		if err != nil {
			t.Fatal(err)
		}
		kept := map[string]string{}
		for _, r := range restored {
			kept[r.Key] = r.Kept
		}
		wantKept := map[string]string{
			"net.core.netdev_budget": "somebody has set it since", "net.core.netdev_max_backlog": "",
			"net.ipv4.ip_early_demux": "the administrator sets it in /etc/sysctl.d/50-mine.conf:1",
		}
		want := []string{"999\n", "0\n"}
		if all {
			wantKept = map[string]string{"net.core.netdev_budget": "", "net.core.netdev_max_backlog": "", "net.ipv4.ip_early_demux": ""}
			want = []string{"300\n", "1\n"}
		}
		if diff := cmp.Diff(wantKept, kept); diff != "" {
			t.Errorf("all %v: kept (-want +got):\n%s", all, diff)
		}
		if now := files(); now[budget] != want[0] || now[demux] != want[1] {
			t.Errorf("all %v: %q and %q, want %q", all, now[budget], now[demux], want)
		}
	}
}

// TestGiveUp checks that a key that the administrator takes over in a file not yet loaded
// gets its found value. From then on the journal no longer has it.
func TestGiveUp(t *testing.T) {
	h, files := tree(t, nil)
	apply(t, h, tune.Inputs{Role: db.Forwarder})
	put(t, h, "etc/sysctl.d/50-mine.conf", "net.core.netdev_budget=700\n")
	apply(t, h, tune.Inputs{Role: db.Forwarder})
	if got := files()[budget]; got != "300\n" {
		t.Errorf("netdev_budget is %q, want what was found", got)
	}
	if _, err := h.Revert(false); err != nil {
		t.Fatal(err)
	}
	if got := files()[budget]; got != "300\n" {
		t.Errorf("reverted: netdev_budget is %q, want what was found", got)
	}
}
