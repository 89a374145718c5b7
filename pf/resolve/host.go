package resolve

import "net/netip"

// Host is what the resolver asks about the machine that a file is meant for.
// internal/netif fills it from the kernel; weir check --host reads it from a
// JSON file, so that a file can be checked for another machine.
type Host struct {
	Interfaces []HostInterface         `json:"interfaces"`
	Hosts      map[string][]netip.Addr `json:"hosts,omitempty"`
	Users      map[string]uint32       `json:"users,omitempty"`
	Groups     map[string]uint32       `json:"groups,omitempty"`
}

// HostInterface is one interface, its addresses in the interface's order.
type HostInterface struct {
	Name      string         `json:"name"`
	Groups    []string       `json:"groups"`
	Addresses []netip.Prefix `json:"addresses"`
}
