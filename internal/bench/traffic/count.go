package traffic

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"

	"weir/internal/bench/cpu"
	"weir/internal/fw/bpfload"
	"weir/internal/lab"
)

// CountSink counts frames at their far end.
type CountSink struct {
	sink
	counters []countCounter
}

// NewCountSink attaches a counter for the frames of one direction.
func NewCountSink(w *Setup, back bool) (*CountSink, error) {
	objects, err := LoadCountObjectsFor(w, back, nil)
	if err != nil {
		return nil, err
	}
	k := &CountSink{}
	if k.sink, k.counters, err = newSink[countCounter](objects, "counters"); err != nil {
		return nil, err
	}
	at, hook, program := w.end(back), bpfload.XDP, "count"
	if w.egress() {
		at, hook, program = w.exit(back), bpfload.Egress, "count_egress"
	}
	return k, k.attach(w.Testbed, at, hook, program)
}

// Reset resets the counters. No frames may be under way.
func (k *CountSink) Reset() {
	clear(k.counters)
}

// window is what a sink counted on one core.
type window struct {
	frames  uint64  // all of them
	seconds float64 // from the first time stamp to the last
	rate    float64 // frames per second between them; 0: too few frames
}

// RateOn returns the frames per second on one core, or 0 if there were too few.
func (k *CountSink) RateOn(core int) float64 { return k.on(core).rate }

// on returns what was counted on one core.
func (k *CountSink) on(core int) window {
	c := k.counters[core]
	w := window{frames: c.Frames}
	if ns := c.LastNs - c.FirstNs; c.LastNs > c.FirstNs {
		w.seconds = float64(ns) / 1e9
		w.rate = float64(c.LastFrames-c.FirstFrames) / w.seconds
	}
	return w
}

// windows returns what was counted on each core that saw frames.
func (k *CountSink) windows() []window {
	var seen []window
	for core := range k.counters {
		if w := k.on(core); w.frames > 0 {
			seen = append(seen, w)
		}
	}
	return seen
}

// Arrived returns the number of frames at all sinks.
func Arrived(sinks map[bool]*CountSink) (frames uint64) {
	for _, sink := range sinks {
		for _, w := range sink.windows() {
			frames += w.frames
		}
	}
	return frames
}

// Shortest returns the shortest time, in seconds, in which a sink saw frames on one core.
func Shortest(sinks map[bool]*CountSink) float64 {
	least := math.Inf(1)
	for _, sink := range sinks {
		for _, w := range sink.windows() {
			least = min(least, w.seconds)
		}
	}
	return least
}

// Rate returns the sum of the rates of all cores, and the longest time in which one of
// them was seen to work.
func Rate(sinks map[bool]*CountSink, cores []int) (perSecond, seconds float64) {
	for _, core := range cores {
		var frames, first, last uint64
		for _, sink := range sinks {
			c := &sink.counters[core]
			if c.LastNs == c.FirstNs {
				continue
			}
			frames += c.LastFrames - c.FirstFrames
			last = max(last, c.LastNs)
			if first == 0 || c.FirstNs < first {
				first = c.FirstNs
			}
		}
		if last > first {
			s := float64(last-first) / 1e9
			perSecond += float64(frames) / s
			seconds = max(seconds, s)
		}
	}
	return perSecond, seconds
}

// LoadCountObjectsFor loads the object with the sinks and the redirect programs, for frames
// that have arrived.
func LoadCountObjectsFor(w *Setup, back bool, values map[string]any) (*bpfload.Objects, error) {
	kind := &frameSpec{ipv6: w.ipv6(back), tcp: w.data(false)}
	if w.Tagged {
		kind.tag = FarVLAN
	}
	if w.InSession && !back {
		kind.session = w.Session
	}
	all := map[string]any{"numbered": flag(w.Numbered), "back": flag(back), "ethertype": kind.ethertype(), "protocol": kind.protocol(), "tag_len": uint32(kind.tagLen())}
	maps.Copy(all, values)
	return load("the counting programs", loadCount, bpfload.Options{Entries: map[string]uint32{"counters": cpu.Possible(), "numbers": uint32(max(w.Case.Flows, 1))}, Values: all})
}

// LoadRedirect loads the programs that redirect frames to the firewall's other device,
// with the next MAC addresses. Those with "session" in their names put the PPPoE session in front of frames for the far
// wire, and take it off frames from there.
func LoadRedirect(w *Setup, back bool) (*bpfload.Objects, error) {
	source, target, err := w.Testbed.MACs(w.exit(back), w.end(back))
	if err != nil {
		return nil, err
	}
	addresses := words(append(slices.Clone(target), source...))
	leaveBy := uint32(w.Testbed.Indexes[w.exit(back)])
	objects, err := LoadCountObjectsFor(w, back, map[string]any{
		"leave_by": leaveBy, "addresses_low": addresses[0], "addresses_high": uint32(addresses[1]), "session": w.Session,
	})
	if err != nil {
		return nil, err
	}
	// A device map takes devices from the namespace of the calling thread.
	err = w.Testbed.Lab.Do(lab.FW, func() error { return bpfload.PutDevice(objects.Maps["devices"], 0, leaveBy) })
	if err != nil {
		return nil, errors.Join(err, objects.Close())
	}
	return objects, nil
}

// frameBytes returns the bytes of a frame that a program stored as words.
func frameBytes(stored []uint64) []byte {
	var b []byte
	for _, w := range stored {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	return b
}

// Disordered returns how many frames have come after a later one of their flow, or twice.
func (k *CountSink) Disordered() (frames uint64) {
	for core := range k.counters {
		frames += k.counters[core].Disordered
	}
	return frames
}

// Settle waits until no more frames arrive.
func (k *CountSink) Settle() {
	waitUntilStill(func() uint64 { n, _, _ := k.Read(); return n })
}

func (k *CountSink) Read() (frames, illegal uint64, l Latency) {
	for _, w := range k.windows() {
		frames += w.frames
	}
	return frames, 0, l
}
