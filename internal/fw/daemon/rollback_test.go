package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/fw/rundir"
)

// A load is confirmed only if its record is gone: a start would roll it back.
func TestConfirmationNeedsItsRecord(t *testing.T) {
	folder := rundir.Folder(t.TempDir())
	obstacle := filepath.Join(folder.Rollback(), "obstacle")
	if err := os.MkdirAll(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	b := &box{cfg: &Config{Folder: folder, Log: slog.New(slog.DiscardHandler)}, waiting: &waiting{}, waits: make(chan struct{}, 1)}
	c := &controller{box: b}
	if _, err := c.Confirm(); err == nil || b.waiting == nil {
		t.Errorf("confirmed with its record: %v, waiting %v", err, b.waiting)
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Confirm(); err != nil || b.waiting != nil {
		t.Errorf("confirmed: %v, waiting %v", err, b.waiting)
	}
}
