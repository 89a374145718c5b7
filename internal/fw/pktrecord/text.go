package pktrecord

import (
	"fmt"
	"path"
	"strconv"

	"weir/internal/fw/reason"
)

// timeForm is the form that tcpdump uses.
const timeForm = "15:04:05.000000"

// Line returns the record as one line, in the form in which tcpdump prints pf's log:
// time, rule and reason, the rule's place, action and interface, packet.
func (r *Record) Line() string {
	return r.Time.Local().Format(timeForm) + " " + r.head() + ": " + Summary(r.Data, r.L3)
}

// head returns the line without time and packet.
func (r *Record) head() string {
	if r.Kind == Before {
		return "as it came: " + r.crossing()
	}
	return r.decision() + ": " + r.action() + " " + r.crossing() + r.exit()
}

// decision returns "rule 12/(match) [weir.conf:34] [uid 1000]". A rule of an earlier ruleset is
// marked, because its number means another rule now.
func (r *Record) decision() string {
	if r.Rule == nil {
		return "rule def/(" + r.why() + ")"
	}
	line := fmt.Sprintf("%s/(%s)", r.Rule.name(), r.why())
	if r.Rule.Old {
		line = "old " + line
	}
	if r.Rule.File != "" {
		line += " [" + path.Base(r.Rule.File) + ":" + strconv.Itoa(r.Rule.Line) + "]"
	}
	if r.User != nil {
		line += fmt.Sprintf(" [uid %d]", *r.User)
	}
	return line
}

// name returns "rule 12", or "rule nat 3" for a rule in FreeBSD's list of that name.
func (r *Rule) name() string {
	if r.List != "" {
		return fmt.Sprintf("rule %s %d", r.List, r.Nr)
	}
	return fmt.Sprintf("rule %d", r.Nr)
}

// why returns the reason. If a rule's own verdict was the reason, it returns "match", as
// pf does.
func (r *Record) why() string {
	switch r.Reason {
	case reason.Rule, reason.NoRule, reason.Block:
		return "match"
	}
	return r.Reason.String()
}

// action returns what the rules decided, in pf's words. A rule that only matches decides
// nothing.
func (r *Record) action() string {
	switch {
	case r.Verdict == Drop, r.answered():
		return "block"
	case r.Kind == Log && r.Rule != nil && r.Rule.Action == "match":
		return "match"
	}
	return "pass"
}

// answered reports whether the bytes are a reject to the sender of a blocked packet.
func (r *Record) answered() bool { return r.Kind == After && r.Verdict != Drop && !r.Reason.IsPass() }

func (r *Record) crossing() string { return r.Direction + " on " + r.Interface }

// exit says where a captured packet goes, or which queue has dropped it.
func (r *Record) exit() string {
	switch {
	case r.Queue != "":
		return fmt.Sprintf(", queue: class %s on %s: %s", r.Queue, r.QueueOn, r.QueueWhy)
	case r.Kind == After && r.Verdict == Up:
		return ", to the stack"
	case r.answered():
		return ", answered"
	case r.Kind == After && r.Verdict == Redirect && r.Peer != "":
		return ", out on " + r.Peer
	}
	return ""
}

// Comments returns a packet's comments in pcapng: what was done and why, and the full
// rule.
func (r *Record) Comments() []string {
	if r.Note != "" {
		return []string{r.Note}
	}
	comments := []string{r.head()}
	if r.Kind == Before {
		return comments
	}
	comments = append(comments, fmt.Sprintf("verdict %s, reason %s: %s", r.Verdict, r.Reason, r.Reason.Text()))
	if r.Rule != nil && r.Rule.Text != "" {
		comments = append(comments, fmt.Sprintf("%s [%s:%d]: %s", r.Rule.name(), r.Rule.File, r.Rule.Line, r.Rule.Text))
	}
	return comments
}

// Shown returns the interface where the bytes are seen. For a packet shown as it leaves,
// that is where it leaves.
func (r *Record) Shown() string {
	if r.leaves() {
		return r.Peer
	}
	return r.Interface
}

// leaves reports whether another interface sends these bytes.
func (r *Record) leaves() bool {
	return r.Kind == After && r.Verdict == Redirect && r.Peer != ""
}

// outwards reports whether the bytes leave the interface that they are shown at.
func (r *Record) outwards() bool { return r.Direction == "out" || r.leaves() }
