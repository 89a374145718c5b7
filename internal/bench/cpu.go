package bench

import (
	"fmt"

	"weir/internal/host/proc"
)

// coreTime is how a core has spent its time since the machine started, in
// seconds.
type coreTime struct {
	idle    float64 // idle, or waiting for a disk
	foreign float64 // on programs in user mode, or stolen by the hypervisor
}

// readCores adds up the times of some cores. The generator works in the
// kernel only, so time in user mode is another program's.
func readCores(cores []int) (coreTime, error) {
	all, err := proc.Cores("/proc")
	if err != nil {
		return coreTime{}, err
	}
	return sumCores(all, cores)
}

func sumCores(all map[int]proc.Times, cores []int) (sum coreTime, err error) {
	for _, core := range cores {
		t, found := all[core]
		if !found {
			return sum, fmt.Errorf("read the cores' times: core %d is not found", core)
		}
		sum.foreign += float64(t.User+t.Nice+t.Steal) / proc.TicksPerSecond
		sum.idle += float64(t.Idle+t.IOWait) / proc.TicksPerSecond
	}
	return sum, nil
}

// disturbed is the share of a run's time that its n cores were idle or worked for
// others. A run's setting up and taking down is idle by itself, on each core: what the
// run took beyond the time in which one of them was seen to work does not count.
func disturbed(before, after coreTime, took, worked float64, n int) float64 {
	if worked <= 0 {
		return 1
	}
	cores := float64(n)
	idle := max(0, after.idle-before.idle-(took-worked)*cores)
	return (idle + after.foreign - before.foreign) / (worked * cores)
}

// busy is the share of a time span in which n cores were not idle.
func busy(before, after coreTime, took float64, n int) float64 {
	if n == 0 || took <= 0 {
		return 0
	}
	return min(max(1-(after.idle-before.idle)/(took*float64(n)), 0), 1)
}

// processTime is the time that all threads of a process have had, in seconds.
func processTime(pid int) (seconds float64, err error) {
	ticks, _, err := proc.Process("/proc", pid)
	return float64(ticks) / proc.TicksPerSecond, err
}
