package portmap

import (
	"net/netip"

	"weir/internal/portmap/mapping"
)

// An Entry is a mapping as it is shown to people.
type Entry struct {
	Protocol string         `json:"protocol"`
	Port     uint16         `json:"port"` // of the external address, or of the host's own
	Host     netip.AddrPort `json:"host"`
	From     []string       `json:"from,omitempty"` // who may come; none: anybody
	Leases   []EntryLease   `json:"leases"`
}

// An EntryLease says by what a mapping was asked for, and for how long.
type EntryLease struct {
	By          string  `json:"by"`
	Seconds     *uint32 `json:"seconds,omitempty"` // that are left; none: it does not end
	Description string  `json:"description,omitempty"`
}

// Entries reads the mappings that a server has recorded, also while it does not run.
func Entries(path string) ([]Entry, error) {
	s, err := readState(path, false)
	if err != nil {
		return nil, err
	}
	now := uptime()
	all := []Entry{}
	for i := range s.Mappings {
		all = append(all, entry(&s.Mappings[i], now))
	}
	return all, nil
}

func entry(m *mapping.Mapping, now int64) Entry {
	e := Entry{Protocol: m.Protocol.String(), Port: m.External, Host: m.Internal}
	for _, f := range m.Filters {
		e.From = append(e.From, f.String())
	}
	for by, l := range m.Leases {
		if l == nil {
			continue
		}
		one := EntryLease{By: "upnp", Description: l.Description}
		if mapping.Maker(by) == mapping.PCP {
			one.By = "pcp"
			if l.Nonce == [12]byte{} {
				one.By = "nat-pmp"
			}
		}
		if l.Ends != 0 {
			left := l.Left(now)
			one.Seconds = &left
		}
		e.Leases = append(e.Leases, one)
	}
	return e
}
