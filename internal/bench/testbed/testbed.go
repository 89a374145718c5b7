package testbed

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"weir/internal/bench/cpu"
	"weir/internal/lab"
)

// Options say what a benchmark needs of its testbed.
type Options struct {
	Name     string       // of namespaces and folder; "": the default
	Topology lab.Topology // zero: [lab.Gateway]; others have its hosts and wires too
	Offloads lab.Offloads // at first; see [Testbed.SetOffloads]
	Program  string       // the weir to measure; "": the one that runs
	// LowestFirst has cores used from the lowest on: a veth's queue has the number of
	// the core that sends.
	LowestFirst bool
}

// Testbed is the machine and the lab on it that benchmarks measure in. It holds
// the lock that keeps two benchmarks from measuring each other.
type Testbed struct {
	Lab       *lab.Lab // the testbed's to close
	Program   string   // the weir to measure
	Cores     []int    // that may be used, in the order of use
	Conntrack conntrackLimits
	name      string // of namespaces
	Folder    string // what a run needs to know of one that was killed
	Indexes   map[Place]int
	offloads  lab.Offloads
	unlock    func() error
}

// Open takes the lock, removes what a killed benchmark left, and builds
// the lab. An error of a machine that lacks something has MissingCapability.
func Open(ctx context.Context, o Options) (*Testbed, error) {
	b, err := lockTestbed(o)
	if err != nil {
		return nil, err
	}
	if err := b.build(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("build the benchmark's network: %w", err), b.Close())
	}
	return b, nil
}

// Lock keeps other benchmarks from measuring this machine at the same time, and
// removes what a killed one left: its processes, its namespaces, its settings.
// It is for benchmarks without a lab. It needs root.
func Lock() (unlock func() error, err error) {
	b, err := lockTestbed(Options{})
	if err != nil {
		return nil, err
	}
	return b.unlock, nil
}

// lockTestbed makes a testbed without its lab.
func lockTestbed(o Options) (*Testbed, error) {
	if unix.Geteuid() != 0 {
		return nil, &MissingError{What: "a benchmark needs root: it builds network namespaces and loads BPF programs"}
	}
	cores, err := cpu.Available()
	if err != nil {
		return nil, err
	}
	if o.LowestFirst {
		slices.Sort(cores)
	}
	b := &Testbed{Program: o.Program, name: o.Name, Cores: cores, Conntrack: machineConntrack(), offloads: o.Offloads, Indexes: map[Place]int{}}
	if b.Program == "" {
		b.Program = "/proc/self/exe"
	}
	if b.name == "" {
		b.name = defaultName
	}
	b.Folder = filepath.Join("/run", b.name)
	if b.unlock, err = lock(b.Folder); err != nil {
		return nil, err
	}
	if err := b.cleanUp(); err != nil {
		return nil, errors.Join(fmt.Errorf("remove what an earlier run left in %s: %w", b.Folder, err), b.unlock())
	}
	return b, nil
}

// cleanUp removes what a killed benchmark left behind.
func (b *Testbed) cleanUp() error {
	if err := b.Conntrack.restore(b.Folder); err != nil {
		return err
	}
	if err := stopLeftover(b, b.Firewall()); err != nil {
		return err
	}
	_, err := lab.Remove(b.name, everyHost())
	return err
}

// Close removes the lab and lets the next benchmark run.
func (b *Testbed) Close() error {
	_, err := lab.Remove(b.name, everyHost())
	return errors.Join(err, b.unlock())
}

// SetOffloads changes the offloads of the ends of the wires. No path may be in place.
func (b *Testbed) SetOffloads(o lab.Offloads) error {
	if o == b.offloads {
		return nil
	}
	if err := b.Lab.SetOffloads(o); err != nil {
		return err
	}
	b.offloads = o
	return nil
}

// MissingError names a capability that the machine lacks.
type MissingError struct{ What string }

func (e *MissingError) Error() string { return e.What }

// MissingCapability tells the command line which exit status this is.
func (e *MissingError) MissingCapability() bool { return true }
