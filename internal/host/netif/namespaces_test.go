package netif_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/host/netif"
	"weir/internal/testenv"
)

// Neither a FIFO over a mounted namespace nor a process that its parent does not ask for keeps namespaces from being found.
func TestCookiesOfStrangers(t *testing.T) {
	testenv.NeedRoot(t)
	folder := t.TempDir()
	at := filepath.Join(folder, "ns")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(at, nil, 0o600))
	must(unix.Mount("/proc/self/ns/net", at, "", unix.MS_BIND, ""))
	t.Cleanup(func() { must(unix.Unmount(at, 0)) })
	must(unix.Mount("none", folder, "tmpfs", 0, ""))
	t.Cleanup(func() { must(unix.Unmount(folder, 0)) })
	must(unix.Mkfifo(at, 0o600))
	ended := exec.Command("true")
	must(ended.Start())
	t.Cleanup(func() { must(ended.Wait()) })
	for {
		state, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(ended.Process.Pid), "stat"))
		must(err)
		if strings.Contains(string(state), ") Z ") {
			break
		}
		time.Sleep(time.Millisecond)
	}
	own, err := netif.Cookie()
	must(err)
	all, err := netif.Cookies()
	must(err)
	if !all[own] {
		t.Error("the own namespace is not found")
	}
}

// A namespace that another one is mounted over cannot be joined by its place. That is an error: it is not one of those found,
// and has not ended.
func TestCookiesOfCovered(t *testing.T) {
	testenv.NeedRoot(t)
	at := filepath.Join(t.TempDir(), "ns")
	if err := os.WriteFile(at, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // it ends in another namespace, and so with this
		var errs []error
		for range 2 {
			errs = append(errs, unix.Unshare(unix.CLONE_NEWNET), unix.Mount("/proc/thread-self/ns/net", at, "", unix.MS_BIND, ""))
		}
		failed <- errors.Join(errs...)
	}()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := unix.Unmount(at, 0); err != nil {
				t.Error(err)
			}
		}
	})
	if all, err := netif.Cookies(); err == nil {
		t.Errorf("%d namespaces are found, and no error for the one that is covered", len(all))
	}
}
