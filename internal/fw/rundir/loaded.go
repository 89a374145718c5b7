package rundir

import (
	"fmt"
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
	Started  time.Time `json:"started"` // since when packets have been filtered without a break
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
	// Gone says that the rule was replaced while its ruleset was in force. States that
	// it made may still live.
	Gone bool `json:"gone,omitempty"`
	// NATPorts is what nat-to chooses ports from; zero for rules that choose none.
	NATPorts PortRange `json:"nat_ports,omitzero"`
}

// PortRange is ports from Low to High, both too.
type PortRange struct {
	Low  uint16 `json:"low"`
	High uint16 `json:"high"`
}

// String says which ruleset is in force.
func (l *Loaded) String() string {
	if l.Unloaded {
		return "none loaded: everything is blocked but lo and the management port"
	}
	return fmt.Sprintf("%s, %s, loaded %s", l.File, RuleCount(l.Rules), l.Time.Format(time.DateTime))
}
