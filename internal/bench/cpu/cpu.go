package cpu

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/host/cpulist"
	"weir/internal/host/proc"
)

// Time is how a core has spent its time since boot, in seconds.
type Time struct {
	Idle    float64 // idle, or waiting for a disk
	Foreign float64 // programs in user mode, or stolen by the hypervisor
}

// Read adds up the times of some cores. The generator works only in the kernel, so time
// in user mode belongs to other programs.
func Read(cores []int) (Time, error) {
	all, err := proc.Cores("/proc")
	if err != nil {
		return Time{}, err
	}
	return sum(all, cores)
}

func sum(all map[int]proc.Times, cores []int) (sum Time, err error) {
	for _, core := range cores {
		t, found := all[core]
		if !found {
			return sum, fmt.Errorf("read the cores' times: core %d is not found", core)
		}
		sum.Foreign += float64(t.User+t.Nice+t.Steal) / proc.TicksPerSecond
		sum.Idle += float64(t.Idle+t.IOWait) / proc.TicksPerSecond
	}
	return sum, nil
}

// Disturbed returns the share of a run's time in which its n cores were idle or worked
// for others. Each core is idle while a run is set up and taken down. So the part of the
// run in which none of them was seen to work does not count.
func Disturbed(before, after Time, took, worked float64, n int) float64 {
	if worked <= 0 {
		return 1
	}
	cores := float64(n)
	idle := max(0, after.Idle-before.Idle-(took-worked)*cores)
	return (idle + after.Foreign - before.Foreign) / (worked * cores)
}

// Busy returns the share of a time span in which n cores were not idle.
func Busy(before, after Time, took float64, n int) float64 {
	if n == 0 || took <= 0 {
		return 0
	}
	return min(max(1-(after.Idle-before.Idle)/(took*float64(n)), 0), 1)
}

// ProcessTime returns the CPU time of all threads of a process in seconds.
func ProcessTime(pid int) (seconds float64, err error) {
	ticks, _, err := proc.Process("/proc", pid)
	return float64(ticks) / proc.TicksPerSecond, err
}

// OwnTime returns the time in user mode of all threads of this process, in seconds.
func OwnTime() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil { // it has no other error than a wrong argument
		return 0
	}
	return time.Duration(u.Utime.Nano()).Seconds()
}

// Available returns the cores that this process may use, the last first, because the
// first one serves most interrupts.
func Available() ([]int, error) {
	cores, err := cpulist.OfThread(0)
	if err != nil {
		return nil, fmt.Errorf("ask which cores may be used: %w", err)
	}
	slices.Reverse(cores)
	return cores[:min(len(cores), runtime.NumCPU())], nil
}

// Possible returns the highest possible core number plus one.
func Possible() uint32 {
	list, err := os.ReadFile("/sys/devices/system/cpu/possible")
	cores, failed := cpulist.Parse(string(list))
	if err != nil || failed != nil || len(cores) == 0 {
		return uint32(runtime.NumCPU())
	}
	return uint32(cores[len(cores)-1]) + 1
}

// InterruptTime returns the time that all cores together have spent on interrupts and
// softirqs, forwarding included, since boot, in seconds. Other running programs hardly
// add to it.
func InterruptTime() (float64, error) {
	t, err := proc.AllCores("/proc")
	return float64(t.IRQ+t.Softirq) / proc.TicksPerSecond, err
}
