package resolve

import (
	"fmt"
	"net/netip"
	"strings"

	"weir/pf/ast"
	"weir/pf/diag"
)

// addressRange resolves first - last. Each is an address or a name of one.
func (r *resolver) addressRange(h *ast.Host, where place) []ast.Host {
	if where == tableHost {
		r.faults.Errorf(h.Span, "a table cannot hold a range of addresses; write networks")
		return nil
	}
	first, last := *h, ast.Host{Span: h.Span, Kind: ast.HostName, Name: h.LastName, Bits: -1}
	first.Kind = ast.HostName
	from, to := r.word(&first), r.word(&last)
	if len(from) == 0 || len(to) == 0 {
		return nil // reported already
	}
	low, ok := single(from)
	high, also := single(to)
	switch {
	case !ok || !also:
		r.faults.Errorf(h.Span, "the ends of a range are single addresses")
		return nil
	case low.Is4() != high.Is4():
		r.faults.Errorf(h.Span, "the ends of the range are of two address families")
		return nil
	case high.Less(low):
		r.faults.Errorf(h.Span, "the range ends before it begins")
		return nil
	}
	resolved := from[0]
	resolved.Kind, resolved.Last, resolved.LastName = ast.HostRange, high, ""
	return []ast.Host{resolved}
}

// single returns the address of a list with one address.
func single(hosts []ast.Host) (netip.Addr, bool) {
	if len(hosts) != 1 || hosts[0].Kind != ast.HostPrefix || !hosts[0].Prefix.IsSingleIP() {
		return netip.Addr{}, false
	}
	return hosts[0].Prefix.Addr(), true
}

// joinedRange reports a range without blanks, which is one word.
func (r *resolver) joinedRange(h *ast.Host, where place) bool {
	low, high, ok := strings.Cut(h.Name, "-")
	if !ok || !isAddr(low) || !isAddr(high) {
		return false
	}
	switch where {
	case ruleHost:
		r.faults.Add(diag.Diagnostic{
			Span: h.Span, Message: fmt.Sprintf("%q is not an address: a range has blanks around its -", h.Name), Suggest: low + " - " + high,
		})
	case tableHost:
		r.faults.Errorf(h.Span, "%q is not an address: a table cannot hold a range; write networks", h.Name)
	default:
		return false
	}
	return true
}

func isAddr(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}
