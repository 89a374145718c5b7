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
	return spansOf(r.Op, uint64(r.Low), uint64(r.High), lastPort, lastPort)
}

// spansOf returns the numbers that meet a condition. Numbers above last, up to all, meet
// comparisons with = and != alone.
func spansOf(op ast.PortOp, low, high, last, all uint64) []span {
	switch op {
	case ast.PortNotEqual:
		return except(low, low, all)
	case ast.PortLess:
		return within(0, low-1, last)
	case ast.PortLessEqual:
		return within(0, low, last)
	case ast.PortGreater:
		return within(low+1, last, last)
	case ast.PortGreaterEqual:
		return within(low, last, last)
	case ast.PortRange:
		return within(low, high, last)
	case ast.PortInside:
		return within(low+1, high-1, last)
	case ast.PortOutside:
		return except(low, high, last)
	}
	return within(low, low, all)
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
