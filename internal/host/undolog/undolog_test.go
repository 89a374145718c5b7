package undolog_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/host/undolog"
	"weir/internal/killpoint"
)

type contents struct {
	Set string `json:"set"`
}

// TestFile checks that what is written is read back. The remains of an interrupted write
// are not read, and are removed with the rest, including the directory.
func TestFile(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	f := undolog.File{Path: filepath.Join(folder, "j.json"), Of: "weir tune"}
	var j contents
	if err := errors.Join(f.Read(&j), f.Write(contents{"a"}), f.Write(contents{"b"}), f.Read(&j)); err != nil || j.Set != "b" {
		t.Fatalf("%+v, %v", j, err)
	}
	if err := os.WriteFile(f.Path+killpoint.Unfinished, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Read(&j), f.Remove(), f.Remove()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestBroken checks that a broken journal is an error that names the command, and never
// counts as empty.
func TestBroken(t *testing.T) {
	f := undolog.File{Path: filepath.Join(t.TempDir(), "j.json"), Of: "weir tune"}
	if err := os.WriteFile(f.Path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Read(&contents{}); err == nil || !strings.Contains(err.Error(), "read what weir tune has set: "+f.Path) {
		t.Error(err)
	}
}

// TestLock checks that a process that waits gets the released lock, on the file that
// exists by then. One that does not wait gets an error.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := undolog.Lock(path, "weir tune", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := undolog.Lock(path, "weir tune", false); err == nil || err.Error() != "another weir tune is running on this host" {
		t.Error(err)
	}
	got := make(chan error, 1)
	go func() {
		again, err := undolog.Lock(path, "weir tune", true)
		if err == nil {
			_, err = os.Stat(path)
			again()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("two have the lock: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestConfirmable(t *testing.T) {
	for want, until := range map[string]time.Time{
		"nothing waits to be confirmed":                             {},
		"too late to confirm; weir tune revert restores everything": time.Now().Add(-time.Minute),
	} {
		if err := undolog.Confirmable(until, "weir tune"); err == nil || err.Error() != want {
			t.Errorf("%v", err)
		}
	}
	if err := undolog.Confirmable(time.Now().Add(time.Minute), "weir tune"); err != nil {
		t.Error(err)
	}
}
