package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"weir/internal/host/filelock"
	"weir/internal/host/netif"
)

// netnsDir is where ip netns keeps its names.
const netnsDir = "/run/netns"

// quiet are the sysctls that keep a fresh namespace from sending by itself, from
// inheriting the machine's forwarding, and from waiting for duplicate address detection.
// Addresses in a lab are fixed.
var quiet = []struct{ name, value string }{
	{"net/ipv4/conf/all/forwarding", "0"},
	{"net/ipv4/conf/default/forwarding", "0"},
	{"net/ipv4/conf/all/rp_filter", "0"},
	{"net/ipv4/conf/default/rp_filter", "0"},
	{"net/ipv6/conf/all/forwarding", "0"},
	{"net/ipv6/conf/default/accept_dad", "0"},
	{"net/ipv6/conf/default/dad_transmits", "0"},
	{"net/ipv6/conf/default/accept_ra", "0"},
	{"net/ipv6/conf/default/router_solicitations", "0"},
}

// makeNamespace makes the namespace of a host if it does not exist.
func (l *Lab) makeNamespace(host string) error {
	name := l.Namespace(host)
	ns, err := l.open(host)
	if err == nil {
		ns.Close()
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Remove(filepath.Join(netnsDir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a name without a namespace: %w", err)
	}
	if err := shareNames(); err != nil {
		return err
	}
	return spoilThread(func() error {
		ns, err := netns.NewNamed(name)
		if err != nil {
			return fmt.Errorf("make network namespace %s: %w", name, err)
		}
		defer ns.Close()
		return initialize(name)
	})
}

// shareNames makes the folder of names a shared mount, as ip netns add does before its
// first name. Otherwise a later mount of the folder would cover names that are already
// there, and they could not be removed. It uses ip's lock.
func shareNames() error {
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		return fmt.Errorf("make the folder of namespaces' names: %w", err)
	}
	lock, err := filelock.Folder(netnsDir, filelock.Wait)
	if err != nil {
		return fmt.Errorf("share the folder of namespaces' names: %w", err)
	}
	defer lock.Close()
	share := func() error { return unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, "") }
	err = share()
	if errors.Is(err, unix.EINVAL) { // not a mount yet
		err = unix.Mount(netnsDir, netnsDir, "none", unix.MS_BIND|unix.MS_REC, "")
		if err == nil {
			err = share()
		}
	}
	if err != nil {
		return fmt.Errorf("make %s a shared mount: %w", netnsDir, err)
	}
	return nil
}

// initialize sets up a namespace that the calling thread has just made.
func initialize(name string) error {
	for _, s := range quiet {
		if err := netif.SetSysctl(s.name, s.value); err != nil {
			return fmt.Errorf("network namespace %s: %w", name, err)
		}
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("network namespace %s: find lo: %w", name, err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("network namespace %s: set lo up: %w", name, err)
	}
	return nil
}

// removeNamespace removes a host's wires and then its name, and reports whether the name
// existed. It also removes a name without a namespace, which a killed process may leave.
func (l *Lab) removeNamespace(host string) (bool, error) {
	path := filepath.Join(netnsDir, l.Namespace(host))
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err := l.cutWires(host); err != nil {
		return true, err
	}
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		return true, fmt.Errorf("unmount network namespace %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return true, fmt.Errorf("remove network namespace: %w", err)
	}
	return true, nil
}

// cutWires deletes the veth devices of a host.
func (l *Lab) cutWires(host string) error {
	h, err := l.handle(host)
	if err != nil {
		return nil // a name without a namespace: nothing to cut
	}
	defer h.Close()
	links, err := h.LinkList()
	if err != nil {
		return fmt.Errorf("list devices of %s: %w", l.Namespace(host), err)
	}
	for _, link := range links {
		if link.Type() != "veth" {
			continue
		}
		// Its peer may have taken it along.
		if err := h.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("delete %s in %s: %w", link.Attrs().Name, l.Namespace(host), err)
		}
	}
	return nil
}

// open opens the namespace of a host. The error is fs.ErrNotExist if there is no name, or
// nothing is mounted on it.
func (l *Lab) open(host string) (netns.NsHandle, error) {
	path := filepath.Join(netnsDir, l.Namespace(host))
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return netns.None(), fmt.Errorf("find network namespace %s: %w", path, err)
	}
	if stat.Type != unix.NSFS_MAGIC {
		return netns.None(), fmt.Errorf("find network namespace %s: nothing is mounted there: %w", path, fs.ErrNotExist)
	}
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return netns.None(), fmt.Errorf("open network namespace %s: %w", path, err)
	}
	return ns, nil
}

// handle returns a netlink socket in the namespace of a host.
func (l *Lab) handle(host string) (*netlink.Handle, error) {
	ns, err := l.open(host)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink in %s: %w", l.Namespace(host), err)
	}
	return h, nil
}

// Do runs f on a thread of its own in the network namespace of a host. A program that f
// starts runs there too. With Pdeathsig it would die with the thread, when f returns.
func (l *Lab) Do(host string, f func() error) error {
	ns, err := l.open(host)
	if err != nil {
		return err
	}
	defer ns.Close()
	return spoilThread(func() error {
		if err := netns.Set(ns); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", l.Namespace(host), err)
		}
		return f()
	})
}

// spoilThread runs f on a thread that ends afterwards, so f may leave the thread in
// another namespace.
func spoilThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the runtime ends the thread
		done <- f()
	}()
	return <-done
}
