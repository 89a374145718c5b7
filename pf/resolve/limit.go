package resolve

import (
	"fmt"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// MostStates is the largest limit of states: a packet's mark has 26 bits for the
// number of its state (docs/packet-path.md).
const MostStates = 1<<26 - 1

// MostSources is the largest limit of sources (MAX_SOURCES of bpf/config.h).
const MostSources = 1<<24 - 1

// limit notes a set limit. weir has no reassembled fragments or delayed packets that could
// be limited.
func (r *resolver) limit(s *ast.Limit) {
	for _, item := range s.Items {
		switch name := item.Name.Text; {
		case item.Count == 0:
			r.faults.Errorf(item.Value.Span, "the limit of %s must be at least 1", name)
		case name == "states" && item.Count > MostStates:
			r.faults.Errorf(item.Value.Span, "the limit of %s must be at most %d", name, MostStates)
		case name == "states":
			r.options.MaxStates = item.Count
		case name == "src-nodes" && item.Count > MostSources:
			r.faults.Errorf(item.Value.Span, "the limit of %s must be at most %d", name, MostSources)
		case name == "src-nodes":
			r.options.MaxSources = item.Count
		default:
			r.limits[name] = item
			r.tableLimits(name, item.Count)
		}
	}
}

// tableLimits stores the limits that also hold while the rules are loaded.
func (r *resolver) tableLimits(name string, count uint32) {
	switch name {
	case "tables":
		r.options.MaxTables = count
	case "table-entries":
		r.options.MaxTableEntries = count
	}
}

// checkLimits checks that the tables keep to the limits in the file. Without a limit only
// the machine's memory counts.
func (r *resolver) checkLimits() {
	tables, entries := uint64(0), uint64(0)
	for _, t := range r.defined {
		tables++
		entries += uint64(len(t.Entries))
		r.within("tables", tables, t.Name.Span)
		r.within("table-entries", entries, t.Name.Span)
	}
}

// within reports an error at the first place that exceeds a limit.
func (r *resolver) within(name string, count uint64, at token.Span) {
	limit, set := r.limits[name]
	if !set || count <= uint64(limit.Count) {
		return
	}
	delete(r.limits, name)
	r.faults.Add(diag.Diagnostic{
		Span:    at,
		Message: fmt.Sprintf("more %s than set limit %s allows: %d", name, name, limit.Count),
		Related: []diag.Related{{Span: limit.Name.Span.To(limit.Value.Span), Note: "set here"}},
	})
}
