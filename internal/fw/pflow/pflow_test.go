package pflow

import (
	"encoding/binary"
	"math"
	"net/netip"
	"testing"
	"time"
)

var start0 = time.Unix(1_700_000_000, 0)

// at returns a clock of a machine that has run for so long.
func at(up time.Duration) Clock { return func() (time.Time, time.Duration) { return start0, up } }

func flow4() *Flow {
	return &Flow{
		Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"), SrcPort: 1000, DstPort: 80,
		Proto: 6, In: 1, Out: 2, Packets: 3, Bytes: 400, First: start0.Add(-2 * time.Second), Last: start0.Add(-time.Second),
	}
}

func be32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }

// TestNetFlowTimes: the head's uptime wraps after 49 days, and so do a record's times.
func TestNetFlowTimes(t *testing.T) {
	for _, up := range []time.Duration{time.Hour, 1 << 32 * time.Millisecond, 1<<32*time.Millisecond + 1500*time.Millisecond} {
		e := NewEncoder(5, at(up))
		e.Add(flow4())
		d := e.Flush()
		if first, last := be32(d[4:])-be32(d[24+24:]), be32(d[4:])-be32(d[24+28:]); first != 2000 || last != 1000 {
			t.Errorf("up %v: began %d ms and ended %d ms before, want 2000 and 1000", up, first, last)
		}
	}
}

// TestNetFlowLargeCounts: counts beyond 32 bits are told in parts, and none is lost.
func TestNetFlowLargeCounts(t *testing.T) {
	f := flow4()
	f.Packets, f.Bytes = 5_000_000_000, 3*math.MaxUint32+17
	e := NewEncoder(5, at(time.Hour))
	e.Add(f)
	d := e.Flush()
	var packets, bytes uint64
	for r := d[24:]; len(r) > 0; r = r[48:] {
		packets += uint64(be32(r[16:]))
		bytes += uint64(be32(r[20:]))
	}
	if packets != f.Packets || bytes != f.Bytes || int(binary.BigEndian.Uint16(d[2:])) != (len(d)-24)/48 {
		t.Errorf("%d packets, %d bytes in %d records", packets, bytes, (len(d)-24)/48)
	}
}

// TestSequence: numbers count flows in both versions, and no template.
func TestSequence(t *testing.T) {
	for version, offset := range map[int]int{5: 16, 10: 8} {
		e := NewEncoder(version, at(time.Hour))
		sent := 0
		for range 100 {
			for _, d := range e.Add(flow4()) {
				if len(d) > maxDatagram {
					t.Errorf("version %d: a datagram of %d bytes", version, len(d))
				}
				if got := int(be32(d[offset:])); got > sent {
					t.Errorf("version %d: sequence %d after %d flows", version, got, sent)
				}
			}
			sent++
		}
		last := e.Flush()
		e.Add(flow4())
		if got := be32(e.Flush()[offset:]); got != 100 || last == nil {
			t.Errorf("version %d: sequence %d after 100 flows", version, got)
		}
	}
}

// TestTemplates: one goes before the first flow of its kind, and again after Refresh.
func TestTemplates(t *testing.T) {
	e := NewEncoder(10, at(time.Hour))
	for i, want := range []uint16{2, 256, 2} {
		if i == 2 {
			e.Refresh()
		}
		e.Add(flow4())
		d := e.Flush()
		if got := binary.BigEndian.Uint16(d[16:]); got != want || int(binary.BigEndian.Uint16(d[2:])) != len(d) {
			t.Errorf("datagram %d begins with set %d, want %d", i, got, want)
		}
	}
}
