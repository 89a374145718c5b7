package resolve

import "weir/pf/ast"

// A SetPrio is the priority that a rule sets: N, and Ack for packets that carry no data
// or request a low delay. Set is false if the rule sets none.
type SetPrio struct {
	Set    bool
	N, Ack uint8
}

// A SetQueue names the queue of a rule's packets, and the one for packets that carry no
// data or request a low delay. Both are empty if the rule names none.
type SetQueue struct {
	Name, Ack string
}

// lowerPriority sets the priorities and queues of a rule's packets. As in pf, an anchor
// sets none: its rules do.
func lowerPriority(in *ast.Rule, out *Rule) {
	if in.Anchor != nil {
		return
	}
	if p := in.Set.Prio; p != nil {
		out.SetPrio = SetPrio{Set: true, N: uint8(p.N), Ack: uint8(p.Ack)}
	}
	if d := in.Dummynet; d != nil {
		out.SetQueue = SetQueue{Name: d.Name, Ack: d.Name}
	}
	if q := in.Set.Queue; q != nil {
		out.SetQueue = SetQueue{Name: q.Name.Text, Ack: q.Name.Text}
		if q.Ack != nil {
			out.SetQueue.Ack = q.Ack.Text
		}
	}
}
