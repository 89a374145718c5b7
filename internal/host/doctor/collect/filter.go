package collect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/internal/host/doctor"
	"weir/internal/host/netif"
	"weir/internal/host/xfrm"
)

// chains reads what other packet filters do with forwarded packets. Only the nft program
// shows the chains of nftables, and of iptables on top of it.
func (r *reader) chains() {
	legacy, err := netif.LegacyForwardDrops()
	if err != nil {
		r.lacks("chains", err)
		return
	}
	found := []doctor.Chain{}
	for _, name := range legacy {
		found = append(found, doctor.Chain{Name: name, Hook: "forward", Policy: "drop"})
	}
	if _, err := exec.LookPath("nft"); err != nil {
		if len(found) > 0 {
			r.snapshot.Chains = found
		}
		r.lacks("chains", errors.New("the nft program is not installed"))
		return
	}
	cmd := exec.Command("nft", "-j", "-t", "list", "ruleset")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err == nil {
		var more []doctor.Chain
		more, err = parseRuleset(out, r.opts.GuardTable)
		found = append(found, more...)
	} else {
		line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
		err = fmt.Errorf("nft list ruleset: %s: %w", line, err)
	}
	if err != nil {
		r.lacks("chains", err)
		return
	}
	r.snapshot.Chains = found
}

// nftObject is one object of nft's JSON (libnftables-json(5)).
type nftObject struct {
	Chain *struct{ Family, Table, Name, Type, Hook, Policy string }
	Rule  *struct {
		Family, Table, Chain string
		Expr                 []map[string]json.RawMessage
	}
}

// parseRuleset lists forward chains, and chains that translate sources, except those of
// the table own.
func parseRuleset(text []byte, own string) ([]doctor.Chain, error) {
	var all struct{ Nftables []nftObject }
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read nft's ruleset: %w", err)
	}
	var found []doctor.Chain
	for _, x := range all.Nftables {
		if c := x.Chain; c != nil && c.Hook == "forward" && c.Family+" "+c.Table != own {
			found = append(found, doctor.Chain{Name: strings.Join([]string{"nftables", c.Family, c.Table, c.Name}, " "), Hook: c.Hook, Policy: c.Policy,
				Accepts: accepts(all.Nftables, c.Family, c.Table, c.Name, map[string]bool{})})
		}
		if c := x.Rule; c != nil && translates(c.Expr) {
			chain := doctor.Chain{Name: strings.Join([]string{"nftables", c.Family, c.Table, c.Chain}, " "), Hook: "postrouting", NAT: true}
			if len(found) == 0 || found[len(found)-1].Name != chain.Name {
				found = append(found, chain)
			}
		}
	}
	return found, nil
}

// accepts lists the interfaces from which the rules of a chain, and of those that it jumps to,
// accept all packets; "*": from all of them. A rule with other conditions than interface and
// source, such as one for replies alone, does not count.
func accepts(all []nftObject, family, table, chain string, seen map[string]bool) []string {
	found := []string{}
	if seen[chain] {
		return found
	}
	seen[chain] = true
	for _, x := range all {
		r := x.Rule
		if r == nil || r.Family != family || r.Table != table || r.Chain != chain {
			continue
		}
		from, others, next, accept := readRule(r.Expr)
		within := []string{"*"}
		if next != "" {
			within = accepts(all, family, table, next, seen)
		}
		switch {
		case others || next == "" && !accept:
		case len(from) == 0:
			found = append(found, within...)
		case slices.Contains(within, "*"):
			found = append(found, from...)
		}
	}
	return found
}

// readRule returns the interfaces that a rule's packets must come from, whether it has other
// conditions, and where it ends.
func readRule(expr []map[string]json.RawMessage) (from []string, others bool, next string, accept bool) {
	for _, e := range expr {
		var jump struct{ Target string }
		for key, value := range e {
			switch key {
			case "accept":
				accept = true
			case "jump", "goto":
				if json.Unmarshal(value, &jump) == nil {
					next = jump.Target
				}
			case "counter", "comment":
			case "match":
				names := incoming(value)
				from = append(from, names...)
				others = others || len(names) == 0 && !bytes.Contains(value, []byte(`"saddr"`))
			default:
				others = true
			}
		}
	}
	return from, others, next, accept
}

// incoming returns the interfaces that a match of iifname wants; none if it is another match.
func incoming(match json.RawMessage) []string {
	var m struct {
		Op   string
		Left struct{ Meta struct{ Key string } }
		// Right is a name, or a set of names.
		Right json.RawMessage
	}
	if json.Unmarshal(match, &m) != nil || m.Op != "==" || m.Left.Meta.Key != "iifname" && m.Left.Meta.Key != "iif" {
		return nil
	}
	var one string
	if json.Unmarshal(m.Right, &one) == nil {
		return []string{one}
	}
	var several struct{ Set []string }
	if json.Unmarshal(m.Right, &several) == nil {
		return several.Set
	}
	return nil
}

// translates reports whether a rule changes sources. iptables on nftables has a field of
// its own for that.
func translates(expr []map[string]json.RawMessage) bool {
	return slices.ContainsFunc(expr, func(e map[string]json.RawMessage) bool {
		return e["masquerade"] != nil || e["snat"] != nil || bytes.Contains(e["xt"], []byte("MASQUERADE")) || bytes.Contains(e["xt"], []byte("SNAT"))
	})
}

// routes lists default routes.
func (r *reader) routes() {
	names := map[int]string{}
	links, err := r.devices.netlink.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		r.lacks("routes", err)
		return
	}
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	found := []doctor.Route{}
	for family, word := range map[int]string{netlink.FAMILY_V4: "inet", netlink.FAMILY_V6: "inet6"} {
		all, err := r.devices.netlink.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			r.lacks("routes", err)
			return
		}
		for i := range all {
			found = append(found, defaultsOf(&all[i], word, names)...)
		}
	}
	r.snapshot.Routes = found
}

// defaultsOf returns the paths of a default route. It returns none for other routes.
func defaultsOf(route *netlink.Route, family string, names map[int]string) (found []doctor.Route) {
	if route.Dst != nil {
		if ones, _ := route.Dst.Mask.Size(); ones != 0 {
			return nil
		}
	}
	origin := ""
	if route.Protocol == unix.RTPROT_RA {
		origin = "ra"
	}
	add := func(index int, gateway []byte) {
		if index == 0 {
			return
		}
		address, _ := netip.AddrFromSlice(gateway)
		found = append(found, doctor.Route{Interface: names[index], Gateway: address.Unmap(), Family: family, Origin: origin})
	}
	add(route.LinkIndex, route.Gw)
	for _, hop := range route.MultiPath {
		add(hop.LinkIndex, hop.Gw)
	}
	return found
}

// markRules lists the policy routing rules that compare a packet's mark.
func (r *reader) markRules() {
	rules, err := netif.MarkRules()
	if err != nil {
		r.lacks("mark_rules", err)
		return
	}
	r.snapshot.MarkRules = []doctor.MarkRule{}
	for _, rule := range rules {
		family := "inet"
		if rule.IPv6 {
			family = "inet6"
		}
		r.snapshot.MarkRules = append(r.snapshot.MarkRules, doctor.MarkRule{Family: family, Priority: rule.Priority, Mark: rule.Mark, Mask: rule.Mask})
	}
}

// policies counts the IPsec policies for what is forwarded.
func (r *reader) policies() {
	all, defaults, err := xfrm.Policies()
	if err != nil && !errors.Is(err, xfrm.ErrNone) {
		r.lacks("ipsec_policies", err)
		return
	}
	p := &doctor.Policies{Blocks: defaults.BlockOut || defaults.BlockForward}
	for i := range all {
		switch {
		case all[i].Direction != xfrm.Out && all[i].Direction != xfrm.Forward:
		case all[i].IfID == 0:
			p.Bare++
		default:
			p.Bound++
		}
	}
	r.snapshot.Policies = p
}

// weir reads the dataplane's own counters from its pinned maps.
type weir struct{ view *dataplane.View }

var errNotRoot = errors.New("only root may read weir's counters")

// openWeir returns nil without an error if weir does not run.
func openWeir() (*weir, error) {
	if os.Geteuid() != 0 {
		return nil, errNotRoot
	}
	dir, err := dataplane.Folder("")
	if err != nil {
		return nil, err
	}
	view, err := dataplane.Open(dir)
	if errors.Is(err, dataplane.ErrNotLoaded) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read weir's counters: %w", err)
	}
	return &weir{view}, nil
}

func (w *weir) close() {
	if w != nil {
		_ = w.view.Close() // it was only read
	}
}

// count returns nil if weir does not run.
func (w *weir) count() (*doctor.WeirCount, error) {
	if w == nil {
		return nil, nil
	}
	info, err := w.view.Info()
	if err != nil {
		return nil, err
	}
	all, err := w.view.Interfaces()
	if err != nil {
		return nil, err
	}
	count := &doctor.WeirCount{States: int(info.States), Reasons: map[string]uint64{}}
	for i := range all {
		for _, why := range reason.All() {
			if n := all[i].Reasons[why].Packets; n > 0 {
				count.Reasons[why.String()] += n
			}
		}
	}
	return count, nil
}

func (r *reader) hooks() {
	if r.weir == nil {
		return
	}
	info, err := r.weir.view.Info()
	if err != nil {
		r.lacks("weir", err)
		return
	}
	r.snapshot.Weir = &doctor.Weir{StateLimit: int(info.MaxStates)}
	if r.opts.Hooks != nil {
		if r.snapshot.Weir.Interfaces, err = r.opts.Hooks(); err != nil {
			r.lacks("weir.interfaces", err)
		}
	}
	if r.opts.MarkMask != nil {
		if r.snapshot.Weir.MarkMask, err = r.opts.MarkMask(); err != nil {
			r.lacks("weir.mark_mask", err)
		}
	}
	if r.opts.NATPorts != nil {
		if r.snapshot.Weir.NATPorts, err = r.opts.NATPorts(); err != nil {
			r.lacks("weir.nat_ports", err)
		}
	}
	if r.opts.Sessions != nil {
		if r.snapshot.Weir.Sessions, err = r.opts.Sessions(); err != nil {
			r.lacks("weir.sessions", err)
		}
	}
}

// natUses counts the ports in use, if there are rules that choose ports.
func (r *reader) natUses(c *doctor.Counters) {
	if r.weir == nil || c.Weir == nil || r.snapshot.Weir == nil || len(r.snapshot.Weir.NATPorts) == 0 {
		return
	}
	smallest := math.MaxInt
	for _, p := range r.snapshot.Weir.NATPorts {
		smallest = min(smallest, p.Size())
	}
	found := []doctor.NATUse{}
	for _, u := range r.weir.view.NATUses(max(doctor.LeastNATPorts, smallest/2)) {
		found = append(found, doctor.NATUse{
			Protocol: state.Protocol(u.Proto), Address: u.Address, Far: u.Far, Ports: u.Ports, Low: u.Low, High: u.High,
		})
	}
	c.Weir.NAT = r.snapshot.Weir.Fullest(found)
}
