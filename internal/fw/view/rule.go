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
