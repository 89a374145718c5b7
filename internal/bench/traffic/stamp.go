package traffic

import (
	"fmt"

	"weir/internal/bench/cpu"
	"weir/internal/fw/bpfload"
)

// stampSink reads the stamps of frames at their far end.
type stampSink struct {
	sink
	cores []measureSeen
}

func NewStampSink(w *Setup) (*stampSink, error) {
	object, err := loadMeasure()
	if err != nil {
		return nil, fmt.Errorf("read the measuring program: %w", err)
	}
	kind := &frameSpec{ipv6: w.Case.IPv6(), tcp: w.data(false)}
	objects, err := bpfload.Load([]*bpfload.Spec{object}, bpfload.Options{
		Entries: map[string]uint32{"arrivals": cpu.Possible()},
		Values: map[string]any{"ethertype": kind.ethertype(), "protocol": kind.protocol(),
			"stamp_at": uint32(kind.headerLen())},
	})
	if err != nil {
		return nil, fmt.Errorf("load the measuring program: %w", err)
	}
	k := &stampSink{}
	if k.sink, k.cores, err = newSink[measureSeen](objects, "arrivals"); err != nil {
		return nil, err
	}
	return k, k.attach(w.Bed, w.end(false), bpfload.XDP, "measure")
}

func (k *stampSink) Settle() {
	waitUntilStill(func() uint64 { n, _, _ := k.Read(); return n })
}

func (k *stampSink) Read() (frames, illegal uint64, l Latency) {
	l, illegal = latencyOf(k.cores)
	return l.Frames, illegal, l
}
