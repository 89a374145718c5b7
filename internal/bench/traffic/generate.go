package traffic

import (
	"errors"
	"fmt"
	"maps"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/host/cpulist"
	"weir/internal/lab"
)

// FlowRange is a number of flows from First on, the step through them, and the pattern of
// their frames ("" or [Ordered]: step by step).
type FlowRange struct {
	First, Count, Step uint32
	Pattern            string
}

// Split divides the flows among n generators.
func (r FlowRange) Split(n int) []FlowRange {
	parts := make([]FlowRange, 0, n)
	for i := range uint32(n) {
		from, to := r.Count*i/uint32(n), r.Count*(i+1)/uint32(n)
		if from < to {
			parts = append(parts, FlowRange{r.First + from, to - from, r.Step, r.Pattern})
		}
	}
	return parts
}

// growth is how many bytes of a frame generators make room for with [Setup.Grows].
const growth = 8

// Generator sends frames of some flows from one core.
type Generator struct {
	setup   *Setup
	Back    bool
	Core    int
	Flows   uint32 // that it sends
	objects *bpfload.Objects
	frame   []byte
	batch   uint32 // frames that leave together; 0: the kernel decides
	First   bool   // its thread has priority over all programs; see [lab.GoFirst]
}

// NewGenerator loads a generator. It ends by itself after limit frames, or, if that is 0,
// when its run ends.
func NewGenerator(w *Setup, s Frame, flows FlowRange, core int, limit uint64) (*Generator, error) {
	return NewPacedGenerator(w, s, flows, core, limit, Pacing{})
}

// NewPacedGenerator loads a generator that sends at a rate, or with stamps.
func NewPacedGenerator(w *Setup, s Frame, flows FlowRange, core int, limit uint64, pace Pacing) (*Generator, error) {
	spec, err := w.spec(s.back, s.seg, s.length)
	if err != nil {
		return nil, err
	}
	header := spec.header(hops)
	ip, l4 := spec.sums()
	values := map[string]any{
		"header": words(header), "header_len": uint32(len(header)),
		"ipv6": flag(spec.ipv6), "tcp": flag(spec.tcp != nil), "back": flag(s.back), "numbered": flag(w.Numbered),
		"ip_sum": ip, "l4_sum": l4,
		"source_net": low32(w.sources()), "target_net": low32(w.targets(false)),
		"tag_len":    uint32(spec.tagLen()),
		"in_order":   flag(w.Case.Pattern == Ordered),
		"first_flow": flows.First, "flows": flows.Count, "step": flows.Step, "limit": limit,
	}
	grows := 0
	if w.Grows {
		grows = growth
	}
	values["grows"] = uint32(grows)
	if spec.tcp != nil {
		values["sequence"] = spec.tcp.sequence
		values["sequence_step"] = uint32(spec.length - spec.headerLen())
	}
	pace.addTo(values, spec)
	pattern, order := flows.patternValues(spec)
	maps.Copy(values, pattern)
	objects, err := load("the generator", loadGenerate, bpfload.Options{
		Maps:    map[string]*bpfload.Map{"answers": w.answers},
		Entries: map[string]uint32{"answers": uint32(w.Case.Flows), "order": order},
		Values:  values,
	})
	if err != nil {
		return nil, err
	}
	if order > 1 {
		if err := flows.fillOrder(objects.Maps["order"]); err != nil {
			return nil, errors.Join(err, objects.Close())
		}
	}
	frame := make([]byte, spec.length)
	copy(frame, header)
	frame = frame[grows:]
	return &Generator{setup: w, Back: s.back, Core: core, Flows: flows.Count, objects: objects, frame: frame, batch: pace.Burst}, nil
}

// Run sends n frames as fast as possible, or fewer if the generator has a limit.
func (g *Generator) Run(n uint32) error {
	begin := g.setup.begin(g.Back)
	return g.setup.Testbed.Lab.Do(begin.Host, func() error {
		if err := own(g.Core); err != nil {
			return err
		}
		if g.First {
			lab.GoFirst(0, lab.First)
		}
		return bpfload.RunLive(g.objects.Programs["generate"], g.frame, g.setup.Testbed.Indexes[begin], n, g.batch)
	})
}

// Close unloads its program.
func (g *Generator) Close() error { return g.objects.Close() }

// own gives the calling thread a core as far as possible: no other core, priority over
// other programs, and no signals, because the kernel would restart the run after each
// signal. The thread ends after its run.
func own(core int) error {
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil); err != nil {
		return fmt.Errorf("keep signals from the generator: %w", err)
	}
	if err := cpulist.Bind(0, core); err != nil {
		return fmt.Errorf("bind the generator to core %d: %w", core, err)
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -20); err != nil {
		return fmt.Errorf("give the generator priority: %w", err)
	}
	return nil
}

// RunAll runs generators at the same time. runs has the number of frames for each.
func RunAll(gs []*Generator, runs []uint32) error {
	var all errgroup.Group
	for i, g := range gs {
		all.Go(func() error { return g.Run(runs[i]) })
	}
	return all.Wait()
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// CloseAll closes generators.
func CloseAll(gs []*Generator) {
	for _, g := range gs {
		g.Close()
	}
}
