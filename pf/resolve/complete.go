package resolve

import (
	"slices"
	"strconv"
	"strings"

	"weir/pf/ast"
	"weir/pf/optimize"
)

// complete does what needs all rules of a ruleset. It optimizes them if requested, and
// replaces the macro $nr, the number of a rule, which depends on the remaining rules.
func (r *resolver) complete() {
	if r.faults.HasErrors() {
		return
	}
	if set := r.options.Optimization; r.optimize || r.asSet && (set == "basic" || set == "profile") {
		r.rules = optimize.Rules(r.rules, r.prefixTable)
	}
	of := map[ast.TranslationKind]int{}
	for _, t := range r.translations { // each list has its own numbers
		r.number(&t.Rule, of[t.Kind])
		of[t.Kind]++
	}
	for nr, rule := range r.rules {
		r.number(rule, nr)
	}
}

// prefixTable makes a table from addresses of rules.
func (r *resolver) prefixTable(hosts []ast.Host) ast.Host {
	entries := make([]ast.TableEntry, len(hosts))
	for i := range hosts {
		entries[i].Prefix = hosts[i].Prefix
	}
	return r.newTable(hosts, entries)
}

const numberMacro = "$nr"

// hasNumber reports whether a text of a rule contains its number.
func hasNumber(rule *ast.Rule) bool {
	in := func(w ast.Word) bool { return strings.Contains(w.Text, numberMacro) }
	return rule.Label != nil && in(*rule.Label) || slices.ContainsFunc(rule.MoreLabels, in) ||
		rule.Tag != nil && in(*rule.Tag) || rule.Tagged != nil && in(rule.Tagged.Name)
}

// number inserts the number into a rule's texts, which no other rule shares.
func (r *resolver) number(rule *ast.Rule, nr int) {
	if !hasNumber(rule) {
		return
	}
	replace := func(w *ast.Word, what string) {
		if w == nil {
			return
		}
		w.Text = strings.ReplaceAll(w.Text, numberMacro, strconv.Itoa(nr))
		r.checkText(w, what)
	}
	replace(rule.Label, "the label")
	for i := range rule.MoreLabels {
		replace(&rule.MoreLabels[i], "the label")
	}
	replace(rule.Tag, "the tag")
	if rule.Tagged != nil {
		replace(&rule.Tagged.Name, "the tag")
	}
}
