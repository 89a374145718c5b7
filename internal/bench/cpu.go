package bench

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// ticksPerSecond is the unit of /proc/stat, USER_HZ.
const ticksPerSecond = 100

// coreTime is how a core has spent its time since the machine started, in
// seconds.
type coreTime struct {
	idle    float64 // idle, or waiting for a disk
	foreign float64 // on programs in user mode, or stolen by the hypervisor
}

// readCores adds up the times of some cores. The generator works in the
// kernel only, so time in user mode is another program's.
func readCores(cores []int) (coreTime, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return coreTime{}, fmt.Errorf("read the cores' times: %w", err)
	}
	return sumCores(string(b), cores)
}

func sumCores(stat string, cores []int) (sum coreTime, err error) {
	found := 0
	for line := range strings.Lines(stat) {
		fields := strings.Fields(line)
		if len(fields) < 9 || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		core, err := strconv.Atoi(fields[0][3:])
		if err != nil || !slices.Contains(cores, core) {
			continue
		}
		found++
		// user nice system idle iowait irq softirq steal
		sum.foreign += ticks(fields[1]) + ticks(fields[2]) + ticks(fields[8])
		sum.idle += ticks(fields[4]) + ticks(fields[5])
	}
	if found != len(cores) {
		return sum, fmt.Errorf("read the cores' times: %d of %d cores found", found, len(cores))
	}
	return sum, nil
}

func ticks(field string) float64 {
	n, err := strconv.ParseUint(field, 10, 64)
	if err != nil {
		return 0
	}
	return float64(n) / ticksPerSecond
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
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read a process's time: %w", err)
	}
	_, rest, _ := strings.Cut(string(b), ") ") // its name may have blanks
	fields := strings.Fields(rest)             // from the third, its state, on
	if len(fields) < 13 {
		return 0, fmt.Errorf("read the time of process %d: %q has %d fields", pid, rest, len(fields))
	}
	return ticks(fields[11]) + ticks(fields[12]), nil // utime stime
}
