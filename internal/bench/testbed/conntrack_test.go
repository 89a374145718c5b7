package testbed

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/host/hostinfo"
)

// fakeConntrack returns limits that belong to no machine.
func fakeConntrack(now *hostinfo.Conntrack) conntrackLimits {
	return conntrackLimits{
		Read: func() (hostinfo.Conntrack, error) { return *now, nil },
		set:  func(c hostinfo.Conntrack) error { *now = c; return nil },
	}
}

func TestRaiseAndRestore(t *testing.T) {
	before := hostinfo.Conntrack{Max: 262144, Buckets: 65536}
	now, dir := before, t.TempDir()
	restore, err := fakeConntrack(&now).Raise(dir, 2_000_000, 2_000_000)
	if err != nil {
		t.Fatal(err)
	}
	if want := (hostinfo.Conntrack{Max: 2_000_000, Buckets: 2_000_000}); now != want {
		t.Errorf("raised to %+v, want %+v", now, want)
	}
	if err := restore(); err != nil || now != before {
		t.Errorf("restored to %+v, %v; want %+v", now, err, before)
	}
	if _, err := os.Stat(filepath.Join(dir, "conntrack.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the note is left: %v", err)
	}
}

// A run that was killed leaves the note, and the next run restores the limits before it
// measures.
func TestRestoreAfterKill(t *testing.T) {
	before := hostinfo.Conntrack{Max: 65536, Buckets: 16384}
	now, dir := before, t.TempDir()
	if _, err := fakeConntrack(&now).Raise(dir, 200_000, 200_000); err != nil {
		t.Fatal(err)
	}
	if now == before {
		t.Fatal("nothing was raised")
	}
	if err := fakeConntrack(&now).restore(dir); err != nil || now != before {
		t.Errorf("restored to %+v, %v; want %+v", now, err, before)
	}
	now = hostinfo.Conntrack{Max: 1, Buckets: 1}
	if err := fakeConntrack(&now).restore(dir); err != nil || now.Max != 1 {
		t.Errorf("restored twice: %+v, %v", now, err)
	}
}

func TestRaiseFails(t *testing.T) {
	before := hostinfo.Conntrack{Max: 65536, Buckets: 16384}
	now, dir := before, t.TempDir()
	limits := fakeConntrack(&now)
	limits.set = func(c hostinfo.Conntrack) error {
		now = c
		if c != before {
			return errors.New("refused")
		}
		return nil
	}
	if _, err := limits.Raise(dir, 200_000, 200_000); err == nil {
		t.Error("no error")
	}
	if now != before {
		t.Errorf("left at %+v, want %+v", now, before)
	}
}

// If the limits could not be restored, the note stays and the next run restores them.
func TestRestoreFails(t *testing.T) {
	before := hostinfo.Conntrack{Max: 65536, Buckets: 16384}
	now, dir := before, filepath.Join(t.TempDir(), "bench")
	unlock, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	limits := fakeConntrack(&now)
	restore, err := limits.Raise(dir, 200_000, 200_000)
	if err != nil {
		t.Fatal(err)
	}
	limits.set = func(hostinfo.Conntrack) error { return errors.New("refused") }
	if err := limits.restore(dir); err == nil {
		t.Fatal("a failure to restore is not told")
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if unlock, err = lock(dir); err != nil {
		t.Fatalf("the next run: %v", err)
	}
	if err := restore(); err != nil || now != before {
		t.Errorf("the next run restored %+v, %v; want %+v", now, err, before)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}
