package view

import (
	"fmt"
	"io"

	"weir/internal/fw/rundir"
)

// Rule is a rule and its counters.
type Rule struct {
	rundir.RuleText
	Evaluations    uint64 `json:"evaluations"` // new connections that reached it
	Packets        uint64 `json:"packets"`
	Bytes          uint64 `json:"bytes"`
	States         uint64 `json:"states"`          // live ones that it matched, or decided
	StateCreations uint64 `json:"state_creations"` // that it ever made
}

// lists are FreeBSD's lists, in pfctl's order: translation rules, then scrub rules.
var lists = []string{"nat", "rdr", "binat", "scrub"}

// shown returns the rules that users see, those of translation lists first. The two parts
// of a binat rule count as one.
func shown(rules []Rule) []Rule {
	all := make([]Rule, 0, len(rules))
	for _, list := range append(lists, "") {
		first := len(all)
		for i := range rules {
			if rules[i].List == list && rules[i].Shown() {
				all = append(all, rules[i])
			}
		}
		for i := range rules {
			if r := &rules[i]; r.Back && r.List == list && r.Nr < len(all)-first {
				all[first+r.Nr].count(r)
			}
		}
	}
	return all
}

// count adds the counters of another part of the rule. Every crossing evaluates both.
func (r *Rule) count(part *Rule) {
	r.Evaluations = max(r.Evaluations, part.Evaluations)
	r.Packets += part.Packets
	r.Bytes += part.Bytes
	r.States += part.States
	r.StateCreations += part.StateCreations
}

// PrintRules writes rules as pfctl -sr does. With verbose 1 it adds the counters, as
// pfctl -sr -v does; with more, also the numbers, as -vv does.
func PrintRules(w io.Writer, rules []Rule, verbose, pid int) error {
	for i := range rules {
		r := &rules[i]
		text := r.Text
		if verbose > 1 {
			text = fmt.Sprintf("@%d %s", r.Nr, text)
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
		if verbose == 0 {
			continue
		}
		_, err := fmt.Fprintf(w, "  [ Evaluations: %-8d  Packets: %-8d  Bytes: %-10d  States: %-6d]\n"+
			"  [ Inserted: uid 0 pid %d State Creations: %-6d]\n",
			r.Evaluations, r.Packets, r.Bytes, r.States, pid, r.StateCreations)
		if err != nil {
			return err
		}
	}
	return nil
}
