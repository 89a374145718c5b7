package printer

import (
	"strconv"

	"weir/pf/ast"
)

// Host prints an address as it stands in a rule.
func Host(h *ast.Host) string {
	switch {
	case isAny(h):
		return "any"
	case h.Not:
		return "! " + address(h)
	}
	return address(h)
}

// address prints a host without !. A network of length 0 is printed in digits.
func address(h *ast.Host) string {
	switch h.Kind {
	case ast.HostAny:
		return "any"
	case ast.HostTable:
		return "<" + word(h.Name) + ">"
	case ast.HostPrefix:
		if h.Prefix.IsSingleIP() {
			return h.Prefix.Addr().String()
		}
		return h.Prefix.String()
	case ast.HostDynamic:
		return "(" + name(named(h)) + ")" + bits(h.Bits)
	case ast.HostRange:
		return addressRange(h)
	case ast.HostNoRoute:
		return "no-route"
	case ast.HostURPFFailed:
		return "urpf-failed"
	case ast.HostRouteLabel:
		return "route " + quote(h.Name)
	}
	return name(named(h)) + bits(h.Bits)
}

// addressRange prints first - last, resolved or as written.
func addressRange(h *ast.Host) string {
	if h.Last.IsValid() {
		return h.Prefix.Addr().String() + " - " + h.Last.String()
	}
	return name(named(h)) + " - " + name(h.LastName)
}

// named is the name of a host with its modifiers.
func named(h *ast.Host) string {
	s := h.Name
	if h.Network {
		s += ":network"
	}
	if h.Broadcast {
		s += ":broadcast"
	}
	if h.Peer {
		s += ":peer"
	}
	if h.NoAlias {
		s += ":0"
	}
	return s
}

func bits(n int) string {
	if n < 0 {
		return ""
	}
	return "/" + strconv.Itoa(n)
}
