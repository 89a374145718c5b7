package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/testenv"
)

// Starts and stops at the same time: the holder of the lock removes the folder, and
// others make it again.
func TestLockWhileOthersRemove(t *testing.T) {
	f := Folder(filepath.Join(t.TempDir(), "run", "1"))
	var holders sync.WaitGroup
	held := 0 // under the lock
	for range 4 {
		holders.Go(func() {
			for range 200 {
				lock, err := f.Lock(30 * time.Second)
				if err != nil {
					t.Error(err)
					return
				}
				held++
				if _, err := os.Stat(f.Rules()); err != nil {
					t.Errorf("a locked folder is not whole: %v", err)
				}
				if err := f.Remove(); err != nil {
					t.Error(err)
				}
				lock.Close()
			}
		})
	}
	holders.Wait()
	if _, err := os.Stat(string(f)); err == nil {
		t.Error("the folder is left")
	}
	if held != 4*200 {
		t.Errorf("the lock was held %d times, want %d", held, 4*200)
	}
}

func TestLockIsHeldByOne(t *testing.T) {
	testenv.NeedRoot(t)
	f := Folder(filepath.Join(t.TempDir(), "1"))
	first, err := f.Lock(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Lock(50 * time.Millisecond); !errors.Is(err, ErrLocked) {
		t.Errorf("second Lock: %v, want ErrLocked", err)
	}
	time.AfterFunc(50*time.Millisecond, func() {
		os.RemoveAll(string(f)) // as weir stop does, under its lock
		first.Close()
	})
	second, err := f.Lock(5 * time.Second)
	if err != nil {
		t.Fatalf("Lock after the first was let go: %v", err)
	}
	defer second.Close()
	held, err := second.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if named, err := os.Stat(f.lock()); err != nil || !os.SameFile(held, named) {
		t.Errorf("the lock is that of a folder that was removed: %v", err)
	}
}

func TestJSONFilesAreReplacedWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.json")
	want := Loaded{File: "a.conf", Rules: 3, Time: time.Unix(1, 0).UTC()}
	if err := WriteJSON(path, want); err != nil {
		t.Fatal(err)
	}
	var got Loaded
	if err := ReadJSON(path, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
	if err := ReadJSON(path+"x", &got); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("ReadJSON of nothing: %v", err)
	}
}
