package dataplane

import (
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/state"
)

// recordingEarly is RECORDING_EARLY of bpf/observe/record.h.
const recordingEarly = 0x80000000

// earlyHead is struct early_fragment of bpf/path/early_fragment.h without its data.
type earlyHead struct {
	Ifindex, Length uint32
	Key             xdpFragmentKey
}

// A FragmentKey identifies a fragmented packet.
type FragmentKey struct{ raw xdpFragmentKey }

// An EarlyFragment is a frame with a fragment that came before its first.
type EarlyFragment struct {
	Key     FragmentKey
	Ifindex int // of the hook that it came in by
	Frame   []byte
}

// EarlyFragments reads the fragments that came before their first. It continues over
// reloads. There should be only one reader at a time. The caller closes it.
type EarlyFragments struct{ ring *bpfload.Ring }

// OpenEarlyFragments returns a reader.
func (d *Dataplane) OpenEarlyFragments() (*EarlyFragments, error) {
	ring, err := bpfload.OpenRing(d.tables.maps[mapEarlyFragments])
	if err != nil {
		return nil, err
	}
	return &EarlyFragments{ring}, nil
}

// Read calls each for every fragment. It waits for more for at most patience. Frame is
// valid until each returns. The error wraps os.ErrClosed after Close.
func (e *EarlyFragments) Read(patience time.Duration, each func(EarlyFragment)) error {
	return e.ring.Read(patience, func(b []byte) {
		var raw earlyHead
		if len(b) < int(unsafe.Sizeof(raw)) {
			return
		}
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&raw)), unsafe.Sizeof(raw)), b)
		if frame := b[unsafe.Sizeof(raw):]; int(raw.Length) <= len(frame) {
			each(EarlyFragment{FragmentKey{raw.Key}, int(raw.Ifindex), frame[:raw.Length]})
		}
	})
}

// Close ends the reader. No Read may be in progress.
func (e *EarlyFragments) Close() error { return e.ring.Close() }

// HoldFragments says whether somebody reads EarlyFragments and gives the frames back.
// Otherwise they are dropped.
func (d *Dataplane) HoldFragments(on bool) {
	bits := &d.tables.shared.Recording
	if on {
		atomic.OrUint32(bits, recordingEarly)
	} else {
		atomic.AndUint32(bits, ^uint32(recordingEarly))
	}
}

// HasFirst reports whether the first fragment of a packet has been passed, so the others
// follow it, until all have come.
func (d *Dataplane) HasFirst(key FragmentKey) bool {
	var e xdpFragmentEntry
	if d.tables.maps[mapFragments].Lookup(&key.raw, &e) != nil {
		return false
	}
	s := d.tables.shared
	return e.Ranges > 0 && atomic.LoadUint32(&s.Now)-e.Started < s.TimeoutFrag
}

// FragmentTimeout is how long a packet's fragments may take to come (set timeout frag).
func (d *Dataplane) FragmentTimeout() time.Duration {
	return time.Duration(d.tables.shared.TimeoutFrag) * (time.Second / state.TicksPerSecond)
}

// Receive makes a frame come in by an interface of the calling thread's network namespace
// again. xdp says that its hook is XDP.
func (d *Dataplane) Receive(frame []byte, ifindex int, xdp bool) error {
	name := programReceive
	if xdp {
		name = entryXDP.name
	}
	if d.objects.Programs[name] == nil {
		if err := d.need(name); err != nil {
			return err
		}
	}
	if err := bpfload.RunLive(d.objects.Programs[name], frame, ifindex, 1, 1); err != nil {
		return fmt.Errorf("give a fragment back: %w", err)
	}
	return nil
}
