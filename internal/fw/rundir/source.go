package rundir

import (
	"net/netip"
	"time"

	"weir/pf/source"
)

// Source is the record of a ruleset's text, so it can be loaded again if its file has
// changed or is gone.
type Source struct {
	Name string `json:"name"` // as the user called the file, for diagnostics
	Path string `json:"path"` // absolute; Builtin for the built-in ruleset
	Text string `json:"text"`
	source.Beside
	Builtin bool `json:"builtin,omitempty"`
	// Hosts are the addresses that were found for host names in the text.
	Hosts map[string][]netip.Addr `json:"hosts,omitempty"`
	Load  uint64                  `json:"load,omitempty"` // tells loads apart, also of the same text
	// Settling are tables whose records may still be those of the rules before.
	Settling   []string  `json:"settling,omitempty"`
	Time       time.Time `json:"time"`       // of the load
	Generation uint32    `json:"generation"` // of the dataplane that it was loaded as
}
