package doctor

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/units"
)

// held is the share of its packets that a shaper drops below its rate, from which on
// something else than the rate drops them.
const held = 0.01

// muchHeld is the share of dropped packets from which on a shaper whose rate is not known
// is named as a loss, whether it does as it was told or not.
const muchHeld = 0.05

// limiters are shapers that have a rate, which a bundle may lack.
var limiters = map[string]bool{"htb": true, "hfsc": true, "tbf": true}

// heldBack returns how often the shaper held packets back, for each packet that it sent.
func (q *qdisc) heldBack() float64 { return float64(q.Overlimits) / float64(max(1, q.Packets)) }

// presumed reports whether a shaper whose rate is not known seems to be at it: it holds
// back most packets, or some, and drops many.
func (q *qdisc) presumed() bool {
	share := float64(q.Drops) / float64(max(1, q.Drops+q.Packets))
	return limiters[q.Kind] && q.rate == 0 && q.Drops >= fewLost && (q.heldBack() >= 0.5 || q.heldBack() >= held && share >= muchHeld)
}

// shaping looks for shapers that drop although they send less than they may, and for
// trees of classes that all packets go through.
func shaping(v *view) (o outcome) {
	for i := range v.Interfaces {
		d := &v.Interfaces[i]
		if !d.Up {
			continue
		}
		all := v.qdiscsOf(d.Name)
		v.oneTree(&o, d, all)
		v.policed(&o, d, all)
		for k := range all {
			v.dropsBelow(&o, d, all, &all[k])
			v.shortBurst(&o, d, &all[k])
		}
	}
	return o
}

// policed finds filters at ingress that drop a good part of what comes: a policer drops at
// once whatever exceeds its rate, and a connection that meets it gets far less than the rate.
// A rule that blocks drops there, too: without a policer, that is a notice.
func (v *view) policed(o *outcome, d *Interface, all []qdisc) {
	for i := range all {
		q := &all[i]
		share := float64(q.Drops) / float64(max(1, q.Packets))
		if q.Kind != "ingress" && q.Kind != "clsact" || q.Drops < fewLost || share < held {
			continue
		}
		f := Finding{
			Severity: Warning, Subject: d.Name, core: -1, weight: share, kind: "police", bites: true,
			Says:     fmt.Sprintf("filters at ingress of %s drop %s of what comes (tc): a policer makes senders much slower than its rate", d.Name, percent(share)),
			Evidence: []string{q.counts(v.Seconds)},
			Remedies: []Remedy{
				{Command: "tc -s filter show dev " + d.Name + " ingress", Text: "see which filter drops. A policer (police rate …): remove it by its pref, and shape instead: let a queue hold what comes too fast (cake on an ifb, or a queue of weir's rules); or give it a burst of some 50 ms at its rate"},
			},
			Expect: "connections reach the rate; packets wait instead of being dropped",
		}
		if q.Policers != nil && *q.Policers == 0 {
			f.Severity, f.bites = Notice, false
			f.Says = fmt.Sprintf("filters at ingress of %s drop %s of what comes (tc), as their rules say", d.Name, percent(share))
			f.Remedies[0].Text = "see which rule drops"
		}
		o.add(f)
	}
}

// unmanaged returns the drops of a discipline without those that the disciplines below it
// made early, to slow senders down.
func unmanaged(all []qdisc, q *qdisc) uint64 {
	drops := q.Drops
	major, _, _ := strings.Cut(q.Handle, ":")
	for i := range all {
		below := &all[i]
		parent, _, _ := strings.Cut(below.Parent, ":")
		if managers[below.Kind] && below.Parent != "root" && (parent == major || q.Parent == "root") {
			drops -= min(drops, below.Drops)
		}
	}
	return drops
}

// grownClasses returns what the classes counted between the samples.
func grownClasses(after, before []Class) (grown []Class) {
	for _, a := range after {
		if i := slices.IndexFunc(before, func(b Class) bool { return b.Handle == a.Handle }); i >= 0 {
			a.Bytes, a.Drops = Grown(a.Bytes, before[i].Bytes), Grown(a.Drops, before[i].Drops)
			grown = append(grown, a)
		}
	}
	return grown
}

// atCeiling returns the drops of classes that send what they may: these drop as they were
// told.
func (q *qdisc) atCeiling(seconds float64) (drops uint64) {
	for _, c := range q.Classes {
		if c.CeilingBits > 0 && float64(c.Bytes)*8/seconds >= atRate*float64(c.CeilingBits) {
			drops += c.Drops
		}
	}
	return drops
}

// shortQueue is a txqueuelen below which a class holds less than a burst of a few connections.
const shortQueue = 100

// dropsBelow finds a shaper's loss that its rate does not explain. A rate that is not
// known explains a small one if the shaper held packets back.
func (v *view) dropsBelow(o *outcome, d *Interface, all []qdisc, q *qdisc) {
	if !shapers[q.Kind] || managers[q.Kind] || q.Kind == "cake" || q.Kind == "red" || q.Kind == "ingress" || q.Kind == "clsact" {
		return
	}
	drops := unmanaged(all, q)
	drops -= min(drops, q.atCeiling(v.Seconds))
	share := float64(drops) / float64(max(1, drops+q.Packets))
	unknown := q.rate == 0 && q.heldBack() >= held
	if drops < fewLost || share < held || q.shapes() || unknown && share < muchHeld {
		return
	}
	f := Finding{
		Severity: Warning, Subject: d.Name, core: -1, weight: share,
		Says:     fmt.Sprintf("%s in front of %s drops %s of its packets", q.Kind, d.Name, percent(share)),
		Evidence: append([]string{q.counts(v.Seconds)}, below(all, q, v.Seconds)...),
		Remedies: []Remedy{{Command: "tc -s class show dev " + d.Name, Text: "see which classes drop: those at their own ceiling do as they are told; else their queue is too short (limit), or the core that sends does not keep up"}},
		Expect:   "no loss below the rate",
	}
	switch {
	case q.rate > 0:
		f.Says += fmt.Sprintf(", though it sends %s of the %s that it may", bitRate(q.bits), bitRate(float64(q.rate)))
	case unknown:
		f.Says += fmt.Sprintf(" at %s; whether that is its rate is not known here", bitRate(q.bits))
		f.Remedies = []Remedy{{Command: "tc -s -d class show dev " + d.Name, Text: "compare what it sends, and what its classes send, with their rates: at the rate the shaper is the limit, as it was told; below it, its queue is too short (limit), or the core that sends does not keep up"}}
	default:
		f.Says += ", though it held hardly any back"
	}
	if n := d.TxQueueLen; n != nil && *n < shortQueue && q.Kind == "htb" {
		f.Evidence = append(f.Evidence, fmt.Sprintf("txqueuelen of %s: %d", d.Name, *n))
		f.Remedies = append([]Remedy{{Command: fmt.Sprintf("ip link set dev %s txqueuelen 1000", d.Name),
			Text: fmt.Sprintf("a class without a discipline of its own got a queue of as many packets as the device had then, %d now: set this first, and make the classes anew, or give each one fq_codel", *n)}}, f.Remedies...)
	}
	if q.Kind == "netem" {
		f.Remedies = []Remedy{{Command: "tc -s qdisc show dev " + d.Name, Text: "see its limit: it must hold all packets of its delay (packets a second times seconds of delay); set a larger one (tc qdisc change … netem limit N)"}}
	}
	if f.Severity = Warning; v.meanBusy() < working && share >= 10*held && !unknown {
		f.Severity = Critical
	}
	o.add(f)
}

// oneTree looks for several shapers below mq of which one has most packets, and fills a
// core: each tree of classes runs under its own lock, on one core at a time.
func (v *view) oneTree(o *outcome, d *Interface, all []qdisc) {
	var trees []*qdisc
	var sum uint64
	var most *qdisc
	for i := range all {
		q := &all[i]
		major, _, _ := strings.Cut(q.Parent, ":")
		under := slices.ContainsFunc(all, func(r qdisc) bool {
			return r.Parent == "root" && (r.Kind == "mq" || r.Kind == "mqprio") && strings.HasPrefix(r.Handle, major+":")
		})
		if !under || !shapers[q.Kind] {
			continue
		}
		trees, sum = append(trees, q), sum+q.Packets
		if most == nil || q.Packets > most.Packets {
			most = q
		}
	}
	filled := v.spreadable()
	if len(trees) < 2 || sum < few || float64(most.Packets) < streamed*float64(sum) || len(filled) != 1 {
		return
	}
	f := Finding{
		Severity: v.critical(), Subject: d.Name, core: filled[0].ID, weight: float64(most.Packets), bites: true,
		Says: fmt.Sprintf("one of the %d shapers of %s has %s of the packets and fills %s: a tree of classes runs on one core at a time",
			len(trees), d.Name, percent(float64(most.Packets)/float64(sum)), filled[0].name()),
		Remedies: []Remedy{{Command: "tc -s class show dev " + d.Name, Text: "see the tree's topmost classes: divide them over the shapers (one tree for each queue and core), so that no single class is above all others"}},
		Expect:   "as many cores shape as there are trees",
	}
	for _, q := range trees {
		f.Evidence = append(f.Evidence, q.counts(v.Seconds))
	}
	f.Evidence = append(f.Evidence, filled[0].line())
	o.add(f)
}

// below describes the disciplines below a root that dropped or hold packets.
func below(all []qdisc, root *qdisc, seconds float64) (lines []string) {
	const most = 4
	for i := range all {
		if q := &all[i]; q.Handle != root.Handle && q.Drops+q.Backlog > 0 && len(lines) < most {
			lines = append(lines, q.counts(seconds))
		}
	}
	return lines
}

// counts describes all that a discipline counted.
func (q *qdisc) counts(seconds float64) string {
	text := q.line(seconds)
	for _, c := range []struct {
		n    uint64
		what string
	}{{q.Overlimits, "times held back"}, {q.Requeues, "requeued"}} {
		if c.n > 0 {
			text += fmt.Sprintf(", %s %s", units.Thousands(int(c.n)), c.what)
		}
	}
	if q.Backlog > 0 {
		text += fmt.Sprintf(", holds %s bytes", units.Thousands(int(q.Backlog)))
	}
	return text
}

// shaperLines describes each discipline that held back, dropped, requeued or holds
// packets.
func (v *view) shaperLines() (lines []string) {
	own := v.weirQueueLines()
	if n, known := v.weirReason("queue"); known && n > 0 && len(own) == 0 {
		lines = append(lines, "weir's own queues, where the kernel does not hold the packets, drop "+packetRate(n, v.Seconds))
	}
	lines = append(lines, own...)
	for i := range v.Interfaces {
		for _, q := range v.qdiscsOf(v.Interfaces[i].Name) {
			if q.Drops+q.Overlimits+q.Requeues+q.Backlog > 0 {
				lines = append(lines, q.counts(v.Seconds))
			}
		}
	}
	return lines
}

// weirQueueLines describes each queue of weir's rules that dropped, marked or has a
// backlog.
func (v *view) weirQueueLines() (lines []string) {
	if !v.sampled || v.After.Weir == nil || v.Before.Weir == nil {
		return nil
	}
	for _, q := range v.After.Weir.Queues {
		i := slices.IndexFunc(v.Before.Weir.Queues, func(b WeirQueue) bool { return b.Interface == q.Interface && b.In == q.In && b.Name == q.Name })
		if i < 0 {
			continue // it has just been loaded
		}
		b := v.Before.Weir.Queues[i]
		drops, marked := Grown(q.Drops, b.Drops), Grown(q.Marked, b.Marked)
		if drops+marked+q.Backlog == 0 {
			continue
		}
		way := "out of"
		if q.In {
			way = "into"
		}
		text := fmt.Sprintf("weir's queue %s %s %s sends %s and drops %s", q.Name, way, q.Interface, bitRate(float64(Grown(q.Bytes, b.Bytes))*8/v.Seconds), packetRate(drops, v.Seconds))
		if marked > 0 {
			text += ", marks " + packetRate(marked, v.Seconds)
		}
		switch {
		case q.Backlog == 0:
		case q.Engine == "queue":
			text += fmt.Sprintf(", holds %s bytes", units.Thousands(int(q.Backlog)))
		default:
			text += fmt.Sprintf(", is %s bytes beyond its share", units.Thousands(int(q.Backlog)))
		}
		lines = append(lines, text)
	}
	return lines
}
