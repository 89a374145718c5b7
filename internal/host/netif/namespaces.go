package netif

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Cookies returns the cookies of all network namespaces that there are: those that threads are in, that are mounted
// somewhere, and that programs have open whose files may be listed. It fails if it cannot tell one of these.
func Cookies() (map[uint64]bool, error) {
	n := namespaces{cookies: map[uint64]bool{}, seen: map[string]bool{}, mounts: map[string]bool{}, inodes: map[uint64]bool{}, closed: map[string]bool{}, hidden: map[uint64]string{}}
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: a thread that may be in another namespace is nobody else's
		result <- n.findAndReturn()
	}()
	select {
	case err := <-result:
		return n.cookies, err
	case <-time.After(cookiePatience):
		return nil, fmt.Errorf("look for network namespaces: not all were found in %s", cookiePatience)
	}
}

// cookiePatience is how long Cookies looks. Files of containers may answer late, or never.
const cookiePatience = 5 * time.Second

// findAndReturn finds all namespaces, and goes back to the one that it began in: the main thread does not end with its
// goroutine.
func (n *namespaces) findAndReturn() error {
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return fmt.Errorf("look for network namespaces: %w", err)
	}
	defer home.Close()
	err = n.find()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		return fmt.Errorf("return to the own network namespace: %w", back)
	}
	return err
}

// namespaces are those that were found.
type namespaces struct {
	cookies map[uint64]bool
	seen    map[string]bool   // as links to them read
	inodes  map[uint64]bool   // of a file that each has of its own
	mounts  map[string]bool   // namespaces of mounts, likewise
	closed  map[string]bool   // that are mounted and cannot be opened there
	hidden  map[uint64]string // those of threads that may not be looked at, by their inodes
}

// find finds all namespaces. What ends meanwhile is gone.
func (n *namespaces) find() error {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, p := range processes {
		for _, pattern := range []string{"task/*/ns/net", "fd/*"} {
			links, err := filepath.Glob(filepath.Join(p, pattern))
			if err != nil {
				return err
			}
			for _, l := range links {
				if err := n.addLink(l); err != nil {
					return fmt.Errorf("look for network namespaces: %w", err)
				}
			}
		}
		if err := n.addMounts(p); err != nil && !isGone(filepath.Join(p, "mountinfo")) {
			return fmt.Errorf("look for network namespaces: %w", err)
		}
	}
	for inode, thread := range n.hidden {
		if !n.inodes[inode] {
			return fmt.Errorf("look for network namespaces: that of %s may not be looked at", thread)
		}
	}
	for name := range n.closed {
		if !n.seen[name] {
			return fmt.Errorf("look for network namespaces: %s is mounted where it cannot be opened", name)
		}
	}
	return nil
}

// isGone reports whether a file of a process is there no more, as the process has ended.
func isGone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// perNamespace is a file of a thread that each network namespace has of its own. Everybody may look at it.
const perNamespace = "net/dev"

func inodeOf(path string) (uint64, error) {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return 0, fmt.Errorf("look at %s: %w", path, err)
	}
	return s.Ino, nil
}

// addLink adds the namespace that a link leads to, if it is one.
func (n *namespaces) addLink(path string) error {
	name, err := os.Readlink(path)
	if err == nil {
		err = n.add(name, func() (int, error) { return unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0) })
	}
	if err == nil || isGone(path) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) { // a thread that ends has none
		return nil
	}
	thread, ok := strings.CutSuffix(path, "/ns/net")
	if !ok {
		return nil // a file that may not be looked at
	}
	inode, hidden := inodeOf(filepath.Join(thread, perNamespace))
	if hidden != nil {
		if isGone(path) {
			return nil
		}
		return err
	}
	n.hidden[inode] = thread
	return nil
}

// add adds the namespace that a link reads as. find returns it as a file that is not open for reading yet (O_PATH): whoever
// owns the place may have put another file there, such as a FIFO or a device.
func (n *namespaces) add(name string, find func() (fd int, err error)) error {
	if !strings.HasPrefix(name, "net:[") || n.seen[name] {
		return nil
	}
	at, err := find()
	if err != nil {
		return err
	}
	defer unix.Close(at)
	var s unix.Statfs_t
	if err := unix.Fstatfs(at, &s); err != nil {
		return fmt.Errorf("look at %s: %w", name, err)
	}
	if s.Type != unix.NSFS_MAGIC {
		return fmt.Errorf("%s: another file is there now", name)
	}
	var is unix.Stat_t
	if err := unix.Fstat(at, &is); err != nil {
		return fmt.Errorf("look at %s: %w", name, err)
	}
	if name != fmt.Sprintf("net:[%d]", is.Ino) {
		return fmt.Errorf("%s: another namespace is there now", name)
	}
	f, err := os.Open(fmt.Sprintf("/proc/thread-self/fd/%d", at))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("join network namespace %s: %w", name, err)
	}
	cookie, err := Cookie()
	if err != nil {
		return err
	}
	inode, err := inodeOf("/proc/thread-self/" + perNamespace)
	if err != nil {
		return err
	}
	n.cookies[cookie], n.seen[name], n.inodes[inode] = true, true, true
	return nil
}

// addMounts adds the namespaces that are mounted where a process sees them, as ip netns and containers do.
func (n *namespaces) addMounts(process string) error {
	in, err := os.Readlink(filepath.Join(process, "ns/mnt"))
	if err == nil && n.mounts[in] {
		return nil
	}
	f, err := os.Open(filepath.Join(process, "mountinfo"))
	if errors.Is(err, unix.EINVAL) {
		return nil // a process that has ended, and that its parent has not asked for yet
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20) // a mount of many layers has a long line
	for lines.Scan() {       // number, parent, device, root, mount point, …: proc_pid_mountinfo(5)
		words := strings.Fields(lines.Text())
		if len(words) > 4 && strings.HasPrefix(words[3], "net:[") {
			at := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(words[4])
			if n.add(words[3], func() (int, error) { return openBelow(filepath.Join(process, "root"), at) }) != nil {
				n.closed[words[3]] = true // another process may see it
			}
		}
	}
	n.mounts[in] = lines.Err() == nil && in != ""
	return lines.Err()
}

// openBelow finds a file below a folder, which is taken for the root. No link is followed: it could lead anywhere.
func openBelow(root, path string) (fd int, err error) {
	in, err := unix.Open(root, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("look at %s: %w", root, err)
	}
	defer unix.Close(in)
	return unix.Openat2(in, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
}
