package pktrecord

import (
	"time"

	"weir/internal/fw/reason"
)

// Kinds of records.
const (
	Log    = "log"    // a rule with log matched the packet
	Before = "before" // captured as it came in
	After  = "after"  // captured as it leaves
)

// Verdicts. Records of rules use the first two: they say what the rules decided, not what
// happened to the packet later.
const (
	Pass     = "pass"
	Drop     = "drop"
	Redirect = "redirect" // sent out of another interface
	Up       = "up"       // to the stack
)

// A Record is one packet, logged by a rule or captured.
type Record struct {
	Time      time.Time     `json:"time"`
	Kind      string        `json:"kind"`
	Interface string        `json:"interface"`
	Ifindex   int           `json:"ifindex"`
	Peer      string        `json:"peer,omitempty"` // After: the interface that it leaves by
	Direction string        `json:"direction"`      // "in" or "out"
	Verdict   string        `json:"verdict"`
	Reason    reason.Reason `json:"reason"`
	Queue     string        `json:"queue,omitempty"`     // that has dropped it
	QueueOn   string        `json:"queue_on,omitempty"`  // the queue's interface
	QueueWhy  string        `json:"queue_why,omitempty"` // why: docs/queues.md
	Rule      *Rule         `json:"rule,omitempty"`      // the rule that logged or decided; nil: none
	State     uint32        `json:"state,omitempty"`     // number of the packet's state; 0: none
	All       bool          `json:"all,omitempty"`       // logged because of log (all): the packet did not create the state
	User      *uint32       `json:"user,omitempty"`      // number of the user whose socket it belongs to, for log (user); nil: none
	Length    int           `json:"length"`              // bytes of the frame; L3: of the IP packet
	L3        bool          `json:"l3,omitempty"`        // Data begins with the IP header
	Family    int           `json:"family,omitempty"`
	Data      []byte        `json:"data"` // the first bytes
	Note      string        `json:"-"`    // what a file says of it, in place of all else; empty: nothing
}

// A Rule is the rule of a record.
type Rule struct {
	Nr     int    `json:"nr"`             // in its ruleset
	List   string `json:"list,omitempty"` // nat, rdr or binat: in FreeBSD's list of that name
	Text   string `json:"text,omitempty"`
	Action string `json:"action,omitempty"` // pass, block or match; for a rule of a list its first word
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Label  string `json:"label,omitempty"`
	Pflog  int    `json:"pflog,omitempty"` // N of log (to pflogN)
	Old    bool   `json:"old,omitempty"`   // from a ruleset that is no longer in force
}
