package mapping

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// A Permission is one line of who may map what.
type Permission struct {
	Allow              bool
	External, Internal Ports
	Hosts              netip.Prefix
}

// Ports is a range.
type Ports struct{ First, Last uint16 }

func (p Ports) has(port uint16) bool { return p.First <= port && port <= p.Last }

// A Redirect is ports that the rules send on already.
type Redirect struct {
	Protocol Protocol // 0: any
	Ports
}

// Has reports whether it is about a port.
func (r *Redirect) Has(p Protocol, port uint16) bool {
	return (r.Protocol == 0 || r.Protocol == p) && r.has(port)
}

// Permissions are in order: the first that matches decides. What matches none is denied.
type Permissions []Permission

// DefaultPermissions leave the ports of well-known services alone.
func DefaultPermissions() Permissions {
	high := Ports{1024, 65535}
	return Permissions{
		{true, high, high, netip.MustParsePrefix("0.0.0.0/0")},
		{true, high, high, netip.MustParsePrefix("::/0")},
	}
}

// ParsePermission reads a line as miniupnpd has it: allow|deny EXTERNAL-PORTS HOSTS
// INTERNAL-PORTS.
func ParsePermission(line string) (p Permission, err error) {
	words := strings.Fields(line)
	if len(words) != 4 || words[0] != "allow" && words[0] != "deny" {
		return p, fmt.Errorf("%q is not: allow or deny, external ports, a host or network, internal ports", line)
	}
	p.Allow = words[0] == "allow"
	if p.External, err = parsePorts(words[1]); err != nil {
		return p, err
	}
	if p.Internal, err = parsePorts(words[3]); err != nil {
		return p, err
	}
	if host, err := netip.ParseAddr(words[2]); err == nil && host.Zone() == "" && !host.Is4In6() {
		p.Hosts = netip.PrefixFrom(host, host.BitLen())
		return p, nil
	}
	p.Hosts, err = netip.ParsePrefix(words[2])
	if err != nil || p.Hosts != p.Hosts.Masked() || p.Hosts.Addr().Is4In6() {
		return p, fmt.Errorf("%q is neither a host's address nor a network", words[2])
	}
	return p, nil
}

func parsePorts(word string) (Ports, error) {
	first, last, isRange := strings.Cut(word, "-")
	if !isRange {
		last = first
	}
	a, errA := strconv.ParseUint(first, 10, 16)
	b, errB := strconv.ParseUint(last, 10, 16)
	if errA != nil || errB != nil || a > b {
		return Ports{}, fmt.Errorf("%q is neither a port nor a range as 1024-65535", word)
	}
	return Ports{uint16(a), uint16(b)}, nil
}

// Allow reports whether a host may have an external port for one of its own.
func (p Permissions) Allow(external uint16, internal netip.AddrPort) bool {
	for _, line := range p {
		if line.External.has(external) && line.Internal.has(internal.Port()) && line.Hosts.Contains(internal.Addr()) {
			return line.Allow
		}
	}
	return false
}

// Name reports whether an allow line names a network, other than all, that a host is in:
// then it is served though it is not in a network of the box's own.
func (p Permissions) Name(host netip.Addr) bool {
	for _, line := range p {
		if line.Allow && line.Hosts.Bits() > 0 && line.Hosts.Contains(host) {
			return true
		}
	}
	return false
}
