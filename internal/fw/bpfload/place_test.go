package bpfload

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/host/netif"
	"weir/internal/testenv"
)

// onThread runs f on a new thread, which ends with f.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked
		done <- f()
	}()
	return <-done
}

func TestPlaceNetns(t *testing.T) {
	testenv.NeedRoot(t)
	outside, err := netif.Cookie()
	if err != nil {
		t.Fatal(err)
	}
	var inside, seen uint64
	err = onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		if inside, err = netif.Cookie(); err != nil {
			return err
		}
		path := fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
		return onThread(func() error {
			return At(path).Do(func() (err error) {
				seen, err = netif.Cookie()
				return err
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen != inside || seen == outside {
		t.Errorf("in the place: cookie %d, want %d; outside: %d", seen, inside, outside)
	}
	if err := At("/proc/nowhere").Do(func() error { return nil }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a namespace that does not exist: %v", err)
	}
}

// A process with its own mounts works with those of process 1, or not at all.
func TestPlaceMounts(t *testing.T) {
	testenv.NeedRoot(t)
	ran := false
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return err
		}
		return At("").Do(func() error {
			ran = true
			private, err := mountsPrivate()
			if private {
				t.Error("the place has private mounts")
			}
			return err
		})
	})
	switch {
	case err == nil && !ran:
		t.Error("the work was not done")
	case err != nil && (!errors.Is(err, ErrMounts) || ran || !strings.Contains(err.Error(), "--netns")):
		t.Errorf("ran: %v; error: %v", ran, err)
	}
}

func TestMountFS(t *testing.T) {
	testenv.NeedRoot(t)
	dir := t.TempDir()
	for range 2 {
		if err := MountFS(dir); err != nil {
			t.Fatal(err)
		}
	}
	used := filepath.Join(dir, "used")
	if err := os.Mkdir(used, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := UnmountFS(dir); err != nil {
		t.Fatal(err)
	}
	if is, err := isFS(dir); !is || err != nil {
		t.Fatalf("unmounted with a folder in it (%v)", err)
	}
	if err := os.Remove(used); err != nil {
		t.Fatal(err)
	}
	// Another process has mounted a second one, which hides the first.
	if err := unix.Mount("weir", dir, "bpf", 0, "mode=0700"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := UnmountFS(dir); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("mounted twice, or its folder is left (%v)", err)
	}
}
