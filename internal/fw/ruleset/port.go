package ruleset

import (
	"weir/pf/ast"
	"weir/pf/resolve"
)

// noPort is the port number of packets without ports. It meets no condition on a port.
const noPort = 65536

const lastPort = noPort - 1

// portSpans returns the ports that meet a condition.
func portSpans(r resolve.PortRange) []span {
	low, high := uint64(r.Low), uint64(r.High)
	switch r.Op {
	case ast.PortNotEqual:
		return except(low, low, lastPort)
	case ast.PortLess:
		return within(0, low-1, lastPort)
	case ast.PortLessEqual:
		return within(0, low, lastPort)
	case ast.PortGreater:
		return within(low+1, lastPort, lastPort)
	case ast.PortGreaterEqual:
		return within(low, lastPort, lastPort)
	case ast.PortRange:
		return within(low, high, lastPort)
	case ast.PortInside:
		return within(low+1, high-1, lastPort)
	case ast.PortOutside:
		return except(low, high, lastPort)
	}
	return within(low, low, lastPort)
}

// within returns the numbers from low to high, if both are at most last. Either may be -1, as
// an unsigned number, or last + 1: then it returns none.
func within(low, high, last uint64) []span {
	if low > last || high > last || low > high {
		return nil
	}
	return []span{smallSpan(low, high)}
}

// except returns the numbers up to last that are below low or above high.
func except(low, high, last uint64) []span {
	return join(append(within(0, low-1, last), within(high+1, last, last)...))
}
