package view

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"text/tabwriter"

	"weir/internal/fw/rundir"
	"weir/internal/host/hostdb"
	"weir/internal/host/netif"
	"weir/pf/resolve"
)

// Interfaces is the result of weir interfaces: the machine, in the form that weir check
// --host reads, and what weir does on it.
type Interfaces struct {
	Interfaces []rundir.Interface `json:"interfaces"`
	// The machine's names, for weir check --host, without the services and protocols
	// that weir knows anyway.
	Hosts     map[string][]netip.Addr `json:"hosts,omitempty"`
	Users     map[string]uint32       `json:"users,omitempty"`
	Groups    map[string]uint32       `json:"groups,omitempty"`
	Services  []resolve.Service       `json:"services,omitempty"`
	Protocols []resolve.Protocol      `json:"protocols,omitempty"`
	// ForeignDrops are forward chains of other firewalls with policy drop, as
	// "nftables family table chain" or "iptables table chain". They see the packets
	// that weir hands to the stack.
	ForeignDrops []string `json:"foreign_forward_drops,omitempty"`
	Tunnels      []Tunnel `json:"tunnels,omitempty"` // that the rules in force have
}

// Tunnel says which engine an interface of a tunnel has.
type Tunnel struct {
	Interface string `json:"interface"`
	Engine    string `json:"engine,omitempty"` // empty: none
	Why       string `json:"why"`
}

// ReadInterfaces lists the machine's interfaces with the hooks that the daemon recorded.
// choose returns the hook that weir would use for an interface without one.
func ReadInterfaces(f rundir.Folder, choose func(*netif.Link) (why string)) (*Interfaces, error) {
	links, err := netif.Links()
	if err != nil {
		return nil, err
	}
	host, err := hostdb.Host(links)
	if err != nil {
		return nil, err
	}
	var recorded []rundir.Interface
	if err := rundir.ReadJSON(f.Interfaces(), &recorded); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the record of interfaces: %w", err)
	}
	known := make(map[int]*rundir.Interface, len(recorded))
	for i := range recorded {
		known[recorded[i].Index] = &recorded[i]
	}
	if err := hostdb.Fill(host, os.DirFS("/")); err != nil {
		return nil, err
	}
	all := &Interfaces{Interfaces: []rundir.Interface{}, Hosts: host.Hosts, Users: host.Users, Groups: host.Groups}
	all.Services, all.Protocols = host.Unusual()
	for i := range links {
		n := rundir.NewInterface(&links[i], host.Interfaces[i].Groups)
		n.Default = host.Interfaces[i].Default
		n.Hook, n.Why = "none", choose(&links[i])
		if k := known[n.Index]; k != nil {
			n.Hook, n.Mode, n.Why, n.Spread, n.Skip = k.Hook, k.Mode, k.Why, k.Spread, k.Skip
		}
		if n.Hook == "xdp" && losesReplies(&links[i]) {
			n.Why += "; the other end has neither GRO nor XDP, so what weir rejects (block return) gets no answer"
		}
		all.Interfaces = append(all.Interfaces, n)
	}
	return all, nil
}

// losesReplies reports whether the kernel loses what XDP sends back by an interface: that of a veth
// whose other end does not wait for it. Nobody tells when the other end changes, so it is asked for now.
func losesReplies(l *netif.Link) bool {
	if l.Kind != netif.Veth {
		return false
	}
	target, err := netif.XDPTargetOf(l.Index)
	return err == nil && !target.Any
}

// Print writes a table with one interface per line, then the engines of tunnels and the foreign chains.
func (x *Interfaces) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "INTERFACE\tHOOK\tMODE\tDRIVER\tQUEUES\tMTU\tWHY")
	for i := range x.Interfaces {
		n := &x.Interfaces[i]
		why := n.Why
		if n.Spread != "" {
			why += "; set spread: " + n.Spread
		}
		if n.Skip {
			why = "set skip; " + why
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d\t%s\n", n.Name, n.Hook, dash(n.Mode), dash(n.Driver), n.Queues, n.MTU, why)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, tunnel := range x.Tunnels {
		has := "no engine"
		if tunnel.Engine != "" {
			has = "the engine " + tunnel.Engine
		}
		if _, err := fmt.Fprintf(w, "the tunnel %s has %s: %s\n", tunnel.Interface, has, tunnel.Why); err != nil {
			return err
		}
	}
	for _, chain := range x.ForeignDrops {
		if _, err := fmt.Fprintf(w, "the forward chain %s of another firewall drops packets by default, also those that weir hands to the stack: accept them there\n", chain); err != nil {
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
