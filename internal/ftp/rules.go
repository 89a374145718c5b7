package ftp

import (
	"fmt"
	"net/netip"
	"strings"
)

// A connection is one data connection, as both ends see it.
type connection struct {
	from netip.Addr     // opens it
	to   netip.AddrPort // what from connects to
	real netip.AddrPort // the host and port that take it
	as   netip.Addr     // whom real sees in place of from
}

// tag marks a data connection between its two crossings. Earlier rules may have translated
// its source by then, so the rule of the second crossing cannot name it.
const tag = "ftp-proxy-data"

// rules returns the rules that pass the connection and nothing else.
func (c *connection) rules(keepPort bool) string {
	family := "inet"
	if c.from.Is6() {
		family = "inet6"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "pass in quick %s proto tcp from %s to %s port %d flags S/SA tag %s", family, c.from, c.to.Addr(), c.to.Port(), tag)
	if c.to != c.real {
		fmt.Fprintf(&b, " rdr-to %s port %d", c.real.Addr(), c.real.Port())
	}
	fmt.Fprintf(&b, "\npass out quick %s proto tcp to %s port %d flags S/SA tagged %s", family, c.real.Addr(), c.real.Port(), tag)
	if c.as != c.from {
		fmt.Fprintf(&b, " nat-to %s", c.as)
		if keepPort { // the client may expect the server's port 20
			b.WriteString(" static-port")
		}
	}
	b.WriteString("\n")
	return b.String()
}
