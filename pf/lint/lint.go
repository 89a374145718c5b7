package lint

import (
	"weir/pf/diag"
	"weir/pf/resolve"
)

// Kinds of warnings that may occur often and mean no harm. One stands for all of its kind
// (diag.List.Fold).
const (
	unusedMacro = "macro that is never used"
	unusedTable = "table that is never used"
	unusedQueue = "queue that no rule names"
	idleLimit   = "qlimit"
)

// Warn adds warnings about a correct configuration to list.
func Warn(rules *resolve.Ruleset, list *diag.List) {
	unused(rules.Source.Stmts, list)
	shadows(rules.Rules, "an earlier one with quick", list)
	translations(rules.Translations, list)
	replacedSources(rules, list)
	packets := rules.Sequence()[len(rules.Ethers()):] // frames have no states
	noWayBack(packets, list)
	noStateOut(packets, list)
	queues(rules, list)
	tunnels(rules.Source.Stmts, list)
	list.Sort()
}

// warn adds a warning of a kind. Without a kind it is never folded.
func warn(list *diag.List, kind string, d diag.Diagnostic) {
	d.Severity, d.Kind = diag.Warning, kind
	list.Add(d)
}
