package state

import "weir/pf/resolve"

// Timeouts are the spans without a packet after which a state of each phase
// expires, in ticks.
type Timeouts [PhaseCount]uint32

// TimeoutsOf converts the timeouts of a configuration.
func TimeoutsOf(t *resolve.Timeouts) Timeouts {
	seconds := Timeouts{
		TCPFirst: t.TCPFirst, TCPOpening: t.TCPOpening, TCPEstablished: t.TCPEstablished,
		TCPClosing: t.TCPClosing, TCPFinWait: t.TCPFinWait, TCPClosed: t.TCPClosed,
		UDPFirst: t.UDPFirst, UDPSingle: t.UDPSingle, UDPMultiple: t.UDPMultiple,
		ICMPFirst: t.ICMPFirst, ICMPError: t.ICMPError,
		OtherFirst: t.OtherFirst, OtherSingle: t.OtherSingle, OtherMultiple: t.OtherMultiple,
	}
	for p := range seconds {
		seconds[p] *= TicksPerSecond
	}
	return seconds
}

// Adapt scales the timeouts for a table of n states as pf.conf(5) says under
// adaptive.start and adaptive.end: beyond start they shrink linearly, to zero
// at end. With end 0 nothing is scaled.
func (t Timeouts) Adapt(n, start, end uint32) Timeouts {
	if end == 0 || n <= start {
		return t
	}
	for p, timeout := range t {
		t[p] = 0
		if n < end {
			t[p] = uint32(uint64(timeout) * uint64(end-n) / uint64(end-start))
		}
	}
	return t
}
