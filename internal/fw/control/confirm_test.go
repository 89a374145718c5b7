package control

import (
	"errors"
	"testing"
	"time"

	"weir/internal/fw/rundir"
	"weir/internal/testenv"
)

// Without a daemon, a load can be confirmed while a start in another namespace looks for
// leftovers, but not while a start here is about to roll back.
func TestConfirmWithoutDaemon(t *testing.T) {
	testenv.NeedRoot(t)
	f := testFolder(t)
	lock, err := f.Lock(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewClient(f).Confirm(t.Context()); !errors.Is(err, ErrNothingWaits) {
		t.Errorf("Confirm of nothing: %v, want ErrNothingWaits", err)
	}
	if err := rundir.WriteJSON(f.Rollback(), &rundir.Rollback{File: "/two.conf"}); err != nil {
		t.Fatal(err)
	}
	if _, err := NewClient(f).Confirm(t.Context()); !errors.Is(err, rundir.ErrLocked) {
		t.Errorf("Confirm under a lock that stays: %v, want ErrLocked", err)
	}
	time.AfterFunc(50*time.Millisecond, func() { lock.Close() })
	answer, err := NewClient(f).Confirm(t.Context())
	if err != nil || answer.File != "/two.conf" {
		t.Fatalf("Confirm under a lock that is let go: %+v, %v", answer, err)
	}
	if left, err := f.ReadRollback(); left != nil || err != nil {
		t.Errorf("what was confirmed still waits: %+v, %v", left, err)
	}
}
