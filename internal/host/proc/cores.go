package proc

import (
	"errors"
	"fmt"
	"math"

	"github.com/prometheus/procfs"
)

// TicksPerSecond is USER_HZ, the unit of /proc/stat: 100 on every architecture that weir
// is built for.
const TicksPerSecond = 100

// Times is how a core has spent its time since boot, in ticks (proc_stat(5)). User
// includes guests.
type Times struct {
	User, Nice, System, Idle, IOWait, IRQ, Softirq, Steal uint64
}

// Total returns the sum of all times.
func (t Times) Total() uint64 {
	return t.User + t.Nice + t.System + t.Idle + t.IOWait + t.IRQ + t.Softirq + t.Steal
}

// Plus adds two times.
func (t Times) Plus(o Times) Times { return t.with(o, func(a, b uint64) uint64 { return a + b }) }

// Minus returns the time since an earlier reading. It is never below 0: the kernel
// sometimes corrects idle time backwards.
func (t Times) Minus(o Times) Times {
	return t.with(o, func(a, b uint64) uint64 { return a - min(a, b) })
}

func (t Times) with(o Times, f func(a, b uint64) uint64) Times {
	return Times{f(t.User, o.User), f(t.Nice, o.Nice), f(t.System, o.System), f(t.Idle, o.Idle),
		f(t.IOWait, o.IOWait), f(t.IRQ, o.IRQ), f(t.Softirq, o.Softirq), f(t.Steal, o.Steal)}
}

// Cores reads the times of every core, by core.
func Cores(root string) (map[int]Times, error) {
	s, err := stat(root)
	if err != nil {
		return nil, err
	}
	if len(s.CPU) == 0 {
		return nil, errors.New("read the cores' times: no core in /proc/stat")
	}
	cores := map[int]Times{}
	for id, c := range s.CPU {
		cores[int(id)] = newTimes(c)
	}
	return cores, nil
}

// AllCores reads the sum over the cores.
func AllCores(root string) (Times, error) {
	s, err := stat(root)
	return newTimes(s.CPUTotal), err
}

func stat(root string) (s procfs.Stat, err error) {
	fs, err := procfs.NewFS(root)
	if err == nil {
		s, err = fs.Stat()
	}
	if err != nil {
		return s, fmt.Errorf("read the cores' times: %w", err)
	}
	return s, nil
}

// newTimes converts the library's seconds back to the kernel's ticks.
func newTimes(c procfs.CPUStat) Times {
	ticks := func(seconds float64) uint64 { return uint64(math.Round(seconds * TicksPerSecond)) }
	return Times{ticks(c.User), ticks(c.Nice), ticks(c.System), ticks(c.Idle), ticks(c.Iowait), ticks(c.IRQ), ticks(c.SoftIRQ), ticks(c.Steal)}
}

// Softnet reads the packet queue of every core, by core.
func Softnet(root string) (map[int]procfs.SoftnetStat, error) {
	fs, err := procfs.NewFS(root)
	if err != nil {
		return nil, fmt.Errorf("read the receive queues: %w", err)
	}
	all, err := fs.NetSoftnetStat()
	if err != nil {
		return nil, fmt.Errorf("read the receive queues: %w", err)
	}
	queues := map[int]procfs.SoftnetStat{}
	for _, q := range all {
		queues[int(q.Index)] = q
	}
	return queues, nil
}

// Process returns the ticks that all threads of a process have used, and the core that
// its main thread ran on last. For a thread's id, it returns those of the thread.
func Process(root string, pid int) (ticks uint64, core int, err error) {
	fs, err := procfs.NewFS(root)
	if err != nil {
		return 0, 0, err
	}
	p, err := fs.Proc(pid)
	if err != nil {
		return 0, 0, fmt.Errorf("read the time of process %d: %w", pid, err)
	}
	s, err := p.Stat()
	if err != nil {
		return 0, 0, fmt.Errorf("read the time of process %d: %w", pid, err)
	}
	return uint64(s.UTime) + uint64(s.STime), int(s.Processor), nil
}
