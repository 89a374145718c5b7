package collect

import (
	"fmt"
	"net"

	"weir/internal/host/cpulist"
	"weir/internal/host/doctor"
	"weir/internal/host/netif"
	"weir/internal/host/proc"
)

// receivers finds the receiving threads before the first sample counts their time. Where
// the kernel's threads are not seen, their numbers are those of other processes.
func (r *reader) receivers() error {
	unseen := proc.KernelThreads(r.proc)
	if unseen != nil {
		r.lacks("threads", unseen)
	} else if err := r.ksoftirqd(); err != nil {
		r.lacks("ksoftirqd", err)
	}
	all, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("list interfaces: %w", err)
	}
	for _, n := range all {
		receivers, err := netif.Receivers(n.Index)
		if err != nil {
			r.lacks("interfaces."+n.Name+".napi", err)
			continue
		}
		for _, one := range receivers {
			if one.PID == 0 || unseen != nil {
				continue
			}
			if r.threads[n.Name] == nil {
				r.threads[n.Name] = map[int]int{}
			}
			r.threads[n.Name][one.Queue] = one.PID
		}
	}
	return nil
}

// napi returns the receivers of an interface; nil if the kernel does not report them.
func (r *reader) napi(name string, index int) (all []doctor.NAPI) {
	receivers, err := netif.Receivers(index)
	if err != nil {
		return nil // receivers noted the error
	}
	for _, one := range receivers {
		n := doctor.NAPI{Queue: one.Queue, IRQ: one.IRQ}
		if pid := r.threads[name][one.Queue]; pid != 0 && pid == one.PID {
			cores, err := cpulist.OfThread(pid)
			if err != nil {
				cores = nil // the thread has ended
			}
			n.Thread = &doctor.Thread{CPUs: cpulist.Format(cores)}
		}
		all = append(all, n)
	}
	return all
}

// threadTimes returns how long each receiving thread has run; nil if there is none.
func (r *reader) threadTimes() map[string]map[int]uint64 {
	if len(r.threads) == 0 {
		return nil
	}
	all := map[string]map[int]uint64{}
	for name, queues := range r.threads {
		all[name] = map[int]uint64{}
		for queue, pid := range queues {
			if ticks, _, err := proc.Process(r.proc, pid); err == nil {
				all[name][queue] = ticks
			}
		}
	}
	return all
}

// placeThreads sets the core that each thread ran on last. It drops threads that have
// ended.
func (r *reader) placeThreads() {
	for i := range r.snapshot.Interfaces {
		n := &r.snapshot.Interfaces[i]
		for k := range n.NAPI {
			t := n.NAPI[k].Thread
			if t == nil {
				continue
			}
			_, cpu, err := proc.Process(r.proc, r.threads[n.Name][n.NAPI[k].Queue])
			if err != nil || t.CPUs == "" {
				n.NAPI[k].Thread = nil
				continue
			}
			t.CPU = cpu
		}
	}
}

func (r *reader) ksoftirqd() error {
	cores, err := proc.Cores(r.proc)
	if err != nil {
		return err
	}
	r.softirqs, err = proc.Ksoftirqd(r.proc, len(cores))
	return err
}

// waits reads how long each core's ksoftirqd has waited for it.
func (r *reader) waits(c *doctor.Counters) {
	for core, pid := range r.softirqs {
		ns, turns, err := proc.Waits(r.proc, pid)
		if err != nil {
			r.lacks("ksoftirqd", err) // a kernel without SCHED_INFO, or the core was taken off
			continue
		}
		if c.Ksoftirqd == nil {
			c.Ksoftirqd = map[int]doctor.Waits{}
		}
		c.Ksoftirqd[core] = doctor.Waits{Nanoseconds: ns, Turns: turns}
	}
}
