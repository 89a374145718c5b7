package pflow

import (
	"net/netip"
	"time"
)

// A Flow is what is told of one direction of a connection.
type Flow struct {
	Src, Dst         netip.Addr // of arriving packets; IPv4 as IPv4, not mapped
	SrcPort, DstPort uint16     // of ICMP queries 0
	NewSrc, NewDst   netip.Addr // of leaving packets; not valid: they are the same
	NewSrcPort       uint16     // with NewSrc
	NewDstPort       uint16
	Proto            uint8
	ICMPType         uint8  // of ICMP queries and their replies
	In, Out          uint32 // indices of interfaces; 0: the box itself, or not known
	Packets, Bytes   uint64 // bytes of whole IP packets
	First, Last      time.Time
}

// Numbers of protocols.
const (
	icmp4 = 1
	icmp6 = 58
)

func (f *Flow) isICMP() bool { return f.Proto == icmp4 || f.Proto == icmp6 }

// maxDatagram is the most bytes of a datagram: with the headers of IPv6 and UDP it fits
// an MTU of 1,400.
const maxDatagram = 1352

// A Clock says what time it is, and since when the machine runs.
type Clock func() (now time.Time, up time.Duration)

// An Encoder makes datagrams of flows. The slice that add returns is the datagram that
// became full, or nil; it is valid until the next call.
type Encoder interface {
	// Add adds a flow. It returns the datagrams that have become full.
	Add(f *Flow) [][]byte
	// Flush returns what waits, or nil.
	Flush() []byte
	// Refresh has the next datagram begin with all that a collector needs to read it.
	Refresh()
}

// NewEncoder returns an encoder for a version: 5, or 10 for IPFIX.
func NewEncoder(version int, clock Clock) Encoder {
	if version == 5 {
		return &netflow{clock: clock}
	}
	return &ipfix{clock: clock, known: make(map[uint16]bool)}
}
