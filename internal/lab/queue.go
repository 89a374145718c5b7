package lab

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"weir/internal/host/cpulist"
	"weir/internal/host/netif"
)

// spreadQueues gives each core its own transmit queue (XPS). Without it, several cores
// fight for one ring of the pair. It runs in the device's namespace. Core i uses queue i
// modulo queues.
func spreadQueues(device string, queues int) error {
	if queues == 1 {
		return nil // with one queue the kernel has no such file
	}
	fd, sysfs, err := netif.Sysfs()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for q := range queues {
		var cores []int
		for core := q; core < runtime.NumCPU(); core += queues {
			cores = append(cores, core)
		}
		name := fmt.Sprintf("%s/class/net/%s/queues/tx-%d/xps_cpus", sysfs, device, q)
		if err := os.WriteFile(name, []byte(cpulist.FormatMask(cores)), 0); err != nil {
			return fmt.Errorf("give queue %d of %s its core: %w", q, device, err)
		}
	}
	return nil
}
