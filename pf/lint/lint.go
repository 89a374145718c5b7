package lint

import (
	"weir/pf/diag"
	"weir/pf/resolve"
)

// Kinds of warnings of which there may be many that mean no harm, so that one
// stands for all (diag.List.Fold).
const (
	unusedMacro = "macro that is never used"
	unusedTable = "table that is never used"
)

// Warn adds warnings about a configuration that is right to list.
func Warn(rules *resolve.Ruleset, list *diag.List) {
	unused(rules.Source.Stmts, list)
	shadows(rules.Rules, "an earlier one with quick", list)
	translations(rules.Translations, list)
	noWayBack(rules.Rules, list)
	noStateOut(rules.Rules, list)
	list.Sort()
}

// warn adds a warning of a kind; an empty one stands for itself.
func warn(list *diag.List, kind string, d diag.Diagnostic) {
	d.Severity, d.Kind = diag.Warning, kind
	list.Add(d)
}
