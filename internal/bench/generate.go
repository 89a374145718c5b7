package bench

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/lab"
)

// flowRange are the flows from first on, and the step through them.
type flowRange struct{ first, count, step uint32 }

// split gives each of n generators flows of its own.
func (r flowRange) split(n int) []flowRange {
	parts := make([]flowRange, 0, n)
	for i := range uint32(n) {
		from, to := r.count*i/uint32(n), r.count*(i+1)/uint32(n)
		if from < to {
			parts = append(parts, flowRange{r.first + from, to - from, r.step})
		}
	}
	return parts
}

// generator sends frames of some flows from one core.
type generator struct {
	way     *way
	back    bool
	core    int
	flows   uint32 // that it sends
	objects *bpfload.Objects
	frame   []byte
	batch   uint32 // frames that leave together; 0: as the kernel does it
	first   bool   // its thread goes before all programs; see [lab.GoFirst]
}

// newGenerator loads a generator. It ends by itself after limit frames; 0: when
// its run ends.
func newGenerator(w *way, s step, flows flowRange, core int, limit uint64, answers *bpfload.Map) (*generator, error) {
	return newPacedGenerator(w, s, flows, core, limit, answers, pacing{})
}

// newPacedGenerator loads one that sends at a rate, or with stamps.
func newPacedGenerator(w *way, s step, flows flowRange, core int, limit uint64, answers *bpfload.Map, pace pacing) (*generator, error) {
	spec, err := w.spec(s.back, s.seg, s.length)
	if err != nil {
		return nil, err
	}
	object, err := loadGenerate()
	if err != nil {
		return nil, fmt.Errorf("read the generator: %w", err)
	}
	header := spec.header(hops)
	ip, l4 := spec.sums()
	values := map[string]any{
		"header": words(header), "header_len": uint32(len(header)),
		"ipv6": flag(spec.ipv6), "tcp": flag(spec.tcp != nil), "back": flag(s.back),
		"ip_sum": ip, "l4_sum": l4,
		"source_net": low32(w.sources()), "target_net": low32(w.targets()),
		"first_flow": flows.first, "flows": flows.count, "step": flows.step, "limit": limit,
	}
	if spec.tcp != nil {
		values["sequence"] = spec.tcp.sequence
		values["sequence_step"] = uint32(spec.length - spec.headerLen())
	}
	pace.addTo(values, spec)
	objects, err := bpfload.Load([]*bpfload.Spec{object}, bpfload.Options{
		Maps:    map[string]*bpfload.Map{"answers": answers},
		Entries: map[string]uint32{"answers": uint32(w.c.Flows)},
		Values:  values,
	})
	if err != nil {
		return nil, fmt.Errorf("load the generator: %w", err)
	}
	frame := make([]byte, s.length)
	copy(frame, header)
	return &generator{way: w, back: s.back, core: core, flows: flows.count, objects: objects, frame: frame, batch: pace.burst}, nil
}

// run sends n frames, fewer if the generator has a limit, as fast as they go.
func (g *generator) run(n uint32) error {
	begin := g.way.begin(g.back)
	return g.way.net.lab.Do(begin.host, func() error {
		if err := own(g.core); err != nil {
			return err
		}
		if g.first {
			lab.GoFirst(0, lab.First)
		}
		return bpfload.RunLive(g.objects.Programs["generate"], g.frame, g.way.net.indexes[begin], n, g.batch)
	})
}

func (g *generator) close() error { return g.objects.Close() }

// own gives the calling thread, which ends after its run, a core as far as that
// can be done: no other core, priority over other programs, and no signals,
// after each of which the kernel would begin the run anew.
func own(core int) error {
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil); err != nil {
		return fmt.Errorf("keep signals from the generator: %w", err)
	}
	var set unix.CPUSet
	set.Set(core)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("bind the generator to core %d: %w", core, err)
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -20); err != nil {
		return fmt.Errorf("give the generator priority: %w", err)
	}
	return nil
}

// runAll runs generators at the same time, each as many frames as runs says.
func runAll(gs []*generator, runs []uint32) error {
	errs := make(chan error, len(gs))
	for i, g := range gs {
		go func() { errs <- g.run(runs[i]) }()
	}
	var first error
	for range gs {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// availableCores are the cores that this process may use, the last first: the
// first one serves most interrupts.
func availableCores() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("ask which cores may be used: %w", err)
	}
	var cores []int
	for core := len(set)*64 - 1; core >= 0; core-- {
		if set.IsSet(core) {
			cores = append(cores, core)
		}
	}
	return cores[:min(len(cores), runtime.NumCPU())], nil
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
