package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"weir/internal/host/proc"
	"weir/internal/lab"
)

// StageOptions say what a benchmark with programs of its own needs of the lab.
type StageOptions struct {
	Name     string       // of namespaces and folder; "": the default
	Topology lab.Topology // zero: [lab.Gateway]; others have its hosts and wires too
	Offloads lab.Offloads // at first; see [Stage.SetOffloads]
	Program  string       // the weir to measure; "": the one that runs
	Progress io.Writer    // hears what is going on; nil: nobody
	// LowestFirst has cores used from the lowest on: a veth's queue has the number of
	// the core that sends.
	LowestFirst bool
}

// Stage is a lab in which the paths of this package can be started for the
// traffic of somebody else: of real programs, or of another generator. It holds
// the lock that keeps two benchmarks from measuring each other.
type Stage struct {
	setting  *setting
	unlock   func() error
	missing  map[string]string
	offloads lab.Offloads
}

// PathOptions say how a path is started.
type PathOptions struct {
	Hook string // of weir: xdp or tcx
	// States is how many connections it has to hold, 0: as many as the examples say.
	States int
	// GRO lets frames enter by generic receive offload at the firewall, which
	// joins those of one connection before the kernel routes them.
	GRO bool
}

// OpenStage takes the lock, removes what a killed benchmark left, and builds
// the lab. An error of a machine that lacks something has MissingCapability.
func OpenStage(ctx context.Context, o StageOptions) (*Stage, error) {
	if unix.Geteuid() != 0 {
		return nil, &missingError{"a benchmark needs root: it builds network namespaces and loads BPF programs"}
	}
	options := &Options{name: o.Name, Program: o.Program, Progress: o.Progress}
	if options.name == "" {
		options.name = defaultName
	}
	s, err := newSetting(options)
	if err != nil {
		return nil, err
	}
	if o.LowestFirst {
		slices.Sort(s.cores)
	}
	t := &Stage{setting: s, missing: map[string]string{}, offloads: o.Offloads}
	if t.unlock, err = lock(s.dir); err != nil {
		return nil, err
	}
	if err := t.build(ctx, o); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *Stage) build(ctx context.Context, o StageOptions) (err error) {
	if err := t.setting.cleanUp(); err != nil {
		return err
	}
	t.setting.net, err = newNetworkOf(ctx, lab.Options{
		Name: t.setting.options.name, Topology: o.Topology, Offloads: o.Offloads, Neighbours: true,
	})
	if err != nil {
		return fmt.Errorf("build the benchmark's network: %w", err)
	}
	if why := nftMissing(ctx, t.setting.net); why != "" {
		t.missing[PathNft], t.missing[PathNftNAT] = why, why
	}
	return nil
}

// Close removes the lab and lets the next benchmark run.
func (t *Stage) Close() error {
	var err error
	if n := t.setting.net; n != nil {
		_, err = lab.Remove(t.setting.options.name, everyHost())
	}
	return errors.Join(err, t.unlock())
}

// Lab is the network. It is the stage's to close.
func (t *Stage) Lab() *lab.Lab { return t.setting.net.lab }

// Missing says why a path cannot run on this machine; "" if it can.
func (t *Stage) Missing(path string) string { return t.missing[path] }

// Folder is a folder for files of the benchmark; it goes when the stage closes.
func (t *Stage) Folder() string { return filepath.Clean(t.setting.dir) }

// SetOffloads changes what the ends of the wires leave undone. No path may be
// started.
func (t *Stage) SetOffloads(o lab.Offloads) error {
	if o == t.offloads {
		return nil
	}
	if err := t.Lab().SetOffloads(o); err != nil {
		return err
	}
	t.offloads = o
	return nil
}

// StartPath starts a path that carries the traffic of sockets – all but
// generator and redirect – and gives what stops it.
func (t *Stage) StartPath(ctx context.Context, name string, o PathOptions) (stop func() error, err error) {
	p, err := newPath(name, o.Hook)
	if err != nil {
		return nil, err
	}
	var undo undoList
	w := &way{net: t.setting.net, path: p, c: Case{Flows: o.States, Family: 4, Protocol: TCP}}
	if o.GRO {
		err = enterGRO(w, &undo)
	}
	if err == nil {
		err = t.start(ctx, w, &undo)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), undo.run())
	}
	return undo.run, nil
}

func (t *Stage) start(ctx context.Context, w *way, undo *undoList) error {
	switch w.path.name {
	case PathKernel:
		return forward(w, undo)
	case PathNft, PathNftNAT:
		if err := forward(w, undo); err != nil {
			return err
		}
		return startNft(ctx, t.setting, w, undo)
	case PathWeir, PathWeirNAT:
		stop, err := startDaemon(ctx, t.setting, w)
		if err == nil {
			undo.add(stop)
		}
		return err
	}
	return fmt.Errorf("path %s does not carry the traffic of sockets", w.path.name)
}

// InterruptTime is what the cores have spent on interrupts and on what follows
// them, forwarding among it, since the machine started: seconds of all cores
// together. Programs that run besides do not add to it as they do to the rest.
func InterruptTime() (float64, error) {
	t, err := proc.AllCores("/proc")
	return float64(t.IRQ+t.Softirq) / proc.TicksPerSecond, err
}
