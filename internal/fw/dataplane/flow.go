package dataplane

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"
	"unsafe"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/state"
)

// Maps of bpf/state/export.h.
const (
	mapFlowRing  = "flow_ring"
	mapFlowsLost = "flows_lost"
)

var flowMaps = []string{mapFlowRing, mapFlowsLost}

// flowRingBytes is the room of the ring: some 26,000 records.
const flowRingBytes = 4 << 20

// flowFormat is FLOW_RECORD_FORMAT.
const flowFormat = 1

// rawFlow is struct flow_record.
type rawFlow struct {
	Format, Now, Created uint32
	Last, Ifindex, Rule  [2]uint32
	_                    uint32
	Packets, Bytes       [2]uint64
	Tuple                [2]xdpTuple
}

// A FlowRecord is what is left of a state that has ended. Fields with two values have them
// by direction.
type FlowRecord struct {
	Tuple          [2]state.Tuple // of arriving packets
	Packets, Bytes [2]uint64
	Ifindex        [2]int // of the interface that its packets left by; 0: the box, or not known
	RuleIn         uint32 // global number of the rule that decided, plus 1; 0: none
	RuleOut        uint32
	Age            time.Duration    // since the state was made, when the record was written
	Quiet          [2]time.Duration // since the direction's last packet
	Written        state.Tick       // when that was
}

// tick is the length of a state.Tick.
const tick = time.Second / state.TicksPerSecond

// flowEntries returns the sizes of the maps.
func (d *Dataplane) flowEntries() map[string]uint32 {
	if d.config.Flows {
		return map[string]uint32{mapFlowRing: flowRingBytes}
	}
	return nil
}

// openFlows opens the maps of the generation before: records wait in them. Without all of
// them, or if they are too small, there are new ones.
func (d *Dataplane) openFlows() error {
	found := make(map[string]*bpfload.Map)
	for _, name := range flowMaps {
		m, err := bpfload.OpenMap(filepath.Join(liveGeneration(d.config.Dir), pinName(name)))
		if isMissing(err) { // the first generation, or an earlier version's
			return closeMaps(found)
		}
		if err != nil {
			return errors.Join(err, closeMaps(found))
		}
		found[name] = m
	}
	if size := found[mapFlowRing].MaxEntries(); d.config.Flows != (size == flowRingBytes) {
		return closeMaps(found)
	}
	d.flows = found
	return nil
}

// Flows reads the records of states that have ended.
type Flows struct {
	ring *bpfload.Ring
	lost *bpfload.Map
}

// OpenFlows returns a reader. There should be only one at a time. The caller closes it.
func (d *Dataplane) OpenFlows() (*Flows, error) {
	lost, err := d.objects.Maps[mapFlowsLost].Clone()
	if err != nil {
		return nil, fmt.Errorf("keep the count of lost flows: %w", err)
	}
	ring, err := bpfload.OpenRing(d.objects.Maps[mapFlowRing])
	if err != nil {
		return nil, errors.Join(err, lost.Close())
	}
	return &Flows{ring, lost}, nil
}

// Read calls each for every record, and waits for some for at most patience. It returns
// how many records were of another version's form.
func (f *Flows) Read(patience time.Duration, each func(*FlowRecord)) (foreign int, err error) {
	err = f.ring.Read(patience, func(b []byte) {
		var raw rawFlow
		if len(b) < int(unsafe.Sizeof(raw)) {
			foreign++
			return
		}
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&raw)), unsafe.Sizeof(raw)), b)
		if raw.Format != flowFormat {
			foreign++
			return
		}
		each(raw.decode())
	})
	return foreign, err
}

// Lost returns how many records have found no room in the ring so far.
func (f *Flows) Lost() (n uint64, err error) {
	if err := f.lost.Lookup(uint32(0), &n); err != nil {
		return 0, fmt.Errorf("read the count of lost flows: %w", err)
	}
	return n, nil
}

// Close closes the reader. No Read may be in progress.
func (f *Flows) Close() error { return errors.Join(f.ring.Close(), f.lost.Close()) }

// decode computes with differences of ticks, so their wraps do not matter.
func (raw *rawFlow) decode() *FlowRecord {
	f := &FlowRecord{
		Packets: raw.Packets, Bytes: raw.Bytes, RuleIn: raw.Rule[0], RuleOut: raw.Rule[1],
		Age: time.Duration(raw.Now-raw.Created) * tick, Written: state.Tick(raw.Now),
	}
	for d := range 2 {
		f.Tuple[d] = raw.Tuple[d].decode()
		f.Ifindex[d] = int(raw.Ifindex[d])
		f.Quiet[d] = max(0, time.Duration(state.Tick(raw.Now).Since(state.Tick(raw.Last[d])))*tick)
	}
	return f
}
