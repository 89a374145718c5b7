package pflow

import (
	"encoding/binary"
	"math"
	"time"
)

// Sizes of NetFlow 5.
const (
	netflowHead   = 24
	netflowRecord = 48
	netflowMost   = (maxDatagram - netflowHead) / netflowRecord
)

// netflow makes datagrams of NetFlow 5, which knows IPv4 alone.
type netflow struct {
	clock    Clock
	records  []byte
	now      time.Time     // the times of the records in a datagram
	up       time.Duration // are told against these
	sequence uint32        // flows sent before
}

func (*netflow) Refresh() {}

// Add adds a flow. Counts of more than 32 bits become several records whose sum is right.
func (n *netflow) Add(f *Flow) (full [][]byte) {
	if !f.Src.Is4() || !f.Dst.Is4() {
		return nil
	}
	packets, bytes := f.Packets, f.Bytes
	for parts := max(packets, bytes)/(math.MaxUint32+1) + 1; parts > 0; parts-- {
		p, b := packets/parts, bytes/parts
		packets, bytes = packets-p, bytes-b
		if len(n.records) == 0 {
			n.now, n.up = n.clock()
		}
		n.records = n.record(f, uint32(p), uint32(b))
		if len(n.records) >= netflowMost*netflowRecord {
			full = append(full, n.Flush())
		}
	}
	return full
}

// uptime returns a time as milliseconds since the machine runs. It wraps after 49 days, and
// so does the head's.
func (n *netflow) uptime(t time.Time) uint32 {
	return uint32((n.up - n.now.Sub(t)).Milliseconds())
}

func (n *netflow) record(f *Flow, packets, bytes uint32) []byte {
	src, dst := f.Src.As4(), f.Dst.As4()
	dstPort := f.DstPort
	if f.isICMP() {
		dstPort = uint16(f.ICMPType) << 8
	}
	to := append(append(n.records, src[:]...), dst[:]...)
	to = append(to, 0, 0, 0, 0) // next hop
	to = binary.BigEndian.AppendUint16(to, uint16(f.In))
	to = binary.BigEndian.AppendUint16(to, uint16(f.Out))
	to = binary.BigEndian.AppendUint32(to, packets)
	to = binary.BigEndian.AppendUint32(to, bytes)
	to = binary.BigEndian.AppendUint32(to, n.uptime(f.First))
	to = binary.BigEndian.AppendUint32(to, n.uptime(f.Last))
	to = binary.BigEndian.AppendUint16(to, f.SrcPort)
	to = binary.BigEndian.AppendUint16(to, dstPort)
	to = append(to, 0, 0, f.Proto, 0)         // padding, TCP flags: a state does not keep them, protocol, type of service
	return append(to, 0, 0, 0, 0, 0, 0, 0, 0) // autonomous systems, lengths of prefixes, padding
}

// Flush returns the datagram of what waits.
func (n *netflow) Flush() []byte {
	if len(n.records) == 0 {
		return nil
	}
	count := len(n.records) / netflowRecord
	to := make([]byte, 0, netflowHead+len(n.records))
	to = binary.BigEndian.AppendUint16(to, 5)
	to = binary.BigEndian.AppendUint16(to, uint16(count))
	to = binary.BigEndian.AppendUint32(to, uint32(n.up.Milliseconds()))
	to = binary.BigEndian.AppendUint32(to, uint32(n.now.Unix()))
	to = binary.BigEndian.AppendUint32(to, uint32(n.now.Nanosecond()))
	to = binary.BigEndian.AppendUint32(to, n.sequence)
	to = append(to, 0, 0, 0, 0) // engine, sampling
	to = append(to, n.records...)
	n.sequence += uint32(count)
	n.records = n.records[:0]
	return to
}
