package mapping

import (
	"fmt"
	"strings"
)

// Tags mark a connection between its two crossings: earlier rules may have translated its
// source by then.
const (
	tag        = "portmap"
	hairpinTag = "portmap-hairpin"
)

// Interfaces are the box's, as the rules name them.
type Interfaces struct {
	WAN     string
	LAN     []string
	Hairpin bool // hosts of the LAN reach mappings by the external address, too
}

// Rules returns the rules that open what the table has, and nothing else. Only numbers and
// the interfaces' names are in them, nothing that a client has written.
func (t *Table) Rules(i *Interfaces) string {
	var b strings.Builder
	all := t.All()
	for n := range all {
		m := &all[n]
		if m.Internal.Addr().Is6() {
			m.pinhole(&b, i)
		} else {
			m.translation(&b, i)
		}
	}
	if len(all) == 0 {
		return ""
	}
	fmt.Fprintf(&b, "pass out quick proto { tcp, udp } tagged %s\n", tag)
	if i.Hairpin {
		for _, lan := range i.LAN { // else the host would answer past the box
			fmt.Fprintf(&b, "pass out quick on %s inet proto { tcp, udp } tagged %s nat-to (%s:0)\n", lan, hairpinTag, lan)
		}
	}
	return b.String()
}

// sources returns what stands after from, for each rule of the mapping.
func (m *Mapping) sources() []string {
	if len(m.Filters) == 0 {
		return []string{"any"}
	}
	var all []string
	for _, f := range m.Filters {
		all = append(all, f.String())
	}
	return all
}

// String returns the filter as a rule has it.
func (f Filter) String() string {
	if f.Port == 0 {
		return f.From.String()
	}
	return fmt.Sprintf("%s port %d", f.From, f.Port)
}

func (m *Mapping) pinhole(b *strings.Builder, i *Interfaces) {
	for _, from := range m.sources() {
		fmt.Fprintf(b, "pass in quick on %s inet6 proto %s from %s to %s port %d tag %s\n",
			i.WAN, m.Protocol, from, m.Internal.Addr(), m.Internal.Port(), tag)
	}
}

func (m *Mapping) translation(b *strings.Builder, i *Interfaces) {
	to := fmt.Sprintf("to (%s:0) port %d", i.WAN, m.External)
	host := fmt.Sprintf("rdr-to %s port %d", m.Internal.Addr(), m.Internal.Port())
	for _, from := range m.sources() {
		fmt.Fprintf(b, "pass in quick on %s inet proto %s from %s %s tag %s %s\n", i.WAN, m.Protocol, from, to, tag, host)
		if !i.Hairpin {
			continue
		}
		for _, lan := range i.LAN {
			fmt.Fprintf(b, "pass in quick on %s inet proto %s from %s %s tag %s %s\n", lan, m.Protocol, from, to, hairpinTag, host)
		}
	}
	// What the host sends from that port has the mapping's port outside, too (RFC 6887, 11).
	fmt.Fprintf(b, "match out on %s inet proto %s from %s port %d nat-to (%s:0) port %d\n",
		i.WAN, m.Protocol, m.Internal.Addr(), m.Internal.Port(), i.WAN, m.External)
}
