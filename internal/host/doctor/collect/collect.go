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

// Options say how to read.
type Options struct {
	Interval time.Duration // between the two samples; at least 100 ms
	Program  string        // that reads, with its version
	// Watch has programs count in the kernel between the samples.
	Watch bool
	// GuardTable is weir's own table of nftables ("inet weir"), which is no other
	// firewall's.
	GuardTable string
	// Hooks says at which hook weir judges each interface's packets; an error says
	// why that is not known. It is asked only where weir runs.
	Hooks func() ([]doctor.WeirInterface, error)
	// NATPorts says which ranges of ports weir's rules translate sources to, likewise.
	NATPorts func() ([]doctor.PortRange, error)
}

// reader reads one host. Its roots are "/proc", "/sys" and "/", others in tests.
type reader struct {
	proc, sys, root string
	// net is where class/net of the process's network namespace lies: the mounted
	// sys shows the namespace that it was mounted in.
	net      string
	threads  map[string]map[int]int // that receive: process ids by interface and queue
	below    map[string]string      // devices below cards, 0000:01:00.0 or vif-0, after which interrupts may be named; by interface
	opts     Options
	devices  *devices
	weir     *weir  // nil: it does not run, or is not readable
	watch    *watch // nil: the kernel has not taken its programs
	snapshot *doctor.Snapshot
}

// Collect reads the facts and two samples of counters. It returns early, with
// ctx's error, when ctx ends between them.
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
	} // else r.files says where the mounted one is another's
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
	if err := ctx.Err(); err != nil { // also where the facts took longer than the interval
		return err
	}
	second := time.Now()
	after, err := r.counters()
	if err != nil {
		return err
	}
	r.watched()
	r.natUses(after)
	r.placeThreads()
	s.Before, s.After, s.Seconds = before, after, second.Sub(first).Seconds()
	s.Cost = &doctor.Cost{CPUSeconds: (spent() - began).Seconds()}
	return nil
}

// spent is the processor time that this process has used.
func spent() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0 // cannot fail for RUSAGE_SELF
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func (r *reader) facts() error {
	r.host()
	if err := r.interfaces(); err != nil {
		return err
	}
	r.interrupts()
	r.sysctls()
	r.unknownLines()
	r.services()
	r.chains()
	r.routes()
	r.hooks()
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

// watched reads what was counted in the kernel.
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

// counters reads one sample. The cores' times are what nothing can do without.
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
	c.Throttle = r.throttle()
	c.Threads = r.threadTimes()
	if err := r.devices.count(r, c); err != nil {
		return nil, err
	}
	if c.Weir, err = r.weir.count(); err != nil {
		r.lacks("weir", err)
	}
	return c, nil
}
