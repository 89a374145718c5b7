package doctor

import (
	"fmt"
	"strings"
)

// lockFree lists root disciplines that have no lock of their own: each send queue gets
// its own discipline, or there is no queueing.
var lockFree = map[string]bool{"mq": true, "mqprio": true, "taprio": true, "noqueue": true, "ingress": true, "clsact": true}

// rootLock looks for cards with several send queues behind one queueing discipline. Every
// core that sends takes its lock for each packet.
func rootLock(v *view) (o outcome) {
	for _, n := range v.nics {
		if n.TxQueues == 0 {
			o.lacks(v, "interfaces."+n.Name+".tx_queues")
			continue
		}
		for _, q := range v.qdiscsOf(n.Name) {
			if q.Parent == "root" && !lockFree[q.Kind] && n.TxQueues > 1 && len(v.CPUs) > 1 && q.Packets > 0 {
				o.add(v.locked(n, &q))
			}
		}
	}
	return o
}

// requeued is the share of a discipline's packets that had to be queued again, because
// the card's send queue was locked or full, from which on cores stand in each other's way.
const requeued = 0.005

// locked returns a warning if the discipline's counters say that cores wait: it drops
// while they have room and nothing held packets back, it drops below its rate, or packets
// are queued again and again while several cores are full, or while it drops.
func (v *view) locked(n *nic, q *qdisc) Finding {
	f := Finding{
		Severity: Notice, Subject: n.Name, core: -1, weight: float64(q.Packets),
		Says:     fmt.Sprintf("%s has %d send queues, but one %s is in front of all of them: sending cores wait for its lock", n.Name, n.TxQueues, q.Kind),
		Evidence: []string{q.counts(v.Seconds), fmt.Sprintf("the cores are %s busy on average", percent(v.meanBusy()))},
		Remedies: []Remedy{{Command: fmt.Sprintf("tc qdisc replace dev %s root mq", n.Name), Text: "give each send queue a discipline of its own"}},
		Expect:   "cores send without waiting for each other",
	}
	if shapers[q.Kind] {
		f.Remedies = []Remedy{{Command: "tc -s -d qdisc show dev " + n.Name, Text: "see its rate: a shaper has one rate, and so one lock: shape where the rate is needed (the slow uplink), not on cards that are faster than it; or give each send queue a shaper of its own under mq, with its part of the rate"}}
	}
	drops := unmanaged(v.qdiscsOf(n.Name), q)
	drops -= min(drops, q.atCeiling(v.Seconds))
	share := float64(drops) / float64(max(1, drops+q.Packets))
	again := float64(q.Requeues) / float64(max(1, q.Packets))
	used, sends, known := n.wire(v.Seconds)
	atLink := known && sends && used >= linkFull
	filled, waiting := v.fullCores(), v.coresAt(working)
	switch {
	case managers[q.Kind] || atLink || q.shapes():
	case again >= requeued && (len(filled) > 1 || len(waiting) > 1 && q.heldBack() < held && gradeLoss(drops, share) > Notice):
		f.cores, f.bites, f.Severity = idsOf(waiting), true, v.critical()
		f.Says += fmt.Sprintf("; %s of its packets are queued again", percent(again))
		if drops > 0 {
			f.Says += fmt.Sprintf(", and %s dropped", percent(share))
		}
	case q.rate > 0 && share >= held:
		f.cores, f.bites, f.Severity = idsOf(waiting), true, Critical
		f.Says += fmt.Sprintf("; it drops %s, and sends %s of %s", percent(share), bitRate(q.bits), bitRate(float64(q.rate)))
	case q.Overlimits == 0 && gradeLoss(drops, share) > Notice && v.meanBusy() < working && len(filled) == 0:
		f.bites, f.Severity = true, Warning
		f.Says += fmt.Sprintf("; it drops %s of them while cores have room", percent(share))
	}
	return f
}

// symmetry looks for cards that deliver the two directions of a connection to different
// cores. The connection's state then moves between these cores.
func symmetry(v *view) (o outcome) {
	if on, known := v.forwarding(); known && !on {
		o.absent = "the box does not forward"
		return o
	}
	if v.Weir == nil && (v.After == nil || v.After.Conntrack == nil || v.After.Conntrack.Count == 0) {
		o.absent = "nothing here keeps states of connections"
		return o
	}
	var crooked []string
	for _, n := range v.nics {
		switch {
		case n.queueCount() < 2 || n.counted && n.link.RxPackets == 0:
		case n.RSS == nil || n.RSS.Symmetric == nil:
			o.lacks(v, "interfaces."+n.Name+".rss.symmetric")
		case !*n.RSS.Symmetric:
			crooked = append(crooked, n.Name)
		}
	}
	if len(crooked) == 0 {
		return o
	}
	f := Finding{
		Severity: Notice, Subject: strings.Join(crooked, ", "), core: -1,
		Says:     fmt.Sprintf("the hash of %s brings the two directions of a connection to different cores, which share its state", join(crooked)),
		Evidence: []string{"input transformation of the hash: none"},
		Expect:   "each connection's state stays in one core's cache, where both cards have as many queues and the same key and table; NAT changes what is hashed, so not for translated connections. Measure: fewer different hashes spread less evenly",
	}
	for _, name := range crooked {
		f.Remedies = append(f.Remedies, Remedy{Command: "ethtool -X " + name + " xfrm symmetric-xor", Text: "hash both directions alike (Linux 6.8, where the driver can)"})
	}
	o.add(f)
	return o
}
