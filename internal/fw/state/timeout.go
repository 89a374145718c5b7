package state

import "weir/pf/resolve"

// Timeouts holds, for each phase, how long a state lives without a packet, in ticks.
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

// Adapt scales the timeouts for a table of n states, as pf.conf(5) describes under
// adaptive.start and adaptive.end. Beyond start they shrink linearly, to zero at end. If
// end is 0, nothing is scaled.
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
