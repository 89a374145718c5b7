package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/fw/bpfload"
	"weir/internal/units"
)

// faults are texts for enum fault of bpf/check.bpf.c.
var faults = [...]string{
	1: "its length is wrong",
	2: "a field of its headers is not what it has to be (MAC addresses, TTL, lengths, TCP fields)",
	3: "it is of no flow that was sent",
	4: "its address or port at the far end is wrong",
	5: "its address at the near end is wrong, or not translated as it should be",
	6: "its port at the near end is wrong",
	7: "its IPv4 header checksum does not hold",
	8: "its UDP or TCP checksum does not hold",
}

// errWrongFrames is wrapped where a path did something else to frames than it
// is measured for.
var errWrongFrames = errors.New("frames did not arrive as they should")

// passes is how often missing flows are sent again: a router may lose a frame
// of a connection that it does not know yet.
const passes = 3

// checkSink is the examiner at the end of the way.
type checkSink struct {
	objects  *bpfload.Objects
	link     *bpfload.Link
	memory   *bpfload.Memory
	findings []checkFinding
}

// newCheckSink attaches an examiner of the frames of one step, the turn-th of
// their connection.
func newCheckSink(w *way, s step, turn int, answers *bpfload.Map) (*checkSink, error) {
	k, err := newExaminer(w, s, turn, answers)
	if err != nil {
		return nil, err
	}
	if k.link, err = w.net.attach(w.end(s.back), bpfload.XDP, k.objects.Programs["check"]); err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

func newExaminer(w *way, s step, turn int, answers *bpfload.Map) (*checkSink, error) {
	spec, err := w.arrival(s.back, s.seg, s.length)
	if err != nil {
		return nil, err
	}
	object, err := loadCheck()
	if err != nil {
		return nil, fmt.Errorf("read the examiner: %w", err)
	}
	header := spec.expected(w.arrivalTTL())
	objects, err := bpfload.Load([]*bpfload.Spec{object}, bpfload.Options{
		Maps:    map[string]*bpfload.Map{"answers": answers},
		Entries: map[string]uint32{"findings": possibleCores(), "answers": uint32(w.c.Flows)},
		Values: map[string]any{
			"header": words(header), "compared": words(spec.compared()), "header_len": uint32(len(header)),
			"frame_len": uint32(s.length), "ethertype": spec.ethertype(),
			"ipv6": flag(spec.ipv6), "tcp": flag(spec.tcp != nil), "back": flag(s.back),
			"translated": flag(w.path.translates), "router_addr": low32(w.router()),
			"source_net": low32(w.sources()), "target_net": low32(w.targets()), "flows": uint32(w.c.Flows),
			"turn": uint8(turn),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("load the examiner: %w", err)
	}
	k := &checkSink{objects: objects}
	if k.memory, err = bpfload.MapMemory(objects.Maps["findings"]); err != nil {
		return nil, errors.Join(err, k.close())
	}
	if k.findings, err = bpfload.Values[checkFinding](k.memory); err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

func (k *checkSink) close() error {
	var errs []error
	if k.link != nil {
		errs = append(errs, detach(k.link))
	}
	if k.memory != nil {
		errs = append(errs, k.memory.Close())
	}
	return errors.Join(append(errs, k.objects.Close())...)
}

// verdict is how many flows were seen; the error says what was wrong.
func (k *checkSink) verdict() (flows uint64, err error) {
	for i := range k.findings {
		f := &k.findings[i]
		flows += f.Flows
		for fault, frames := range f.Frames {
			if fault > 0 && frames > 0 && err == nil {
				err = fmt.Errorf("%w: %d of them: %s (the first wrong one: fault %d, %x)", errWrongFrames,
					frames, faults[fault], f.ShownFault, frameBytes(f.Shown[:]))
			}
		}
	}
	return flows, err
}

// open sends the opening frames of all flows and checks each that arrives.
func (r *run) open(ctx context.Context) error {
	for i, s := range r.way.opening() {
		if err := r.openStep(ctx, s, i+1); err != nil {
			return fmt.Errorf("frame %d of the connections' beginning: %w", i+1, err)
		}
	}
	return nil
}

func (r *run) openStep(ctx context.Context, s step, turn int) error {
	sink, err := newCheckSink(r.way, s, turn, r.answers)
	if err != nil {
		return err
	}
	defer sink.close()
	var flows uint64
	for range passes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.sendOnce(s, flowRange{0, uint32(r.way.c.Flows), 1}); err != nil {
			return err
		}
		if flows, err = r.settle(sink); err != nil {
			return err
		}
		if flows == uint64(r.way.c.Flows) {
			return nil
		}
	}
	return fmt.Errorf("%w: after %d tries %s of %s flows came through", errWrongFrames, passes,
		units.Thousands(int(flows)), units.Thousands(r.way.c.Flows))
}

// settle waits until no more frames arrive; they may wait in a queue.
func (r *run) settle(sink *checkSink) (flows uint64, err error) {
	for range 20 {
		flows, err = sink.verdict()
		if err != nil || flows == uint64(r.way.c.Flows) {
			return flows, err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return flows, err
}

// sendOnce sends one frame of each flow.
func (r *run) sendOnce(s step, flows flowRange) error {
	parts := flows.split(len(r.cores))
	gs := make([]*generator, 0, len(parts))
	defer func() { closeAll(gs) }()
	frames := make([]uint32, len(parts))
	for i, part := range parts {
		g, err := newGenerator(r.way, s, part, r.cores[i], uint64(part.count), r.answers)
		if err != nil {
			return err
		}
		gs = append(gs, g)
		frames[i] = part.count
	}
	return runAll(gs, frames)
}

func closeAll(gs []*generator) {
	for _, g := range gs {
		g.close()
	}
}
