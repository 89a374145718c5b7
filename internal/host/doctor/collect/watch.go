package collect

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/host/doctor"
)

// watch holds the programs that count in the kernel while doctor waits. The cost of
// reading them depends only on the number of cores and interfaces.
type watch struct {
	objects *bpfload.Objects
	links   []*bpfload.Link
	span    time.Duration
}

// vectors are the softirqs in the order of their numbers (linux/interrupt.h).
var vectors = [...]string{"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"}

// openWatch loads and attaches the programs. They count from start on.
func openWatch() (*watch, error) {
	spec, err := loadWatch()
	if err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	w := new(watch)
	if w.objects, err = bpfload.Load([]*bpfload.Spec{spec}, bpfload.Options{}); err != nil {
		return nil, err
	}
	for _, name := range []string{watchProgNapiPolled, watchProgSoftirqBegins, watchProgSoftirqEnds} {
		l, err := bpfload.AttachTrace(w.objects.Programs[name])
		if err != nil {
			return nil, errors.Join(err, w.close())
		}
		w.links = append(w.links, l)
	}
	return w, nil
}

// close accepts a nil watch.
func (w *watch) close() error {
	if w == nil {
		return nil
	}
	var faults []error
	for _, l := range w.links {
		faults = append(faults, l.Close())
	}
	return errors.Join(append(faults, w.objects.Close())...)
}

// start makes the programs count for a span from now on.
func (w *watch) start(span time.Duration) error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	w.span = span
	return w.objects.Maps[watchMapUntil].Put(uint32(0), uint64(now.Nano()+span.Nanoseconds()))
}

// read returns what they counted. names are the interfaces' names by index.
func (w *watch) read(names map[int]string) (*doctor.Watched, error) {
	own, err := netnsInode()
	if err != nil {
		return nil, err
	}
	n, err := bpfload.CPUs()
	if err != nil {
		return nil, err
	}
	cores := make([]watchCore, n)
	if err := w.objects.Maps[watchMapCores].Lookup(uint32(0), cores); err != nil {
		return nil, fmt.Errorf("read the cores: %w", err)
	}
	found := &doctor.Watched{Seconds: w.span.Seconds(), Cores: map[int]doctor.CoreWatch{}}
	for id := range cores {
		c := &cores[id]
		if c.Runs == 0 {
			continue // never online, or always idle
		}
		found.Runs += c.Runs
		found.OwnSeconds += nanoseconds(c.Own)
		spent := map[string]float64{}
		for vector, ns := range c.Spent {
			if ns > 0 {
				spent[vectors[vector]] = nanoseconds(ns)
			}
		}
		found.Cores[id] = doctor.CoreWatch{Softirqs: spent, Received: map[string]doctor.Polled{}}
	}
	polled := make([]watchPolled, n)
	var from watchDevice
	all := w.objects.Maps[watchMapReceived].Iterate()
	for all.Next(&from, polled) {
		name := "other namespaces"
		switch {
		case from.Ifindex == 0:
			name = "backlog"
		case from.Netns == own && names[int(from.Ifindex)] != "":
			name = names[int(from.Ifindex)]
		case from.Netns == own:
			name = "interface " + strconv.Itoa(int(from.Ifindex)) // removed by now
		}
		for id, p := range polled {
			if by := found.Cores[id].Received; p.Polls > 0 && by != nil {
				by[name] = doctor.Polled{Polls: by[name].Polls + p.Polls, Packets: by[name].Packets + p.Packets}
			}
		}
	}
	if err := all.Err(); err != nil {
		return nil, fmt.Errorf("read what was received: %w", err)
	}
	return found, nil
}

// netnsInode returns the inode of the calling thread's network namespace.
func netnsInode() (uint32, error) {
	var s unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &s); err != nil {
		return 0, fmt.Errorf("tell the network namespace: %w", err)
	}
	return uint32(s.Ino), nil
}

func nanoseconds(n uint64) float64 { return time.Duration(n).Seconds() }
