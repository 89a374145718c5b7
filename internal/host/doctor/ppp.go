package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/internal/host/cpulist"
)

// pppoe checks the device below each PPPoE session. The card sees one stream of non-IP
// frames, and hashes nothing in it. RPS reads the packet inside (flow_dissector.c,
// ETH_P_PPP_SES).
func pppoe(v *view) (o outcome) {
	o.absent = "no PPP session is up"
	over := map[*nic][]string{}
	for _, ppp := range v.up("ppp") {
		o.absent = ""
		if ppp.Parent == "" {
			o.lacks(v, "interfaces."+ppp.Name+".parent")
			continue
		}
		if n := v.nic(v.bottom(ppp.Parent)); n != nil {
			over[n] = append(over[n], ppp.Name)
		}
	}
	for _, n := range v.nics {
		if over[n] != nil {
			v.pppoeOn(&o, over[n], n)
		}
	}
	return o
}

// streamed is the share of a card's packets above which a queue counts as the one with
// the PPPoE stream.
const streamed = 0.75

func (v *view) pppoeOn(o *outcome, ppp []string, n *nic) {
	if n.RPS == nil {
		o.lacks(v, "interfaces."+n.Name+".rps")
	}
	q := n.largest()
	if q == nil {
		if len(n.queues) == 0 {
			o.lacks(v, "statistics."+n.Name)
		}
		return
	}
	cpus := v.cpusFor(n)
	if len(cpus) < 2 || q.share < streamed || v.spreads(n, q) {
		return
	}
	c, grade := v.grade(n, q)
	if n.RPS == nil && grade < Warning {
		return // it may be spread already
	}
	is, they := "is a PPPoE session", "they are one PPPoE stream"
	if len(ppp) > 1 {
		is, they = "are PPPoE sessions", "they are PPPoE streams"
	}
	f := Finding{
		Severity: grade, Subject: n.Name, core: -1, weight: q.share, bites: true,
		Says: fmt.Sprintf("%s %s on %s: queue %d carries %s of the packets, because the card cannot look into the stream",
			join(ppp), is, n.Name, q.n, percent(q.share)),
		Evidence: []string{v.queueLine(n), fmt.Sprintf("RPS of queue %d of %s: %s", q.n, n.Name, cmp.Or(v.rps(n, q.n), "none"))},
		Remedies: v.spread(n, q),
		Expect:   fmt.Sprintf("the flows inside the session spread over %d cores; one flow stays on one", len(cpus)),
		because:  fmt.Sprintf("queue %d of %s carries %s of the packets; %s (%s)", q.n, n.Name, percent(q.share), they, join(ppp)),
	}
	f.on(c)
	o.add(f)
}

// spreads reports whether a queue's RPS names a core other than the one that receives.
func (v *view) spreads(n *nic, q *queue) bool {
	cpus, err := cpulist.Parse(v.rps(n, q.n))
	if err != nil {
		return false // the bundle was checked when it was read
	}
	return len(cpus) > 1 || len(cpus) == 1 && len(q.cores) > 0 && cpus[0] != q.cores[0]
}

func (v *view) rps(n *nic, queue int) string {
	if queue < len(n.RPS) {
		return n.RPS[queue]
	}
	return ""
}

func (v *view) nic(name string) *nic {
	return find(v.nics, func(n *nic) bool { return n.Name == name })
}

// bottom returns the device at the bottom of a stack of VLANs.
func (v *view) bottom(name string) string {
	for range 4 { // nobody builds deeper stacks
		d := v.device(name)
		if d == nil || d.Kind != "vlan" || d.Parent == "" {
			break
		}
		name = d.Parent
	}
	return name
}

// ifb checks intermediate functional blocks, which shape incoming packets. Each transmit
// queue has one tasklet (drivers/net/ifb.c), so it runs on one core, whatever the cards
// do. ifb0 and ifb1, as the module creates them, have one queue.
func ifb(v *view) (o outcome) {
	o.absent = "no intermediate device (ifb) is up"
	for _, d := range v.up("ifb") {
		o.absent = ""
		switch {
		case d.TxQueues == 0:
			o.lacks(v, "interfaces."+d.Name+".tx_queues")
		case d.TxQueues == 1 && len(v.CPUs) > 1:
			v.narrow(&o, d)
		}
	}
	return o
}

// longestName is the maximum length of an interface's name in bytes (IFNAMSIZ less the
// zero).
const longestName = 15

// narrow checks an intermediate device with one queue, by its share of all received
// packets.
func (v *view) narrow(o *outcome, d *Interface) {
	l, ok := v.link(d.Name)
	if !ok && len(v.qdiscsOf(d.Name)) == 0 {
		o.lacks(v, "links."+d.Name)
		return
	}
	received := v.received()
	passed := max(l.RxPackets, l.TxPackets)
	for _, q := range v.qdiscsOf(d.Name) {
		passed = max(passed, q.Packets)
	}
	if passed == 0 {
		return
	}
	share := 1.0
	if received > 0 {
		share = min(1, float64(passed)/float64(received))
	}
	c, grade := v.gradeIFB(d.Name)
	if c != nil && grade == Warning && share < burdensome {
		c, grade = nil, Notice // that core has other work
	}
	cores := len(v.CPUs)
	wide := d.Name[:min(len(d.Name), longestName-len("-mq"))] + "-mq"
	f := Finding{
		Severity: grade, Subject: d.Name, core: -1, weight: share, bites: grade > Notice,
		Says: fmt.Sprintf("%s has one queue, and %s of the received packets pass it: one core at a time works on them, however the cards spread them", d.Name, percent(share)),
		Evidence: []string{
			fmt.Sprintf("%s: 1 transmit queue, %s", d.Name, v.rate(passed)),
			fmt.Sprintf("the cores are %s busy on average", percent(v.meanBusy())),
		},
		Remedies: []Remedy{{
			Command: fmt.Sprintf("ip link add %s numtxqueues %d type ifb && ip link set %s up", wide, cores, wide),
			Text:    "make one with a queue for each core, give it the shaper under mq, and redirect the ingress to it; or shape with cake at the card's own egress",
		}},
		Expect: "shaping uses all cores; its rate, not its lock, bounds the throughput",
	}
	if share >= 0.5 { // otherwise a card's queue is the likelier cause
		f.because = fmt.Sprintf("%s has one queue, and %s of the received packets pass it", d.Name, percent(share))
	}
	f.on(c)
	for _, q := range v.qdiscsOf(d.Name) {
		f.Evidence = append(f.Evidence, q.line(v.Seconds))
	}
	o.add(f)
}

// atRate is the share of its rate at which a shaper counts as being at the rate.
const atRate = 0.9

// gradeIFB returns a limit in two cases: a core is full, or the queue of the device
// overflows below the shaper's rate while cores have room, which points to a lock.
// Otherwise it returns a warning if some core is more than a quarter busy.
func (v *view) gradeIFB(name string) (*core, Severity) {
	filled := v.fullCores()
	if len(filled) > 0 {
		return filled[0], v.critical()
	}
	for _, q := range v.qdiscsOf(name) {
		below := q.rate > 0 && q.bits < atRate*float64(q.rate)
		byDesign := managers[q.Kind] || q.Kind == "cake" || q.Overlimits > 0 // it dropped early, or held back a burst
		if q.Drops+q.Requeues > 0 && below && !byDesign && v.meanBusy() < working {
			return nil, Critical
		}
	}
	if slices.ContainsFunc(v.qdiscsOf(name), qdisc.shapes) {
		return nil, Notice // it sends at the rate it was told
	}
	most := v.busiestCore()
	if most != nil && most.network() >= 0.25 {
		return most, Warning
	}
	return nil, Notice
}

// qdisc is the work of a queueing discipline between the samples.
type qdisc struct {
	Qdisc
	rate uint64
	bits float64 // bits per second sent
}

// shapes reports whether packets wait for the shaper's rate rather than for a core. The
// shaper is at its rate, or near it and holding back bursts.
func (q qdisc) shapes() bool {
	return q.rate > 0 && (q.bits >= atRate*float64(q.rate) || q.Overlimits > 0 && q.bits >= atRate/2*float64(q.rate))
}

// qdiscsOf returns the disciplines of an interface that grew or hold something.
func (v *view) qdiscsOf(name string) (all []qdisc) {
	if !v.sampled {
		return nil
	}
	for _, a := range v.After.Qdiscs {
		i := slices.IndexFunc(v.Before.Qdiscs, func(b Qdisc) bool {
			return a.Interface == b.Interface && a.Handle == b.Handle && a.Parent == b.Parent && a.Kind == b.Kind
		})
		if a.Interface != name || i < 0 {
			continue
		}
		b := v.Before.Qdiscs[i]
		q := qdisc{Qdisc: a, rate: a.RateBits}
		q.Bytes, q.Packets = Grown(a.Bytes, b.Bytes), Grown(a.Packets, b.Packets)
		q.Classes = grownClasses(a.Classes, b.Classes)
		q.Drops, q.Overlimits, q.Requeues = Grown(a.Drops, b.Drops), Grown(a.Overlimits, b.Overlimits), Grown(a.Requeues, b.Requeues)
		q.bits = float64(q.Bytes) * 8 / v.Seconds
		all = append(all, q)
	}
	return all
}

func (q *qdisc) line(seconds float64) string {
	parts := []string{fmt.Sprintf("%s %s on %s sends %s", q.Kind, q.Handle, q.Interface, bitRate(float64(q.Bytes)*8/seconds))}
	if q.rate > 0 {
		parts = append(parts, "of "+bitRate(float64(q.rate)))
	}
	if q.Drops > 0 {
		parts = append(parts, fmt.Sprintf("and drops %s", packetRate(q.Drops, seconds)))
	}
	return strings.Join(parts, " ")
}
