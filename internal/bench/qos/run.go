package qos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/bench/iperf"
	"weir/internal/bench/progress"
	"weir/internal/bench/report"
	"weir/internal/bench/testbed"
	"weir/internal/host/hostinfo"
	"weir/internal/lab"
	"weir/internal/stats"
)

// emulated is in the name of a CPU that is a program.
const emulated = "QEMU TCG"

// task is a scene on a path, which every round does once.
type task struct {
	scene    *scene
	path     string
	control  bool
	outcomes []*outcome
}

// bench is one run of the benchmark.
type bench struct {
	options  *Options
	bed      *testbed.Testbed
	net      *network
	tool     *iperf.Tool
	progress *progress.Progress
	tasks    []*task
	missed   map[string]string // why paths cannot be had
	leaf     map[string]string // what holds the packets of a path
	skipped  []report.Skip
}

// tasks returns all tasks of the options, but those of missing paths: each scene on its
// paths, and the first one, on weir's path if it has it, once more as a control.
func (o *Options) tasks(missing map[string]string) (all []*task) {
	for _, s := range o.scenes() {
		for _, path := range s.paths {
			if missing[path] == "" {
				all = append(all, &task{scene: s, path: path})
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	first := all[0]
	for _, t := range all {
		if t.scene == first.scene && t.path == PathWeir {
			first = t
		}
	}
	return append(all, &task{scene: first.scene, path: first.path, control: true})
}

// Run measures. With an error it also returns what was measured until then.
func Run(ctx context.Context, o Options) (d *report.Document, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	b := &bench{options: &o, missed: map[string]string{}, leaf: map[string]string{}}
	started := time.Now().UTC().Truncate(time.Second)
	about, err := hostinfo.Describe()
	if err != nil {
		return nil, err
	}
	if b.tool, err = iperf.Find(ctx); err != nil {
		return nil, err
	}
	err = b.measure(ctx)
	if !slices.ContainsFunc(b.tasks, func(t *task) bool { return len(t.outcomes) > 0 }) {
		return nil, err
	}
	d = b.document()
	d.Started, d.Machine = started, about
	if strings.Contains(about.CPU, emulated) {
		d.Notes = append(d.Notes, "This machine is emulated: what queues do and how fairly they share means something, speed and delay do not.")
	}
	return d, err
}

func (b *bench) measure(ctx context.Context) (err error) {
	offloads := lab.OffloadsOff
	if b.options.Hook == "tcx" {
		offloads = lab.OffloadsOn
	}
	b.bed, err = testbed.Open(ctx, testbed.Options{Name: b.options.name, Offloads: offloads, Program: b.options.Program})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.bed.Close()) }()
	scenes := b.options.scenes()
	if b.net, err = newNetwork(b.bed, rtts(scenes)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.net.close()) }()
	b.leaveOut(ctx)
	b.tasks = b.options.tasks(b.missed)
	if len(b.tasks) == 0 {
		return errors.New("nothing is left to measure: the chosen cases are not for the chosen paths")
	}
	b.progress = progress.New(b.options.Progress, len(b.tasks)*b.options.Runs, b.options.Estimate())
	defer b.progress.End()
	for round, t := range stats.Interleave(b.options.Runs, b.tasks) {
		b.progress.Step("%s, %s: %s, round %d", t.scene.of, t.scene.name, t.path, round+1)
		found, err := b.on(ctx, t)
		if err != nil {
			return fmt.Errorf("%s, %s, path %s: %w", t.scene.of, t.scene.name, t.path, err)
		}
		t.outcomes = append(t.outcomes, found)
		b.progress.Done(1)
	}
	return nil
}

// on starts a path, measures a scene on it, and stops it.
func (b *bench) on(ctx context.Context, t *task) (found *outcome, err error) {
	if err := b.net.setECN(t.scene.ecn); err != nil {
		return nil, err
	}
	stop, err := b.startPath(ctx, t.path, t.scene)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return b.load(ctx, t)
}

func (b *bench) skip(what, why string) {
	b.skipped = append(b.skipped, report.Skip{What: what, Reason: why})
}
