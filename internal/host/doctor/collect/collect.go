package collect

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/host/doctor"
	"weir/internal/host/netif"
	"weir/internal/host/proc"
)

// Options control what is read.
type Options struct {
	Interval time.Duration // time between the two samples; at least 100 ms
	Program  string        // the reading program, with its version
	// Watch makes programs in the kernel count between the samples.
	Watch bool
	// GuardTable is weir's own nftables table ("inet weir"). It does not count as
	// another firewall's.
	GuardTable string
	// Hooks returns the hook where weir evaluates each interface's packets, or an
	// error that says why it is unknown. It is called only if weir runs.
	Hooks func() ([]doctor.WeirInterface, error)
	// MarkMask returns the bits of the mark that weir uses; 0 if they are unknown. It is
	// called only if weir runs.
	MarkMask func() (uint32, error)
	// NATPorts returns the port ranges that weir's rules translate sources to. It is
	// called only if weir runs.
	NATPorts func() ([]doctor.PortRange, error)
	// Sessions returns the PPPoE interfaces of weir. It is called only if weir runs.
	Sessions func() ([]doctor.WeirSession, error)
	// Queues returns what the queues of weir's rules have counted. It is called for each
	// sample, if weir runs.
	Queues func() ([]doctor.WeirQueue, error)
	// VPN returns what the tunnels of weir vpn run have carried. It is called for each
	// sample, whether weir runs or not; nil: there are none.
	VPN func() ([]doctor.VPNCount, error)
}

// reader reads one host. Its roots are "/proc", "/sys" and "/"; tests use others.
type reader struct {
	proc, sys, root string
	// net is the class/net directory of the process's network namespace. The mounted
	// /sys shows the namespace in which it was mounted.
	net      string
	softirqs map[int]int            // process ids of ksoftirqd, by core
	threads  map[string]map[int]int // process ids of receiving threads, by interface and queue
	below    map[string]string      // names that a card's interrupts may carry (0000:01:00.0 or vif-0), by interface
	opts     Options
	devices  *devices
	weir     *weir  // nil: weir does not run, or is not readable
	watch    *watch // nil: the kernel did not accept the programs
	snapshot *doctor.Snapshot
}

// Collect reads the facts and two samples of counters. If ctx ends between the samples,
// Collect returns early with ctx's error.
func Collect(ctx context.Context, o Options) (*doctor.Snapshot, error) {
	r := &reader{proc: "/proc", sys: "/sys", root: "/", net: "/sys", threads: map[string]map[int]int{}, below: map[string]string{}, opts: o, snapshot: &doctor.Snapshot{
		Format: doctor.Format, Version: doctor.Version, Program: o.Program, Taken: time.Now().UTC().Truncate(time.Second),
		Wished: o.Interval.Seconds(), Unreadable: map[string]string{},
	}}
	var err error
	if r.devices, err = openDevices(); err != nil {
		return nil, err
	}
	defer r.devices.close()
	if fd, folder, err := netif.Sysfs(); err == nil {
		defer unix.Close(fd)
		r.net = folder
	} // otherwise r.files notes that the mounted one is another namespace's
	if r.weir, err = openWeir(); err != nil {
		r.lacks("weir", err)
	}
	defer r.weir.close()
	return r.snapshot, r.read(ctx)
}

func (r *reader) read(ctx context.Context) (err error) {
	s := r.snapshot
	began := spent()
	if r.opts.Watch {
		if r.watch, err = openWatch(); err != nil {
			r.lacks("watched", err)
		}
		defer func() { err = errors.Join(err, r.watch.close()) }()
	}
	if err := r.receivers(); err != nil {
		return err
	}
	if r.watch != nil {
		if err := r.watch.start(r.opts.Interval); err != nil {
			return err
		}
	}
	first := time.Now()
	before, err := r.counters()
	if err != nil {
		return err
	}
	if err := r.facts(); err != nil {
		return err
	}
	rest := time.NewTimer(r.opts.Interval - time.Since(first))
	defer rest.Stop()
	select {
	case <-ctx.Done():
	case <-rest.C:
	}
	if err := ctx.Err(); err != nil { // also if reading the facts took longer than the interval
		return err
	}
	second := time.Now()
	after, err := r.counters()
	if err != nil {
		return err
	}
	r.watched()
	r.nameSockets(dropping(before.Sockets, after.Sockets))
	r.natUses(after)
	r.placeThreads()
	s.Before, s.After, s.Seconds = before, after, second.Sub(first).Seconds()
	s.Cost = &doctor.Cost{CPUSeconds: (spent() - began).Seconds()}
	return nil
}

// spent returns the processor time that this process has used.
func spent() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0 // cannot fail for RUSAGE_SELF
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func (r *reader) facts() error {
	r.host()
	r.namespace()
	if err := r.interfaces(); err != nil {
		return err
	}
	r.tunnels()
	r.interrupts()
	r.sysctls()
	r.unknownLines()
	r.services()
	r.chains()
	r.routes()
	r.markRules()
	r.policies()
	r.hooks()
	r.log()
	return nil
}

// lacks notes why something is not in the snapshot.
func (r *reader) lacks(what string, err error) { r.snapshot.Unreadable[what] = err.Error() }

func (r *reader) sysFile(parts ...string) string {
	return filepath.Join(append([]string{r.sys}, parts...)...)
}

func (r *reader) rootFile(parts ...string) string {
	return filepath.Join(append([]string{r.root}, parts...)...)
}

func (r *reader) procFile(parts ...string) string {
	return filepath.Join(append([]string{r.proc}, parts...)...)
}

// watched reads the counts of the programs in the kernel.
func (r *reader) watched() {
	if r.watch == nil {
		return
	}
	names := map[int]string{}
	links, err := netif.Links()
	for i := range links {
		names[links[i].Index] = links[i].Name
	}
	if err == nil {
		r.snapshot.Watched, err = r.watch.read(names)
	}
	if err != nil {
		r.lacks("watched", err)
	}
}

// counters reads one sample. Without the cores' times, nothing can be judged.
func (r *reader) counters() (*doctor.Counters, error) {
	times, err := proc.Cores(r.proc)
	if err != nil {
		return nil, err
	}
	c := &doctor.Counters{CPUs: map[int]doctor.CPUTimes{}}
	for id, t := range times {
		c.CPUs[id] = doctor.CPUTimes(t)
	}
	for what, read := range map[string]func() error{
		"softirqs": func() (err error) { c.Softirqs, err = proc.NetSoftirqs(r.proc); return err },
		"softnet":  func() error { return r.softnet(c) },
		"irqs":     func() (err error) { c.IRQs, _, err = proc.Interrupts(r.proc); return err },
		"snmp":     func() error { return r.snmp(c) },
	} {
		if err := read(); err != nil {
			r.lacks(what, err)
		}
	}
	r.conntrack(c)
	r.neighbours(c)
	r.destinations(c)
	r.nfqueues(c)
	r.sockets(c)
	r.tcpSockets(c)
	r.busErrors(c)
	c.Throttle = r.throttle()
	c.Threads = r.threadTimes()
	r.waits(c)
	if err := r.devices.count(r, c); err != nil {
		return nil, err
	}
	if c.Weir, err = r.weir.count(); err != nil {
		r.lacks("weir", err)
	}
	if c.Weir != nil && r.opts.Queues != nil {
		if c.Weir.Queues, err = r.opts.Queues(); err != nil {
			r.lacks("weir.queues", err)
		}
	}
	if r.opts.VPN != nil {
		if c.VPN, err = r.opts.VPN(); err != nil {
			r.lacks("vpn", err)
		}
	}
	return c, nil
}
