package lab

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// spreadQueues gives each core its own transmit queue (XPS). Without it, several cores
// fight for one ring of the pair. It runs in the device's namespace. Core i uses queue i
// modulo queues.
func spreadQueues(device string, queues int) error {
	sysfs, err := openSysfs()
	if err != nil {
		return err
	}
	defer unix.Close(sysfs)
	if queues == 1 {
		return nil // with one queue the kernel has no such file
	}
	cores := runtime.NumCPU()
	for q := range queues {
		name := fmt.Sprintf("class/net/%s/queues/tx-%d/xps_cpus", device, q)
		if err := writeAt(sysfs, name, cpuMask(q, queues, cores)); err != nil {
			return fmt.Errorf("give queue %d of %s its core: %w", q, device, err)
		}
	}
	return nil
}

// openSysfs opens a sysfs of the calling thread's network namespace. It is mounted
// nowhere and vanishes with the file.
func openSysfs() (int, error) {
	fs, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open sysfs of the namespace: %w", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("make sysfs of the namespace: %w", err)
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("mount sysfs of the namespace: %w", err)
	}
	return mount, nil
}

func writeAt(dir int, name, value string) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if _, err := f.WriteString(value); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// cpuMask returns the cores that use queue q in the kernel's form: groups of 32 bits in
// hex, highest first.
func cpuMask(q, queues, cores int) string {
	groups := make([]uint32, (cores+31)/32)
	for core := q; core < cores; core += queues {
		groups[core/32] |= 1 << (core % 32)
	}
	mask := ""
	for i := len(groups) - 1; i >= 0; i-- {
		mask += fmt.Sprintf("%08x", groups[i])
		if i > 0 {
			mask += ","
		}
	}
	return mask
}
