package resolve

import "weir/pf/ast"

// A SetPrio is the priority that a rule gives packets: N, and Ack to those that
// carry no data or ask for a low delay. Set is false where the rule gives none.
type SetPrio struct {
	Set    bool
	N, Ack uint8
}

// A SetQueue names the queue that a rule puts packets into, and the one for those
// that carry no data or ask for a low delay. Both are empty where the rule names
// none.
type SetQueue struct {
	Name, Ack string
}

// lowerPriority fills in what a rule gives the packets that match it. As in pf, an
// anchor gives none: its rules do.
func lowerPriority(in *ast.Rule, out *Rule) {
	if in.Anchor != nil {
		return
	}
	if p := in.Set.Prio; p != nil {
		out.SetPrio = SetPrio{Set: true, N: uint8(p.N), Ack: uint8(p.Ack)}
	}
	if q := in.Set.Queue; q != nil {
		out.SetQueue = SetQueue{Name: q.Name.Text, Ack: q.Name.Text}
		if q.Ack != nil {
			out.SetQueue.Ack = q.Ack.Text
		}
	}
}
