package resolve

import (
	"slices"

	"weir/pf/ast"
	"weir/pf/diag"
)

// maxShares limits the entries that weights make from a table's addresses.
const maxShares = 1 << 16

// weighable reports whether the weights of these addresses can be used: there are not too
// many shares.
func weighable(hosts []ast.Host) bool { return len(shares(hosts)) > 0 }

// A weighing is how the weights of a pool's addresses count.
type weighing uint8

const (
	noWeights weighing = iota // not at all
	repeated                  // in turn: an address comes as often as its weight says
	asNoted                   // its states are divided by the weight
)

// weighingOf returns how the weights of a pool's addresses count, as in pf.
func weighingOf(p *ast.Pool) weighing {
	switch p.Type {
	case ast.RoundRobin, ast.NoPoolType:
		return repeated
	case ast.LeastStates:
		return asNoted
	}
	return noWeights
}

// noted writes a host's weight into its addresses if the pool divides states by it.
func noted(addrs []Address, h *ast.Host, p *ast.Pool) []Address {
	if weighingOf(p) != asNoted || h.Weight == 0 {
		return addrs
	}
	out := slices.Clone(addrs)
	for i := range out {
		out[i].Weight = h.Weight
	}
	return out
}

// lostWeight is the word for weights that are not weighable.
const lostWeight = "weights with so many shares"

// smallerWeights is what to write instead.
const smallerWeights = "smaller weights in the same proportion do the same"

// weighted returns a table's addresses of a family, each as often as its weight says, or with
// its weight. It returns nil if there are no weights, or none that can be used. All addresses
// of a network have its weight.
func weighted(t *ast.Table, family ast.Family, weighs weighing) []Address {
	var hosts []ast.Host
	var pieces [][]Address // of each host
	left := remainder{}
	out := excluded(t.Entries)
	for _, h := range weightedHosts(t) {
		if h.Not || family != ast.AnyFamily && familyOf(&h) != family {
			continue
		}
		left.addrs = nil
		for _, a := range hostAddrs(&h) {
			if a.Kind != PrefixAddress {
				left.addrs = append(left.addrs, a)
			} else {
				left.add(a.Prefix, out.of(a.Prefix))
			}
		}
		if len(left.addrs) > 0 {
			hosts, pieces = append(hosts, h), append(pieces, left.addrs)
		}
	}
	if !hasWeights(hosts) || left.splits > maxSplits || weighs == repeated && !weighable(hosts) {
		return nil
	}
	var addrs []Address
	if weighs == asNoted {
		for i, piece := range pieces {
			for _, a := range piece {
				a.Weight = hosts[i].Weight
				addrs = append(addrs, a)
			}
		}
		return addrs
	}
	for _, at := range shares(hosts) {
		addrs = append(addrs, pieces[at]...)
	}
	return addrs
}

// weightedHosts returns the elements of a table's lists and files, in order. Those of files
// have no weight. It returns nil if no element has one.
func weightedHosts(t *ast.Table) []ast.Host {
	if !slices.ContainsFunc(t.Sources, func(s ast.TableSource) bool { return hasWeights(s.Hosts) }) {
		return nil
	}
	hosts := make([]ast.Host, 0, len(t.Entries))
	at := 0
	for _, source := range t.Sources {
		for _, e := range t.Entries[at : at+source.Loaded] {
			hosts = append(hosts, ast.Host{Span: source.Span, Kind: ast.HostPrefix, Prefix: e.Prefix, Bits: -1, Not: e.Not})
		}
		hosts = append(hosts, source.Hosts...)
		at += source.Loaded + len(entries(source.Hosts))
	}
	return hosts
}

// weightsLost warns, once for each configuration, that the output has no weights, as in
// pf. Loading the output leads to other shares.
func (r *resolver) weightsLost(hosts []ast.Host) {
	for i := range hosts {
		if h := &hosts[i]; h.Weight > 0 {
			r.faults.Add(diag.Diagnostic{
				Severity: diag.Warning, Span: h.Span, Kind: "weight",
				Message: "the printed rules do not show weight: read back, all addresses weigh the same",
			})
			return
		}
	}
}

// tableWeights warns about weights in a table that are not printed or cannot be used.
func (r *resolver) tableWeights(t *ast.Table) {
	hosts := weightedHosts(t)
	r.weightsLost(hosts)
	if hosts != nil && !weighable(hosts) {
		r.faults.UnenforcedBut(t.Span, lostWeight, smallerWeights)
	}
}

func hasWeights(hosts []ast.Host) bool {
	for i := range hosts {
		if hosts[i].Weight > 0 {
			return true
		}
	}
	return false
}

// shares returns the order in which weighted round-robin takes its elements. As in pf, it
// goes in rounds of falling weight, each with all elements of at least that weight. It is
// empty if it would be too long.
func shares(hosts []ast.Host) []int {
	top, step, total := 1, 0, 0
	for i := range hosts {
		w := weightOf(&hosts[i])
		top, step, total = max(top, w), gcd(w, step), total+w
	}
	if step == 0 || total/step > maxShares {
		return nil
	}
	order := make([]int, 0, total/step)
	for round := top; round > 0; round -= step {
		for i := range hosts {
			if weightOf(&hosts[i]) >= round {
				order = append(order, i)
			}
		}
	}
	return order
}

// turns returns the elements of a pool in the order in which they are taken, each as often as
// its weight says.
func turns(p *ast.Pool) []int {
	if weighingOf(p) == repeated && hasWeights(p.Hosts) {
		if order := shares(p.Hosts); order != nil {
			return order
		}
	}
	order := make([]int, len(p.Hosts))
	for i := range order {
		order[i] = i
	}
	return order
}

func weightOf(h *ast.Host) int { return max(int(h.Weight), 1) }

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
