package doctor

import (
	"cmp"
	"fmt"
	"math"
	"strings"
)

// Shares and rates of hardware interrupts. Their handlers only wake the softirq: a fourth
// of a core's work in them, and more than packets themselves take, or an interrupt for
// every second packet, is a card that interrupts for nearly each packet.
const (
	manyInterrupts = 0.25  // of the time that the core is busy
	eachPacket     = 0.5   // interrupts for each packet
	interruptRate  = 10000 // per second on one core
	calm           = 50    // µs: a good wait on a router; 20,000 interrupts a second for each queue
)

// interrupted looks for cores whose time goes to interrupts rather than to packets.
func interrupted(v *view) (o outcome) {
	for _, c := range v.cores {
		if v.eachOne(&o, c) || c.irq < manyInterrupts*c.busy || c.busy < working {
			continue
		}
		n, rate, counted := v.interrupter(c.ID)
		if c.irq < c.softirq && (!counted || rate < eachPacket*v.brought(c.ID)) {
			continue
		}
		eager := n != nil && n.Coalesce != nil && !n.Coalesce.Adaptive && n.Coalesce.RxUsecs < 10
		if counted && rate < interruptRate || !counted && !eager {
			continue
		}
		o.add(v.eager(c, n, rate, counted))
	}
	return o
}

// eachOne warns of a card that is set to interrupt at once, and does so for every packet: there is room
// now, and at a higher rate there will be none.
func (v *view) eachOne(o *outcome, c *core) bool {
	n, rate, counted := v.interrupter(c.ID)
	set := n != nil && n.Coalesce != nil && !n.Coalesce.Adaptive && n.Coalesce.RxUsecs < calm/2
	if !set || !counted || rate < interruptRate || rate < v.brought(c.ID) || c.irq < quiet*c.busy || c.busy < quiet || c.busy >= working {
		return false
	}
	f := v.eager(c, n, rate, counted)
	f.Severity, f.bites = Warning, false
	f.Says = fmt.Sprintf("%s interrupts %s %.0f times a second, more often than packets come", n.Name, c.name(), rate)
	f.Expect = "several packets for each interrupt: room for a higher rate, and steadier delays"
	o.add(f)
	return true
}

// brought returns how many packets a second the queues bring that a core serves; some, if
// the cards do not count.
func (v *view) brought(id int) (perSecond float64) {
	for _, n := range v.nics {
		for _, q := range n.queues {
			if len(q.cores) > 0 && q.cores[0] == id {
				perSecond += float64(q.packets) / v.Seconds
			}
		}
	}
	return cmp.Or(perSecond, math.Inf(1))
}

// interrupter returns the card that interrupts a core most, and how often the core is
// interrupted by cards.
func (v *view) interrupter(id int) (most *nic, rate float64, counted bool) {
	by := map[*nic]uint64{}
	for _, n := range v.nics {
		for _, q := range v.placed(n) {
			if q.irq == 0 {
				continue
			}
			now, known := v.After.IRQs[q.irq]
			counted = counted || known
			by[n] += Grown(now[id], v.Before.IRQs[q.irq][id])
		}
	}
	for _, n := range v.nics {
		rate += float64(by[n]) / v.Seconds
		if most == nil || by[n] > by[most] {
			most = n
		}
	}
	return most, rate, counted
}

func (v *view) eager(c *core, n *nic, rate float64, counted bool) Finding {
	f := Finding{
		Severity: v.severeTime(c), Subject: c.name(), core: c.ID, weight: c.irq, bites: true,
		Says:     fmt.Sprintf("interrupts take %s of %s, and packets %s: a card interrupts for nearly each packet", percent(c.irq), c.name(), percent(c.softirq)),
		Evidence: []string{c.line()},
		Expect:   "several packets for each interrupt: the core has that time for packets; each waits up to as long as set",
	}
	if counted {
		f.Evidence = append(f.Evidence, fmt.Sprintf("cards interrupt %s %.0f times a second", c.name(), rate))
	}
	if n == nil {
		f.Remedies = []Remedy{{Command: "cat /proc/interrupts", Text: "see which card interrupts most, and let it wait (ethtool -C, rx-usecs 50)"}}
		return f
	}
	f.Says = fmt.Sprintf("interrupts take %s of %s, and packets %s: %s interrupts for nearly each packet", percent(c.irq), c.name(), percent(c.softirq), n.Name)
	if n.Coalesce != nil {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s: adaptive-rx %s, rx-usecs %d", n.Name, onOff(n.Coalesce.Adaptive), n.Coalesce.RxUsecs))
	}
	f.Remedies = []Remedy{
		{Command: fmt.Sprintf("ethtool -C %s rx-usecs %d", n.Name, calm), Text: "let the card wait that long for more packets before it interrupts (coalescing); or adaptive-rx on, where it can"},
		{Command: "ethtool -c " + n.Name, Text: "see what the driver knows; one without coalescing can defer interrupts in the kernel: napi_defer_hard_irqs 2 and gro_flush_timeout 20000 in /sys/class/net/" + n.Name},
	}
	return f
}

// severeTime is [view.severe] for a core that is full of anything.
func (v *view) severeTime(c *core) Severity {
	switch {
	case c.busy >= full:
		return v.critical()
	case c.busy >= busy:
		return Warning
	}
	return Notice
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// hashPorts returns the commands that make a card's hash include the ports of UDP.
func (n *nic) hashPorts() (remedies []Remedy) {
	if n.RSS == nil {
		return nil
	}
	for _, proto := range []string{"udp4", "udp6"} {
		if fields, known := n.RSS.Hash[proto]; known && !strings.ContainsAny(fields, "fn") {
			remedies = append(remedies, Remedy{Command: fmt.Sprintf("ethtool -N %s rx-flow-hash %s sdfn", n.Name, proto), Text: "include ports in the hash of UDP: the card itself then spreads flows between the same two hosts"})
		}
	}
	return remedies
}
