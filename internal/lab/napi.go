package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"weir/internal/host/cpulist"
	"weir/internal/host/netif"
	"weir/internal/host/proc"
)

// OwnCore makes the kernel receive the frames of a device on one core, in threads of
// their own that are bound to it. Otherwise the core that sends a veth's frames also
// receives them, and can never send more than it receives. It lasts until
// [Lab.SharedCore]. Call it again if an XDP program or receive offload has changed the
// device's receivers. With first, the threads have priority over all programs; see
// [GoFirst].
func (l *Lab) OwnCore(host, device string, core int, first bool) error {
	if err := proc.KernelThreads("/proc"); err != nil {
		return fmt.Errorf("the benchmark binds the thread that receives for %s: %w", device, err)
	}
	if err := l.SharedCore(host, device); err != nil {
		return err
	}
	before, err := receivers(device)
	if err != nil {
		return err
	}
	if err := l.setThreaded(host, device, "1"); err != nil {
		return err
	}
	after, err := receivers(device)
	if err != nil {
		return err
	}
	own := slices.DeleteFunc(after, func(pid int) bool { return slices.Contains(before, pid) })
	if len(own) == 0 {
		return fmt.Errorf("%s in %s has no receivers of its own: neither an XDP program nor receive offload is on, or they had threads before",
			device, l.Namespace(host))
	}
	for _, pid := range own {
		if err := bind(pid, core); err != nil {
			return fmt.Errorf("the receiver of %s in %s: %w", device, l.Namespace(host), err)
		}
		if first {
			GoFirst(pid, First+1)
		}
	}
	return nil
}

// SharedCore undoes [Lab.OwnCore].
func (l *Lab) SharedCore(host, device string) error { return l.setThreaded(host, device, "0") }

func (l *Lab) setThreaded(host, device, value string) error {
	return l.Do(host, func() error {
		fd, sysfs, err := netif.Sysfs()
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := os.WriteFile(filepath.Join(sysfs, "class/net", device, "threaded"), []byte(value), 0); err != nil {
			return fmt.Errorf("give %s in %s threads to receive: %w", device, l.Namespace(host), err)
		}
		return nil
	})
}

// receivers returns the kernel threads that receive for devices of a name, in all
// namespaces: a thread's name says no more.
func receivers(device string) (pids []int, err error) {
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	for _, name := range names {
		comm, err := os.ReadFile(name)
		if err != nil || !strings.HasPrefix(string(comm), "napi/"+device+"-") {
			continue // another thread, or one that has just ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

func bind(pid, core int) error {
	if err := cpulist.Bind(pid, core); err != nil {
		return fmt.Errorf("bind thread %d to core %d: %w", pid, core, err)
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, pid, -20); err != nil {
		return fmt.Errorf("give thread %d priority: %w", pid, err)
	}
	return nil
}

// First is the lowest priority of [GoFirst]. Receivers have the next one.
const First = 1

// GoFirst gives a thread (0: the calling one), and threads that it starts later,
// real-time priority over other programs and over threads of a lower priority, for up to
// 950 of 1,000 ms, if that is allowed. If it is not, the thread gets the best nice value,
// which counts within one session only if the kernel groups sessions.
func GoFirst(thread int, priority uint32) {
	_ = unix.SchedSetAttr(thread, &unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: priority}, 0)
}
