package dataplane

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/reason"
)

// A RecordKind is the kind of a record (enum record_kind of bpf/observe/record.h).
type RecordKind uint8

// Kinds of records.
const (
	RecordLog    RecordKind = iota // a rule with log matched the packet
	RecordBefore                   // captured as it came in
	RecordAfter                    // captured as it leaves
)

// A Verdict is what happened to a packet (enum verdict of bpf/observe/record.h).
type Verdict uint8

// Verdicts. Records of rules use the first two.
const (
	VerdictPass     Verdict = iota // by the rules, or out at TCX egress
	VerdictDrop                    // dropped
	VerdictRedirect                // sent out of another interface
	VerdictUp                      // to the stack
)

// Bits of Record.Flags (bpf/observe/record.h).
const (
	RecordL3  = 0x01 // Data begins with the IP header
	RecordAll = 0x02 // logged because of log (all): the packet did not create the state

	recordUser = 0x04 // Peer is the user

	recordWhy = 16 // where Why is, beside Class
)

// A Record is a packet that a rule logged or that was captured.
type Record struct {
	Time    uint64 // nanoseconds of CLOCK_BOOTTIME
	Ifindex uint32 // of the crossing, or of the hook
	Rule    uint32 // global id + 1 of the rule that logged or decided; 0: none
	State   uint32 // index; 0: none
	Length  uint32 // bytes of the frame; RecordL3: of the IP packet
	Kind    RecordKind
	Reason  reason.Reason
	Verdict Verdict
	Out     bool // direction of the crossing is out
	Flags   uint8
	Family  uint8  // 4, 6; 0: not IP
	Peer    uint32 // RecordAfter: index of the interface that it leaves by
	Class   uint32 // of the queue that has dropped it: View.Queues() has it at Class - 1; 0: none
	Why     QueueWhy
	User    *uint32 // of the packet's socket, for a rule with log (user); nil: none
	Readers uint32  // captured: 1 << n for each reader n that wants it
	Data    []byte  // the first bytes of the frame; at most Length
}

// LogBytes is how much of a packet the record of a rule holds (LOG_BYTES of
// bpf/observe/log.h).
const LogBytes = 216

// ErrRecord is returned (wrapped) for bytes that are no record.
var ErrRecord = errors.New("not a record of this version")

// ParseRecord parses a record's bytes from Ring.ReadRaw. Data is a slice of them.
func ParseRecord(b []byte) (Record, error) {
	if len(b) < int(unsafe.Sizeof(xdpRecord{})) {
		return Record{}, fmt.Errorf("%d bytes: %w", len(b), ErrRecord)
	}
	var raw xdpRecord
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&raw)), unsafe.Sizeof(raw)), b)
	data := b[unsafe.Sizeof(raw):]
	if int(raw.Captured) > len(data) {
		return Record{}, fmt.Errorf("%d bytes captured in %d: %w", raw.Captured, len(data), ErrRecord)
	}
	record := Record{
		Time: raw.Time, Ifindex: raw.Ifindex, Rule: raw.Rule, State: raw.State, Length: raw.Length,
		Kind: RecordKind(raw.Kind), Reason: reason.Reason(raw.Reason), Verdict: Verdict(raw.Verdict),
		Out: raw.Direction != 0, Flags: raw.Flags, Family: raw.Family, Peer: raw.PeerIfindex, Readers: raw.Readers,
		Data: data[:raw.Captured],
	}
	if raw.Flags&recordUser != 0 {
		record.Peer, record.User = 0, &raw.PeerIfindex
	}
	if record.Reason == reason.Queue {
		record.Peer, record.Class, record.Why = 0, raw.PeerIfindex&(1<<recordWhy-1), QueueWhy(raw.PeerIfindex>>recordWhy)%queueWhys
	}
	return record, nil
}

// Bytes returns a record as ParseRecord reads it. It has no user and no class of a queue.
func (r *Record) Bytes() []byte {
	raw := xdpRecord{
		Time: r.Time, Ifindex: r.Ifindex, Rule: r.Rule, State: r.State, Length: r.Length, Captured: uint16(len(r.Data)),
		Kind: uint8(r.Kind), Reason: uint8(r.Reason), Verdict: uint8(r.Verdict), Flags: r.Flags, Family: r.Family,
		PeerIfindex: r.Peer, Readers: r.Readers,
	}
	if r.Out {
		raw.Direction = 1
	}
	head := unsafe.Slice((*byte)(unsafe.Pointer(&raw)), unsafe.Sizeof(raw))
	return append(slices.Clone(head), r.Data...)
}

// A RingName names one of the rings (enum ring of bpf/observe/record.h).
type RingName uint32

// Rings.
const (
	LogRing RingName = iota
	CaptureRing
	ringCount
)

// ringMaps holds the maps of the rings, by RingName.
var ringMaps = [ringCount]string{mapLogRing, mapCaptureRing}

func (n RingName) String() string { return ringMaps[n] }

// A Ring reads the records of one ring. It continues over reloads.
type Ring struct {
	ring *bpfload.Ring
	name RingName
	lost *bpfload.Map
}

// OpenRing returns a reader of a ring. There should be only one at a time, because each
// record is read once. The caller closes it.
func (d *Dataplane) OpenRing(name RingName) (*Ring, error) {
	lost, err := d.tables.maps[mapRecordsLost].Clone()
	if err != nil {
		return nil, fmt.Errorf("keep the count of lost records: %w", err)
	}
	ring, err := bpfload.OpenRing(d.tables.maps[ringMaps[name]])
	if err != nil {
		return nil, errors.Join(err, lost.Close())
	}
	return &Ring{ring, name, lost}, nil
}

// Read calls each for every record in the ring. It waits for more for at most patience,
// or until the ring fills. Record.Data is valid until each returns. The error wraps
// os.ErrClosed after Close.
func (r *Ring) Read(patience time.Duration, each func(Record)) error {
	var broken error
	err := r.ring.Read(patience, func(b []byte) {
		record, err := ParseRecord(b)
		if err != nil {
			broken = err
			return
		}
		each(record)
	})
	return errors.Join(err, broken)
}

// Pending reports whether the ring holds records.
func (r *Ring) Pending() bool { return r.ring.Pending() > 0 }

// ReadRaw is like Read, but passes the raw bytes and the set of readers that want them.
// It is for callers that only pass records on.
func (r *Ring) ReadRaw(patience time.Duration, each func(raw []byte, readers uint32)) error {
	return r.ring.Read(patience, func(b []byte) {
		if len(b) >= int(unsafe.Sizeof(xdpRecord{})) {
			each(b, (*xdpRecord)(unsafe.Pointer(unsafe.SliceData(b))).Readers)
		}
	})
}

// Lost returns how many records have found no room in the ring so far.
func (r *Ring) Lost() (uint64, error) { return recordsLost(r.lost, r.name) }

// Close closes the reader. No Read may be in progress.
func (r *Ring) Close() error { return errors.Join(r.ring.Close(), r.lost.Close()) }

// SetRecording says whether a ring has a reader. Without one nothing is written to it.
func (d *Dataplane) SetRecording(name RingName, on bool) {
	bits := &d.tables.shared.Recording
	if on {
		atomic.OrUint32(bits, 1<<name)
	} else {
		atomic.AndUint32(bits, ^uint32(1<<name))
	}
}

// RecordsLost returns how many records have found no room in a ring so far.
func (v *View) RecordsLost(name RingName) (uint64, error) {
	return recordsLost(v.tables.maps[mapRecordsLost], name)
}

func recordsLost(m *bpfload.Map, name RingName) (uint64, error) {
	values, err := newPerCPU[uint64]()
	if err != nil {
		return 0, err
	}
	if err := m.Lookup(uint32(name), values); err != nil {
		return 0, fmt.Errorf("read the count of lost records: %w", err)
	}
	var sum uint64
	for _, n := range values {
		sum += n
	}
	return sum, nil
}
