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
	"weir/internal/missing"
)

// Options choose the testbed.
type Options struct {
	Name     string       // name of namespaces and folder; "": the default
	Topology lab.Topology // zero: [lab.Gateway]; others include its hosts and wires
	Offloads lab.Offloads // offloads at the start; see [Testbed.SetOffloads]
	Program  string       // the weir to measure; "": the running one
	// LowestFirst uses cores from the lowest on, because the number of a veth's queue
	// is that of the sending core.
	LowestFirst bool
}

// Testbed is the machine and the lab on it in which benchmarks measure. It holds the lock
// that keeps two benchmarks from disturbing each other.
type Testbed struct {
	Lab       *lab.Lab // closed by the testbed
	Program   string   // the weir to measure
	Cores     []int    // usable cores in the order of use
	Conntrack conntrackLimits
	name      string // prefix of the namespaces
	Folder    string // notes for the next run, if this one is killed
	Indexes   map[Place]int
	offloads  lab.Offloads
	options   Options // of the first lab, for others beside it
	beside    bool    // it is one of these
	unlock    func() error
}

// Open takes the lock, removes what a killed benchmark left, and builds the lab. If the
// machine lacks something, the error is a [missing.Error].
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

// Lock keeps other benchmarks from measuring this machine at the same time. It also
// removes what a killed one left: processes, namespaces and settings. It is for
// benchmarks without a lab, and needs root.
func Lock() (unlock func() error, err error) {
	b, err := lockTestbed(Options{})
	if err != nil {
		return nil, err
	}
	return b.unlock, nil
}

// lockTestbed returns a testbed without its lab.
func lockTestbed(o Options) (*Testbed, error) {
	if unix.Geteuid() != 0 {
		return nil, missing.Errorf("a benchmark needs root: it builds network namespaces and loads BPF programs")
	}
	cores, err := cpu.Available()
	if err != nil {
		return nil, err
	}
	if o.LowestFirst {
		slices.Sort(cores)
	}
	b := &Testbed{Program: o.Program, name: o.Name, Cores: cores, Conntrack: machineConntrack(), offloads: o.Offloads, options: o, Indexes: map[Place]int{}}
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
	if err := b.cleanUpBeside(); err != nil {
		return err
	}
	if err := stopLeftover(b, b.Firewall()); err != nil {
		return err
	}
	_, err := lab.Remove(b.name, everyHost())
	return err
}

// Close removes the lab and releases the lock.
func (b *Testbed) Close() error {
	_, err := lab.Remove(b.name, everyHost())
	if err != nil && b.beside {
		return err // its folder tells the next run that it is there
	}
	return errors.Join(err, b.unlock())
}

// SetOffloads changes the offloads of both ends of the wires. No path may be in place.
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
