package traffic

import (
	"errors"
	"fmt"

	"weir/internal/bench/cpu"
	"weir/internal/fw/bpfload"
)

// faults are the texts for enum fault of bpf/check.bpf.c.
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

// ErrWrongFrames means that frames did not arrive as the path should forward them.
var ErrWrongFrames = errors.New("frames did not arrive as they should")

// checkSink checks frames at their far end.
type checkSink struct {
	sink
	findings []checkFinding
}

// newCheckSink attaches a checker for the frames of one step, the turn-th of their
// connection.
func newCheckSink(w *Setup, s Frame, turn int) (*checkSink, error) {
	k, err := newChecker(w, s, turn)
	if err != nil {
		return nil, err
	}
	return k, k.attach(w.Testbed, w.end(s.back), bpfload.XDP, "check")
}

func newChecker(w *Setup, s Frame, turn int) (*checkSink, error) {
	spec, err := w.arrival(s.back, s.seg, s.length)
	if err != nil {
		return nil, err
	}
	header := spec.expected(w.arrivalTTL())
	if w.Normalises && !spec.ipv6 {
		header[spec.link()+6] = 0
	}
	objects, err := load("the checker", loadCheck, bpfload.Options{
		Maps:    map[string]*bpfload.Map{"answers": w.answers},
		Entries: map[string]uint32{"findings": cpu.Possible(), "answers": uint32(w.Case.Flows)},
		Values: map[string]any{
			"header": words(header), "compared": words(spec.compared()), "header_len": uint32(len(header)),
			"frame_len": uint32(spec.length), "tag_len": uint32(spec.tagLen()), "ethertype": spec.ethertype(),
			"ipv6": flag(spec.ipv6), "tcp": flag(spec.tcp != nil), "back": flag(s.back),
			"translated": flag(w.Translates), "router_addr": low32(w.router()),
			"source_net": low32(w.sources()), "target_net": low32(w.targets(false)), "flows": uint32(w.Case.Flows),
			"turn": uint8(turn), "in_order": flag(w.Case.Pattern == Ordered),
		},
	})
	if err != nil {
		return nil, err
	}
	k := &checkSink{}
	k.sink, k.findings, err = newSink[checkFinding](objects, "findings")
	return k, err
}

// verdict returns the number of flows seen, or an error that says what was wrong.
func (k *checkSink) verdict() (flows uint64, err error) {
	for i := range k.findings {
		f := &k.findings[i]
		flows += f.Flows
		for fault, frames := range f.Frames {
			if fault > 0 && frames > 0 && err == nil {
				err = fmt.Errorf("%w: %d of them: %s (the first wrong one: fault %d, %x)", ErrWrongFrames,
					frames, faults[fault], f.ShownFault, frameBytes(f.Shown[:]))
			}
		}
	}
	return flows, err
}
