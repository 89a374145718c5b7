package resolve

import (
	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// stage is the position of a kind of statements under set require-order yes.
type stage uint8

const (
	anyStage stage = iota // macros, tables and other statements without a fixed position
	optionStage
	etherStage
	scrubStage
	queueStage
	translationStage
	filterStage
)

var stageNames = [...]string{
	optionStage: "options", etherStage: "ether rules", scrubStage: "scrub rules", queueStage: "queues",
	translationStage: "translation rules", filterStage: "filter rules",
}

func stageOf(s ast.Stmt) stage {
	switch s.(type) {
	case *ast.Timeout, *ast.Limit, *ast.Skip, *ast.Spread, *ast.ImplicitPass, *ast.MarkMask, *ast.BlockPolicy, *ast.Reassemble, *ast.Syncookies,
		*ast.InterfaceGroup, *ast.Gateway, *ast.PFlow, *ast.PPPoE, *ast.WireGuard, *ast.Peer, *ast.IKEv2, *ast.StateDefaults, *ast.Option:
		return optionStage
	case *ast.Ether:
		return etherStage
	case *ast.ScrubRule:
		return scrubStage
	case *ast.Queue, *ast.Discipline, *ast.DummynetDef:
		return queueStage
	case *ast.Translation, *ast.PacketPipe:
		return translationStage
	case *ast.Rule, *ast.Antispoof:
		return filterStage
	}
	return anyStage
}

// order is FreeBSD's set require-order, and the latest stage seen.
type order struct {
	required bool
	last     stage
	at       token.Span
}

// checkOrder rejects a statement that follows one of a later stage, if set require-order
// is on.
func (r *resolver) checkOrder(s ast.Stmt) {
	if o, ok := s.(*ast.Option); ok && o.Name.Text == "require-order" {
		r.order.required = o.Value.Text == "yes"
		return
	}
	now := stageOf(s)
	if now == anyStage {
		return
	}
	if r.order.required && now < r.order.last {
		r.faults.Add(diag.Diagnostic{
			Span:    s.Whole(),
			Message: "set require-order: " + stageNames[now] + " must come before " + stageNames[r.order.last],
			Related: []diag.Related{{Span: r.order.at}},
		})
		return // statements after it are compared with the later kind
	}
	r.order.last, r.order.at = now, s.Whole()
}
