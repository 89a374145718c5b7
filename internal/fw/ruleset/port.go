package ruleset

import (
	"weir/pf/ast"
	"weir/pf/resolve"
)

// noPort is the port number of packets without ports. It meets no condition on a port.
const noPort = 65536

// portSpans returns the ports that meet a condition.
func portSpans(r resolve.PortRange) []span {
	low, high := uint64(r.Low), uint64(r.High)
	switch r.Op {
	case ast.PortNotEqual:
		return outside(low, low)
	case ast.PortLess:
		return between(0, low-1)
	case ast.PortLessEqual:
		return between(0, low)
	case ast.PortGreater:
		return between(low+1, noPort-1)
	case ast.PortGreaterEqual:
		return between(low, noPort-1)
	case ast.PortRange:
		return between(low, high)
	case ast.PortInside:
		return between(low+1, high-1)
	case ast.PortOutside:
		return outside(low, high)
	}
	return between(low, low)
}

// between returns the ports from low to high. Either may be -1, as an unsigned number, or
// noPort: then it returns none.
func between(low, high uint64) []span {
	if low >= noPort || high >= noPort || low > high {
		return nil
	}
	return []span{smallSpan(low, high)}
}

// outside returns the ports below low and above high.
func outside(low, high uint64) []span {
	return join(append(between(0, low-1), between(high+1, noPort-1)...))
}
