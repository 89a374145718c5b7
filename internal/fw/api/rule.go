package api

import (
	"fmt"
	"io"
	"strconv"
	"time"
)

// Builtin is in the place of a file's path for the rules that hold while nothing
// has been loaded.
const Builtin = "built-in"

// Loaded is the record of the ruleset in force.
type Loaded struct {
	File     string    `json:"file"`     // absolute; Builtin for the built-in ruleset
	Unloaded bool      `json:"unloaded"` // the built-in ruleset: nothing has been loaded
	Time     time.Time `json:"time"`
	Base     uint32    `json:"base"`    // global number of rule 0
	Rules    int       `json:"rules"`   // how many
	Limit    uint32    `json:"limit"`   // set limit states
	PID      int       `json:"pid"`     // of the daemon that loaded it
	Mode     string    `json:"mode"`    // --hook
	Started  time.Time `json:"started"` // since when packets are judged without a break
}

// RuleCount says how many rules there are.
func RuleCount(n int) string {
	if n == 1 {
		return "1 rule"
	}
	return strconv.Itoa(n) + " rules"
}

// RuleText is a rule as the record of its ruleset keeps it.
type RuleText struct {
	Nr    int    `json:"nr"`
	Text  string `json:"text"`
	File  string `json:"file"` // as in Loaded
	Line  int    `json:"line"`
	Label string `json:"label,omitempty"`
	// NATPorts is what nat-to chooses ports from; nil for rules that choose none.
	NATPorts *PortRange `json:"nat_ports,omitempty"`
}

// PortRange is ports from Low to High, both too.
type PortRange struct {
	Low  uint16 `json:"low"`
	High uint16 `json:"high"`
}

// Rule is a rule and what it has counted.
type Rule struct {
	RuleText
	Evaluations    uint64 `json:"evaluations"` // new connections that reached it
	Packets        uint64 `json:"packets"`
	Bytes          uint64 `json:"bytes"`
	States         uint64 `json:"states"`          // live ones that it matched, or decided
	StateCreations uint64 `json:"state_creations"` // that it ever made
}

// PrintRules writes rules as pfctl -sr does, with their counters as pfctl -sr -v
// does if verbose is 1, and with their numbers as -vv does if it is more.
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
