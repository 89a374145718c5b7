package cpulist

import "golang.org/x/sys/unix"

// OfThread returns the cores that a thread may run on.
func OfThread(pid int) ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		return nil, err
	}
	var cores []int
	for core := range len(set) * 64 {
		if set.IsSet(core) {
			cores = append(cores, core)
		}
	}
	return cores, nil
}

// Bind makes a thread run only on the given cores.
func Bind(pid int, cores ...int) error {
	var set unix.CPUSet
	for _, core := range cores {
		set.Set(core)
	}
	return unix.SchedSetaffinity(pid, &set)
}
