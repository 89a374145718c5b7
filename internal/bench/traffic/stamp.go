package traffic

import (
	"weir/internal/bench/cpu"
	"weir/internal/fw/bpfload"
)

// StampSink reads the stamps of frames at their far end.
type StampSink struct {
	sink
	cores []measureSeen
}

// NewStampSink attaches a reader for the stamps of frames from the near end.
func NewStampSink(w *Setup) (*StampSink, error) {
	kind := &frameSpec{ipv6: w.Case.IPv6(), tcp: w.data(false)}
	objects, err := load("the measuring program", loadMeasure, bpfload.Options{
		Entries: map[string]uint32{"arrivals": cpu.Possible()},
		Values: map[string]any{"ethertype": kind.ethertype(), "protocol": kind.protocol(),
			"stamp_at": uint32(kind.headerLen())},
	})
	if err != nil {
		return nil, err
	}
	k := &StampSink{}
	if k.sink, k.cores, err = newSink[measureSeen](objects, "arrivals"); err != nil {
		return nil, err
	}
	return k, k.attach(w.Testbed, w.end(false), bpfload.XDP, "measure")
}

// Settle waits until no more frames arrive.
func (k *StampSink) Settle() {
	waitUntilStill(func() uint64 { n, _, _ := k.Read(); return n })
}

func (k *StampSink) Read() (frames, illegal uint64, l Latency) {
	l, illegal = latencyOf(k.cores)
	return l.Frames, illegal, l
}
