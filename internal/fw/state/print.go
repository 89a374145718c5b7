package state

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// String returns the line of pfctl -ss, without its line feed:
//
//	all tcp 203.0.113.5:50001 (192.168.1.10:40000) -> 198.51.100.7:443       ESTABLISHED:ESTABLISHED
//
// The address after translation comes first, the one before it in brackets.
// States to the box itself print their destination first and use "<-". A
// forwarded connection, which pf prints twice, has one line, with "->".
func (v *View) String() string {
	first, second, arrow := v.printed()
	return fmt.Sprintf("%s %s %s %s %s       %s:%s",
		v.Interface, v.Proto, first.hosts(), arrow, second.hosts(), first.State, second.State)
}

// Verbose returns String and the lines that pfctl -ss -v adds.
func (v *View) Verbose() string {
	var b strings.Builder
	b.WriteString(v.String())
	first, second, _ := v.printed()
	if first.Sequence != nil {
		fmt.Fprintf(&b, "\n   %s  %s", first.Sequence, second.Sequence)
	}
	fmt.Fprintf(&b, "\n   age %s, expires in %s, %d:%d pkts, %d:%d bytes%s",
		clock(v.Age), clock(v.Expires), v.Src.Packets, v.Dst.Packets, v.Src.Bytes, v.Dst.Bytes, v.rules()+v.given()+v.lost())
	return b.String()
}

// VeryVerbose returns Verbose and the line that pfctl -ss -vv adds, with the labels of the
// rules and where packets leave.
func (v *View) VeryVerbose() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n   id: %016x creatorid: %08x", v.Verbose(), uint64(v.Handle), 0)
	for _, label := range v.Labels {
		fmt.Fprintf(&b, " label: %q", label)
	}
	for _, name := range v.Leaves {
		fmt.Fprintf(&b, " leaves: %s", name)
	}
	return b.String()
}

// OfPf returns the state as pf prints it where the connection came in, if only its destination is
// translated: "192.168.1.2:53 (203.0.113.5:8053) <- 198.51.100.7:5353". Programs that read pfctl
// expect brackets after the first end alone.
func (v *View) OfPf() *View {
	if v.RuleIn == nil || v.Src.NewAddr.IsValid() || !v.Dst.NewAddr.IsValid() {
		return v
	}
	in := *v
	in.Direction = DirectionIn
	return &in
}

func (v *View) printed() (first, second *End, arrow string) {
	if v.Direction == DirectionIn {
		return &v.Dst, &v.Src, "<-"
	}
	return &v.Src, &v.Dst, "->"
}

// rules returns ", rule N" for the crossing that a rule decided. If another rule decided
// the out crossing, it adds that: ", rule 3, out rule 7".
func (v *View) rules() string {
	switch {
	case v.RuleIn == nil && v.RuleOut == nil:
		return ""
	case v.RuleIn == nil:
		return ", rule " + v.RuleOut.String()
	case v.RuleOut == nil || *v.RuleOut == *v.RuleIn:
		return ", rule " + v.RuleIn.String()
	}
	return fmt.Sprintf(", rule %s, out rule %s", v.RuleIn, v.RuleOut)
}

// given returns what rules set for packets: ", prio 3, replies prio 7, queue voice, scrub
// (no-df), mark 0x2/0xf". What replies have is printed if it differs.
func (v *View) given() string {
	text := bothWays("prio", v.Src.Prio, v.Dst.Prio) + bothWays("queue", v.Src.Queue, v.Dst.Queue)
	if v.Scrub != "" {
		text += ", scrub (" + v.Scrub + ")"
	}
	switch v.ScrubBack {
	case "":
	case "no":
		text += ", replies no scrub"
	default:
		text += ", replies scrub (" + v.ScrubBack + ")"
	}
	if v.Mark != "" {
		text += ", mark " + v.Mark
	}
	return text
}

// lost returns what was dropped in queues: ", lost in queues 12:0 pkts, 18456:0 bytes".
func (v *View) lost() string {
	if v.Src.Lost == nil && v.Dst.Lost == nil {
		return ""
	}
	var lost [2]Loss
	for i, end := range []*End{&v.Src, &v.Dst} {
		if end.Lost != nil {
			lost[i] = *end.Lost
		}
	}
	return fmt.Sprintf(", lost in queues %d:%d pkts, %d:%d bytes", lost[0].Packets, lost[1].Packets, lost[0].Bytes, lost[1].Bytes)
}

func bothWays(what, forth, back string) string {
	text := ""
	if forth != "" {
		text = ", " + what + " " + forth
	}
	if back != "" && back != forth {
		text += ", replies " + what + " " + back
	}
	return text
}

// oldRuleset stands for what a ruleset said that is not in force any more.
const oldRuleset = "old"

// String returns the rule's number, "nat 3" for one of FreeBSD's lists, or "old" for a
// rule of an earlier ruleset.
func (r *RuleRef) String() string {
	switch {
	case r.Old:
		return oldRuleset
	case r.List != "":
		return fmt.Sprint(r.List, " ", r.Nr)
	}
	return fmt.Sprint(r.Nr)
}

// String returns the window in pfctl's form.
func (q *Sequence) String() string {
	if !q.Scaled {
		return fmt.Sprintf("[%d + %d]", q.Low, q.Size)
	}
	return fmt.Sprintf("[%d + %d] wscale %d", q.Low, q.Size, q.Scale)
}

// Way returns the two ends as String prints them, that of the sender first: of the packets that
// src sends, or of those that come back.
func (v *View) Way(back bool) string {
	from, to := &v.Src, &v.Dst
	if back {
		from, to = to, from
	}
	return fmt.Sprintf("%s %s -> %s", v.Proto, from.hosts(), to.hosts())
}

// hosts returns the end's address and port, as translated first.
func (e *End) hosts() string {
	if !e.NewAddr.IsValid() {
		return host(e.Addr, e.Port)
	}
	return fmt.Sprintf("%s (%s)", host(e.NewAddr, e.NewPort), host(e.Addr, e.Port))
}

func host(addr netip.Addr, port uint16) string {
	switch {
	case port == 0:
		return addr.String()
	case addr.Is4():
		return fmt.Sprintf("%s:%d", addr, port)
	}
	return fmt.Sprintf("%s[%d]", addr, port)
}

// clock returns a span as hours, minutes and seconds, each with at least two digits.
func clock(d time.Duration) string {
	s := int(d / time.Second)
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}
