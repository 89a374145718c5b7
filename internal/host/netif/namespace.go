package netif

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// soNetnsCookie is SO_NETNS_COOKIE (asm-generic/socket.h, Linux 5.14).
const soNetnsCookie = 71

// namespaceDirs are the directories in which ip netns keeps its names.
var namespaceDirs = [...]string{"/run/netns", "/var/run/netns"}

// Cookie returns the number of this process's network namespace. It is unique since the
// machine's start.
func Cookie() (uint64, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open a socket to ask for the network namespace: %w", err)
	}
	defer unix.Close(fd)
	var cookie uint64
	size := uint32(unsafe.Sizeof(cookie))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, soNetnsCookie,
		uintptr(unsafe.Pointer(&cookie)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0, fmt.Errorf("ask for the network namespace's cookie: %w", errno)
	}
	return cookie, nil
}

// NamespacePath returns the file of a network namespace, given its name in ip netns or a
// path. The error is fs.ErrNotExist if there is none.
func NamespacePath(name string) (string, error) {
	if strings.Contains(name, "/") {
		if _, err := os.Stat(name); err != nil {
			return "", fmt.Errorf("network namespace: %w", err)
		}
		return name, nil
	}
	for _, dir := range namespaceDirs {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("network namespace %q: %w", name, fs.ErrNotExist)
}

// entered is set to its process id in the environment of a process that Enter has
// restarted. Children inherit the variable, but the process id shows that it is not
// theirs.
const entered = "WEIR_ENTERED"

// Enter makes the process act in the network namespace at path; "" is its present one.
// If it is in another one, it joins the namespace and restarts itself with the same
// arguments, so that all its threads are in it. Enter returns nil in the restarted process.
// In the old one it returns only if it fails.
func Enter(path string) error {
	own := fmt.Sprint(os.Getpid())
	if path == "" || os.Getenv(entered) == own || isOwn(path) {
		return nil
	}
	runtime.LockOSThread() // never unlocked: the thread ends in exec, or is in the wrong namespace
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("join network namespace: %w", err)
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("join network namespace %s: %w", path, err)
	}
	if err := os.Setenv(entered, own); err != nil {
		return fmt.Errorf("join network namespace %s: %w", path, err)
	}
	err = unix.Exec("/proc/self/exe", os.Args, os.Environ())
	return fmt.Errorf("start anew in network namespace %s: %w", path, err)
}

// isOwn reports whether the network namespace at path is that of this process.
func isOwn(path string) bool {
	there, err := os.Stat(path)
	if err != nil {
		return false
	}
	here, err := os.Stat("/proc/thread-self/ns/net")
	return err == nil && os.SameFile(here, there)
}
