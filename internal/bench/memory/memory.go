package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"weir/internal/bench/cpu"
	"weir/internal/bench/option"
	"weir/internal/bench/report"
	"weir/internal/fw/bpfload"
	"weir/internal/host/cpulist"
	"weir/internal/host/hostinfo"
	"weir/internal/stats"
	"weir/internal/units"
)

// Options choose the sizes.
type Options struct {
	Sizes    []int // MiB
	Runs     int
	Command  string
	Progress io.Writer
}

// Defaults range from what fits a core's own caches to the states of 2.5 million
// connections.
func Defaults() Options {
	return Options{Sizes: []int{1, 8, 32, 160, 320, 640}, Runs: 7}
}

const (
	placeBytes = 256 // size of struct slot in bpf/memory.bpf.c, and of struct state
	// A run makes as many touches as there are entries, within these limits.
	leastTouches = 1 << 20
	mostTouches  = 1 << 23 // limit of bpf_loop
	maxMemory    = 4096    // MiB
)

// Check returns the first error in the options.
func (o *Options) Check() error {
	for i, mib := range o.Sizes {
		if i > 0 && mib <= o.Sizes[i-1] {
			return fmt.Errorf("--mib %d: want sizes in rising order", mib)
		}
	}
	return errors.Join(option.Within("--mib", 1, maxMemory, o.Sizes...), option.Runs(o.Runs))
}

// Report is the cost of a touch of memory.
type Report struct {
	Command string
	Started time.Time
	Machine hostinfo.Machine
	Rows    []Row
	Control stats.Control
}

// Row is the cost in an array of one size.
type Row struct {
	MiB    int
	States int          // number of weir's states that fit
	NS     stats.Sample // time of one touch
}

// array is an array in the kernel.
type array struct {
	mib     int
	objects *bpfload.Objects
	at      uint32
	ns      stats.Sample
}

// Run measures one random touch that waits for the one before, in arrays of several
// sizes. The largest is measured twice, as if it were two.
func Run(ctx context.Context, o Options) (r *Report, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	m, err := hostinfo.Describe()
	if err != nil {
		return nil, err
	}
	r = &Report{Command: o.Command, Started: time.Now().UTC().Truncate(time.Second), Machine: m, Control: stats.NewControl()}
	var arrays []*array
	defer func() {
		for _, a := range arrays {
			err = errors.Join(err, a.objects.Close())
		}
	}()
	for _, mib := range o.Sizes {
		a, err := newArray(mib)
		if err != nil {
			return nil, err
		}
		arrays = append(arrays, a)
	}
	last := arrays[len(arrays)-1]
	control := &array{mib: last.mib, objects: last.objects}
	measured := make(chan error, 1)
	go func() { measured <- measure(ctx, o, append(arrays[:len(arrays):len(arrays)], control)) }()
	if err := <-measured; err != nil {
		return nil, err
	}
	for _, a := range arrays {
		r.Rows = append(r.Rows, Row{a.mib, a.mib << 20 / placeBytes, a.ns})
	}
	r.Control.Add(fmt.Sprintf("%d MiB", last.mib), last.ns, control.ns)
	return r, nil
}

func newArray(mib int) (*array, error) {
	object, err := loadMemory()
	if err != nil {
		return nil, fmt.Errorf("read the program that touches memory: %w", err)
	}
	places := uint32(mib << 20 / placeBytes)
	objects, err := bpfload.Load([]*bpfload.Spec{object}, bpfload.Options{
		Entries: map[string]uint32{"places": places}, Values: map[string]any{"place_count": places},
	})
	if err != nil {
		return nil, fmt.Errorf("make an array of %d MiB: %w", mib, err)
	}
	return &array{mib: mib, objects: objects}, nil
}

// measure measures the arrays in turn, on one core, in a goroutine of its own.
func measure(ctx context.Context, o Options, arrays []*array) error {
	runtime.LockOSThread() // the thread is bound to a core, and ends with the goroutine
	cores, err := cpu.Available()
	if err != nil {
		return err
	}
	if err := cpulist.Bind(0, cores[0]); err != nil {
		return fmt.Errorf("bind the measuring to core %d: %w", cores[0], err)
	}
	for _, a := range arrays { // warms up pages and caches
		if _, err := a.touch(mostTouches); err != nil {
			return err
		}
	}
	for round, a := range stats.Interleave(o.Runs, arrays) {
		if err := ctx.Err(); err != nil {
			return err
		}
		ns, err := a.touch(max(leastTouches, min(mostTouches, uint32(a.mib<<20/placeBytes))))
		if err != nil {
			return err
		}
		a.ns = append(a.ns, ns)
		if o.Progress != nil {
			fmt.Fprintf(o.Progress, "round %d of %d: %d MiB: %.0f ns\n", round+1, o.Runs, a.mib, ns)
		}
	}
	return nil
}

// touch makes n touches, starting where the last ones ended, and returns the time of one
// in ns.
func (a *array) touch(n uint32) (float64, error) {
	request := memoryRequest{Touches: n, Start: a.at}
	wrong, err := bpfload.RunSyscall(a.objects.Programs["touches"], &request)
	if err != nil {
		return 0, fmt.Errorf("touch %d MiB: %w", a.mib, err)
	}
	if wrong != 0 {
		return 0, fmt.Errorf("touch %d MiB: not all of %d touches were made", a.mib, n)
	}
	a.at = uint32(request.At)
	return float64(request.Ns) / float64(n), nil
}

// Document returns the report as a document.
func (r *Report) Document() *report.Document {
	table := report.Table{Columns: []report.Column{{Name: "array", Unit: "MiB"}, {Name: "states of weir that fit"},
		{Name: "one touch", Unit: "ns"}, {Name: "smallest – largest run", Unit: "ns"}}}
	line := report.Series{Name: "one touch", Ours: true}
	d := &report.Document{Kind: "memory", Title: "What a random touch of memory costs", Command: r.Command, Started: r.Started,
		Machine: r.Machine, Control: &r.Control, Method: []string{
			"A program in the kernel reads a cache line of an array of 256-byte entries and writes the next line, as a packet does with its state.",
			"The value that it read selects the next entry, so no touch can start before the one before it is done. The order is scattered over the whole array.",
			"The sizes take turns on one core; the largest is measured twice, as if it were two."}}
	for _, row := range r.Rows {
		table.Add(false, units.Thousands(row.MiB), units.Thousands(row.States), report.Figure(row.NS.Median()), report.Span(row.NS))
		line.Points = append(line.Points, report.Point{X: float64(row.MiB), Runs: row.NS})
		d.Measure(report.Lower, "ns", row.NS, fmt.Sprintf("memory: one touch of %d MiB", row.MiB))
	}
	first, last := r.Rows[0], r.Rows[len(r.Rows)-1]
	d.Verdicts = []string{fmt.Sprintf("An unpredictable touch of memory takes %s ns in %s MiB and %s ns in %s MiB.",
		report.Figure(first.NS.Median()), units.Thousands(first.MiB), report.Figure(last.NS.Median()), units.Thousands(last.MiB))}
	d.Sections = []report.Section{{Title: "Cost by size", Tables: []report.Table{table}, Charts: []report.Chart{{
		Title: "One random touch", Curves: &report.Curves{X: report.Axis{Label: "array", Unit: "MiB", Log: true},
			Y: report.Axis{Label: "one touch", Unit: "ns"}, Series: []report.Series{line}}}}}}
	return d
}
