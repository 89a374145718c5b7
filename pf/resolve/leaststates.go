package resolve

import (
	"fmt"
	"hash/fnv"
	"strings"

	"weir/pf/ast"
)

// automaticTable begins the names of the tables that lists become.
const automaticTable = "__automatic_"

// countsUnder returns the number under which a pool with least-states counts the states at its
// addresses. As in pf it is that of the table, whatever rules choose from it. It is the same
// after a load, also for a list: the number of its automatic table depends on other rules.
func (r *resolver) countsUnder(p *ast.Pool) uint32 {
	hosts := p.Hosts
	if len(hosts) == 1 && hosts[0].Kind == ast.HostTable {
		name := hosts[0].Name
		t := r.tableOf(r.scope, name)
		switch {
		case t != nil && strings.HasPrefix(name, automaticTable) && len(t.Sources) == 1:
			hosts = t.Sources[0].Hosts
		case r.scope.tables[name] != nil:
			return nameNumber("<" + r.scope.qualified(name) + ">")
		default:
			return nameNumber("<" + name + ">")
		}
	}
	var text strings.Builder
	for i := range hosts {
		h := &hosts[i]
		fmt.Fprintf(&text, "%d %s %s %s %s %d %t %t %t,", h.Kind, h.Prefix, h.Last, h.Name, h.Via+"%"+h.Zone, h.Bits, h.Network, h.Peer, h.NoAlias)
	}
	return nameNumber(text.String())
}

// nameNumber returns a hash that is not 0.
func nameNumber(text string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(text))
	return max(h.Sum32(), 1)
}
