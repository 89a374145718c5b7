package api

import (
	"fmt"
	"io"
	"net/netip"
	"text/tabwriter"

	"weir/internal/host/netif"
	"weir/pf/resolve"
)

// Interfaces is the answer of weir interfaces: the form in which weir check
// --host takes a machine, and what weir does on it.
type Interfaces struct {
	Interfaces []Interface `json:"interfaces"`
	// The machine's names, for weir check --host. Services and protocols that
	// weir knows without are left out.
	Hosts     map[string][]netip.Addr `json:"hosts,omitempty"`
	Users     map[string]uint32       `json:"users,omitempty"`
	Groups    map[string]uint32       `json:"groups,omitempty"`
	Services  []resolve.Service       `json:"services,omitempty"`
	Protocols []resolve.Protocol      `json:"protocols,omitempty"`
	// ForeignDrops are forward chains of other firewalls with policy drop, as
	// "nftables family table chain" or "iptables table chain": they see what
	// weir hands to the stack.
	ForeignDrops []string `json:"foreign_forward_drops,omitempty"`
}

// Interface is one interface and the hook that its packets are judged at.
type Interface struct {
	Name      string         `json:"name"`
	Groups    []string       `json:"groups"`
	Addresses []netip.Prefix `json:"addresses"`               // in the interface's order
	Peers     []netip.Addr   `json:"peers,omitempty"`         // the other ends of its point-to-point links
	Default   []netip.Addr   `json:"default_route,omitempty"` // the gateways of its default routes
	Index     int            `json:"index"`
	Kind      string         `json:"kind"` // physical, or the kernel's name of the kind
	Up        bool           `json:"up"`
	Hook      string         `json:"hook"`             // xdp, tcx or none
	Mode      string         `json:"mode,omitempty"`   // native, for hook xdp
	Why       string         `json:"why"`              // why this hook
	Driver    string         `json:"driver,omitempty"` // "" for devices without one
	Queues    int            `json:"queues"`           // receive queues in use
	MTU       int            `json:"mtu"`              // bytes
	Skip      bool           `json:"skip,omitempty"`   // set skip on
}

// NewInterface is the part of an Interface that the machine tells.
func NewInterface(l *netif.Link, groups []string) Interface {
	n := Interface{
		Name: l.Name, Groups: groups, Addresses: []netip.Prefix{},
		Index: l.Index, Kind: string(l.Kind), Up: l.Up,
		Driver: netif.Driver(l.Name), Queues: netif.Queues(l), MTU: l.MTU,
	}
	for _, a := range l.Addresses {
		n.Addresses = append(n.Addresses, a.Prefix)
		if a.Peer.IsValid() {
			n.Peers = append(n.Peers, a.Peer)
		}
	}
	return n
}

// Print writes a table, one interface a line, then the foreign chains.
func (x *Interfaces) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "INTERFACE\tHOOK\tMODE\tDRIVER\tQUEUES\tMTU\tWHY")
	for i := range x.Interfaces {
		n := &x.Interfaces[i]
		why := n.Why
		if n.Skip {
			why = "set skip; " + why
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d\t%s\n", n.Name, n.Hook, dash(n.Mode), dash(n.Driver), n.Queues, n.MTU, why)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, chain := range x.ForeignDrops {
		if _, err := fmt.Fprintf(w, "another firewall's chain, %s, drops what is forwarded unless it accepts it: it sees the packets that weir hands to the stack\n", chain); err != nil {
			return err
		}
	}
	return nil
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
