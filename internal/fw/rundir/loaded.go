package rundir

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"weir/internal/fw/shaper"
	"weir/pf/source"
)

// Builtin stands for a file's path while the built-in rules are in force, because
// nothing was loaded.
const Builtin = "built-in"

// Loaded is the record of the ruleset in force.
type Loaded struct {
	File     string    `json:"file"`     // absolute; Builtin for the built-in ruleset
	Unloaded bool      `json:"unloaded"` // the built-in ruleset: nothing has been loaded
	Time     time.Time `json:"time"`
	Base     uint32    `json:"base"`                // global number of rule 0
	Rules    int       `json:"rules"`               // how many
	Limit    uint32    `json:"limit"`               // set limit states
	MarkMask uint32    `json:"mark_mask,omitempty"` // set mark-mask; 0: unknown
	// Of set limit and set timeout what the daemon alone knows; 0: no limit.
	MaxTables       uint32            `json:"max_tables,omitempty"`
	MaxTableEntries uint32            `json:"max_table_entries,omitempty"`
	SrcTrack        uint32            `json:"src_track,omitempty"` // seconds
	Queues          map[uint16]string `json:"queues,omitempty"`    // names by number; "a, b" for a pair
	Shapers         []shaper.Shaper   `json:"shapers,omitempty"`   // the trees of queues
	Anchors         []Anchor          `json:"anchors,omitempty"`   // by path
	Without         source.Without    `json:"without,omitzero"`    // what its file says and weir ignores
	MayOpen         bool              `json:"may_open,omitempty"`  // set pfctl-may-open yes
	Disabled        time.Time         `json:"disabled,omitzero"`   // since when pfctl -d has it: nothing is filtered or translated
	Flushed         []string          `json:"flushed,omitempty"`   // what pfctl -F has taken from the rules
	PID             int               `json:"pid"`                 // of the daemon that loaded it
	Mode            string            `json:"mode"`                // --hook
	Started         time.Time         `json:"started"`             // since when packets have been filtered without a break
}

// RuleCount returns the number of rules as text.
func RuleCount(n int) string {
	if n == 1 {
		return "1 rule"
	}
	return strconv.Itoa(n) + " rules"
}

// RuleText is a rule in the record of its ruleset.
type RuleText struct {
	Nr    int    `json:"nr"`
	List  string `json:"list,omitempty"` // ether, nat, rdr, binat or scrub: the rule is in FreeBSD's list of that name, which has its own numbers
	Back  bool   `json:"back,omitempty"` // it is the part of a binat rule for incoming packets
	Text  string `json:"text"`           // empty: a rule of weir's own, which is not shown
	File  string `json:"file"`           // as in Loaded
	Line  int    `json:"line"`
	Label string `json:"label,omitempty"`
	// MoreLabels are those after the first, which FreeBSD allows.
	MoreLabels [4]string `json:"more_labels,omitzero"`
	Pflog      int       `json:"pflog,omitempty"` // N of log (to pflogN)

	Scope  string `json:"scope,omitempty"`  // path of the anchor that contains it
	Calls  string `json:"calls,omitempty"`  // path of the anchor that it calls; with /* all in that one
	End    int    `json:"end,omitempty"`    // then: number of the first rule after that anchor's
	Braces bool   `json:"braces,omitempty"` // then: they stand there in braces

	// Gone says that the rule was replaced while its ruleset was in force. States that
	// it made may still live.
	Gone bool `json:"gone,omitempty"`
	// NATPorts are the ports that nat-to chooses from; zero if the rule chooses none.
	NATPorts PortRange `json:"nat_ports,omitzero"`
	// Redirect is the ports that the rule sends on where they come in; zero if it names none.
	Redirect Redirect `json:"redirect,omitzero"`
}

// Equal reports whether two records are of the same rule. What follows from a rule's text is not
// compared: records of earlier versions may lack it.
func (r RuleText) Equal(other RuleText) bool {
	r.NATPorts, r.Redirect = other.NATPorts, other.Redirect
	return r == other
}

// Labels returns all labels of the rule.
func (r *RuleText) Labels() []string {
	var all []string
	for _, label := range append([]string{r.Label}, r.MoreLabels[:]...) {
		if label != "" {
			all = append(all, label)
		}
	}
	return all
}

// Anchor is an anchor with rules in the record of its ruleset.
type Anchor struct {
	Path      string `json:"path"`
	AtRunTime bool   `json:"at_run_time,omitempty"` // weir anchor load has loaded them, or they stand in braces in such rules
	Given     bool   `json:"given,omitempty"`       // the rule file has rules for it
	Called    bool   `json:"called"`                // a rule evaluates it
	Rules     int    `json:"rules"`
	// Lines are the rules that nothing evaluates: all of an anchor that is not called, or those of
	// FreeBSD's lists that no anchor of their kind names. The others are among the rules in force.
	Lines []string `json:"lines,omitempty"`
	// Tables are the definitions of its persistent tables, without contents.
	Tables []string `json:"tables,omitempty"`
}

// Within reports whether the anchor of a path is the one that is asked for, or with below, one in
// that. The path of the main ruleset is empty.
func Within(path, asked string, below bool) bool {
	if !below {
		return path == asked
	}
	return path != "" && (asked == "" || strings.HasPrefix(path, asked+"/"))
}

// ListOf returns the list of FreeBSD's that a printed rule belongs to, or an anchor of such rules;
// empty: it is a filter rule.
func ListOf(line string) string {
	word, _, _ := strings.Cut(strings.TrimPrefix(line, "no "), " ")
	switch word = strings.TrimSuffix(word, "-anchor"); word {
	case "ether", "nat", "rdr", "binat", "scrub":
		return word
	}
	return ""
}

// Shown reports whether users see the rule. A binat rule is shown once.
func (r *RuleText) Shown() bool { return r.Text != "" && !r.Back }

// CountShown returns how many of the rules are shown.
func CountShown(rules []RuleText) (n int) {
	for i := range rules {
		if rules[i].Shown() {
			n++
		}
	}
	return n
}

// PortRange is the ports from Low to High, inclusive.
type PortRange struct {
	Low  uint16 `json:"low"`
	High uint16 `json:"high"`
}

// A Redirect is ports of IPv4 that a rule gives another destination.
type Redirect struct {
	Protocol uint8     `json:"protocol,omitempty"` // 0: any
	Ports    PortRange `json:"ports"`
	On       string    `json:"on,omitempty"` // where they come in; empty: at several interfaces
}

// String describes the ruleset in force.
func (l *Loaded) String() string {
	if l.Unloaded {
		return "none loaded: everything is blocked but lo and the management port"
	}
	text := fmt.Sprintf("%s, %s, loaded %s", l.File, RuleCount(l.Rules), l.Time.Format(time.DateTime))
	if without := l.Without.String(); without != "" {
		text += ", without " + without
	}
	if len(l.Flushed) > 0 {
		text += ", flushed by pfctl: " + strings.Join(l.Flushed, ", ")
	}
	return text
}
