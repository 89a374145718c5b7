package ruleset

import "weir/pf/resolve"

// noPort is the number of packets without ports; they meet no condition on one.
const noPort = 65536

// portSpans returns the ports that meet a condition.
func portSpans(r resolve.PortRange) []span {
	low, high := uint64(r.Low), uint64(r.High)
	switch r.Op {
	case resolve.PortNe:
		return outside(low, low)
	case resolve.PortLt:
		return between(0, low-1)
	case resolve.PortLe:
		return between(0, low)
	case resolve.PortGt:
		return between(low+1, noPort-1)
	case resolve.PortGe:
		return between(low, noPort-1)
	case resolve.PortRangeInc:
		return between(low, high)
	case resolve.PortInside:
		return between(low+1, high-1)
	case resolve.PortOutside:
		return outside(low, high)
	}
	return between(low, low)
}

// between returns the ports from low to high; neither is below -1, as an
// unsigned number, nor above noPort.
func between(low, high uint64) []span {
	if low >= noPort || high >= noPort || low > high {
		return nil
	}
	return []span{smallSpan(low, high)}
}

// outside returns the ports below low and those above high.
func outside(low, high uint64) []span {
	return join(append(between(0, low-1), between(high+1, noPort-1)...))
}
