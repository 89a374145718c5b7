package filelock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHeld checks that a lock on a file or a directory keeps others out until it is
// closed.
func TestHeld(t *testing.T) {
	dir := t.TempDir()
	for _, lock := range []func(Mode) (*os.File, error){
		func(mode Mode) (*os.File, error) { return File(filepath.Join(dir, "lock"), mode) },
		func(mode Mode) (*os.File, error) { return Folder(dir, mode) },
	} {
		first, err := lock(Try)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lock(Try); !errors.Is(err, ErrHeld) {
			t.Errorf("a second time: %v", err)
		}
		second := make(chan error)
		go func() {
			file, err := lock(Wait)
			second <- errors.Join(err, file.Close())
		}()
		first.Close()
		if err := <-second; err != nil {
			t.Errorf("behind the first: %v", err)
		}
	}
	if _, err := Folder(filepath.Join(dir, "none"), Try); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no folder: %v", err)
	}
	if err := os.Symlink("lock", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := File(filepath.Join(dir, "link"), Try); !errors.Is(err, unix.ELOOP) {
		t.Errorf("of a symbolic link: %v", err)
	}
}

// TestRemoved checks that, if the holder of the lock removes the file, the next process
// locks the new file of that name. Two processes never hold the lock.
func TestRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var all sync.WaitGroup
	holders := 0
	var counting sync.Mutex
	count := func(by int) int {
		counting.Lock()
		defer counting.Unlock()
		holders += by
		return holders
	}
	for range 8 {
		all.Go(func() {
			for range 200 {
				file, err := File(path, Wait)
				if err != nil {
					t.Error(err)
					return
				}
				if n := count(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				count(-1)
				if err := errors.Join(os.Remove(path), file.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// TestFolderRemoved checks that processes waiting for a directory that its holder removes
// get an error.
func TestFolderRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	first, err := Folder(path, Wait)
	if err != nil {
		t.Fatal(err)
	}
	waiter, err := os.Open(path) // open, as in a process that waits
	if err != nil {
		t.Fatal(err)
	}
	defer waiter.Close()
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700), first.Close()); err != nil {
		t.Fatal(err)
	}
	if isAt(waiter, path) {
		t.Error("another folder counts as the one that was locked")
	}
}
