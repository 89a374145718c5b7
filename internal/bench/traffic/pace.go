package traffic

import (
	"errors"
	"fmt"
	"time"

	"weir/internal/bench/testbed"
	"weir/internal/fw/bpfload"
)

const (
	// burstTime is how long the frames of a burst would take one by one. maxBurst is
	// their maximum number: a quarter of a veth's ring.
	burstTime = 20e-6
	maxBurst  = 64
	// holdTime is the burstTime if a rate is held on average. Bursts are full from
	// 640,000 frames per second on.
	holdTime = 100e-6
	// LeastRate is in frames per second. It keeps the generator's waits short.
	LeastRate = 1000
	// stampLen is STAMP_LEN of bpf/frame.h.
	stampLen = 16
)

// Pacing is how a generator spaces frames and stamps them. The zero value sends as fast
// as possible, without stamps.
type Pacing struct {
	gap          time.Duration // between bursts; 0: none
	catchUp      time.Duration // between bursts that make up for late ones; 0: no bursts do
	Burst        uint32        // frames
	stamps       bool
	IllegalEvery uint32
}

// PaceFor spaces frames for a rate per second (0: as fast as possible). Stamped frames
// leave one by one up to a million per second.
func PaceFor(rate float64, stamps bool) Pacing {
	p := Pacing{stamps: stamps}
	if rate <= 0 {
		return p
	}
	width := burstTime
	if stamps {
		width = 1e-6
	}
	p.Burst = uint32(min(max(rate*width, 1), maxBurst))
	p.gap = time.Duration(float64(p.Burst) / rate * 1e9)
	return p
}

// PaceHolding spaces frames so that a rate is held on average, even if the generator's
// core has other work. It uses large bursts, and late ones follow at up to four times the
// rate. With a lower rate the core would spend time waiting that the other work needs.
func PaceHolding(rate float64) Pacing {
	burst := uint32(min(max(rate*holdTime, 1), maxBurst))
	gap := time.Duration(float64(burst) / rate * 1e9)
	return Pacing{gap: gap, catchUp: gap / 4, Burst: burst}
}

// addTo sets the generator's constants.
func (p Pacing) addTo(values map[string]any, spec *frameSpec) {
	values["burst_ns"], values["burst_frames"] = uint64(p.gap), p.Burst
	values["catch_up_ns"] = uint64(p.catchUp)
	values["illegal_every"] = p.IllegalEvery
	if p.IllegalEvery > 0 {
		values["illegal_net"] = low32(testbed.IllegalHosts.Addr(spec.ipv6))
	}
	if p.stamps {
		values["stamp_at"] = uint32(spec.headerLen())
	}
}

// StampedSize returns size, raised to the smallest frame with room for a time stamp. Both
// are bytes with the frame's checksum.
func StampedSize(size int, c Case) int {
	return max(size, plain(c.IPv6(), c.TCP()).headerLen()+stampLen+fcsLen, LeastFrame)
}

// Paced returns the generator's record of its own pace.
func (g *Generator) Paced() (p generatePace, err error) {
	memory, err := bpfload.MapMemory(g.objects.Maps["paces"])
	if err != nil {
		return p, fmt.Errorf("read the generator's pace: %w", err)
	}
	defer func() { err = errors.Join(err, memory.Close()) }()
	values, err := bpfload.Values[generatePace](memory)
	if err != nil {
		return p, fmt.Errorf("read the generator's pace: %w", err)
	}
	return values[0], nil
}
