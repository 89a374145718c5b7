package resolve

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"weir/pf/ast"
)

// peerHost refuses what cannot say where the other end of a tunnel is: nobody would be found there, and nobody told.
// ported: a port may be said apart.
func (r *resolver) peerHost(w *ast.Word, ported bool) {
	if w == nil {
		return
	}
	if why := notHost(w.Text, ported); why != "" {
		r.faults.Errorf(w.Span, "%s", why)
	}
}

// notHost says why a text is no address and no name of a host; empty: it is one.
func notHost(text string, ported bool) string {
	if a, err := netip.ParseAddr(text); err == nil {
		if a.IsUnspecified() || a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
			return fmt.Sprintf("no peer can be at %s", a)
		}
		return ""
	}
	if host, port, err := net.SplitHostPort(text); ported && err == nil && isHost(host) && allDigits(port) {
		return fmt.Sprintf("%q is no address and no name: write %s port %s", text, host, port)
	}
	if !isHostName(text) {
		return fmt.Sprintf("%q is no address and no name of a host", text)
	}
	return ""
}

func isHost(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil || isHostName(text)
}

// Lengths in names of the DNS (RFC 1035 2.3.4).
const (
	mostName  = 253
	mostLabel = 63
)

// isHostName reports whether a text may be a name in the DNS or in /etc/hosts. The last part of one is no number (RFC 3696
// 2): that is an address with a fault in it.
func isHostName(text string) bool {
	labels := strings.Split(strings.TrimSuffix(text, "."), ".")
	for _, l := range labels {
		if l == "" || len(l) > mostLabel || strings.ContainsFunc(l, func(c rune) bool {
			return c < 0x80 && c != '-' && c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z')
		}) {
			return false
		}
	}
	return len(text) <= mostName && !allDigits(labels[len(labels)-1])
}

func allDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
