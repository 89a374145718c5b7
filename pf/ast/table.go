package ast

import (
	"fmt"
	"net/netip"
	"strings"

	"weir/pf/token"
)

// Table is the definition of a table.
type Table struct {
	token.Span
	Name    Word
	Flags   TableFlags
	Sources []TableSource // in order; none: no addresses were given
	Entries []TableEntry  // elements from all sources; set by resolving
	Used    bool          // by a rule; set by resolving
	Anchor  string        // path of the anchor that defined it, if resolving has moved it before the rules
}

// TableEntry is one element of a table.
type TableEntry struct {
	Prefix netip.Prefix // IPv4 as IPv4, not mapped
	Not    bool
}

// TableFlags are the keywords of a table.
type TableFlags struct {
	Const, Persist, Counters bool
}

// TableSource is a source of a table's addresses: a list or a file.
type TableSource struct {
	token.Span
	Hosts []Host
	File  *Word       // the file's name; nil for a list
	Text  *token.File // its content; nil if it could not be read

	Loaded int // resolved: how many of the table's Entries are the file's
}

// MarshalText returns an entry in the form of a table's list.
func (e TableEntry) MarshalText() ([]byte, error) {
	text := e.Prefix.String()
	if e.Prefix.IsSingleIP() {
		text = e.Prefix.Addr().String()
	}
	if e.Not {
		text = "!" + text
	}
	return []byte(text), nil
}

// UnmarshalText reads an address or network, with ! in front if it is excluded.
func (e *TableEntry) UnmarshalText(text []byte) error {
	s, not := strings.CutPrefix(string(text), "!")
	s = strings.TrimSpace(s)
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		addr, wrong := netip.ParseAddr(s)
		if wrong != nil || addr.Zone() != "" {
			return fmt.Errorf("%q is neither an address nor a network", text)
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	*e = TableEntry{Prefix: prefix.Masked(), Not: not}
	return nil
}
