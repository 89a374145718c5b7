package doctor

import (
	"fmt"
	"slices"

	"weir/internal/host/cpulist"
)

// tooFewQueues looks for cards whose queues are all in use and evenly loaded, and whose
// cores are full all the same. Only the stack can spread the packets further.
func tooFewQueues(v *view) (o outcome) {
	filled := v.spreadable()
	for _, n := range v.nics {
		v.fullTargets(&o, n, filled)
		v.needless(&o, n)
		if n.queueCount() == 0 || len(n.queues) == 0 && n.counted && n.link.RxPackets > 0 {
			o.lacks(v, "statistics."+n.Name)
			continue
		}
		q := n.fills(filled)
		if q == nil && n.virtual && n.queueCount() == 1 {
			v.fewVirtual(&o, n)
		}
		if q == nil {
			v.hostThread(&o, n)
		}
		if q == nil || n.maxQueues() > n.queueCount() || n.isUneven(q) {
			continue
		}
		v.keepsOwn(&o, n, q)
		if v.carriesPPP(n.Name) {
			continue // PPP-1 reports it
		}
		if n.RPS == nil {
			o.lacks(v, "interfaces."+n.Name+".rps") // the core is full in any case
		}
		if n.Channels == nil {
			o.lacks(v, "interfaces."+n.Name+".channels")
		}
		if !v.spreads(n, q) {
			o.add(v.few(n, q))
		}
	}
	return o
}

// keepsOwn checks a full core whose RPS leaves it a part of the flows. It receives all of
// them, and so is better left out of the mask (scaling.rst).
func (v *view) keepsOwn(o *outcome, n *nic, q *queue) {
	cpus, err := cpulist.Parse(v.rps(n, q.n))
	c := v.loaded(q)
	if err != nil || c == nil || len(cpus) < 2 || !slices.Contains(cpus, c.ID) {
		return // the bundle was checked when it was read
	}
	rest := slices.DeleteFunc(slices.Clone(cpus), func(id int) bool { return id == c.ID })
	if slices.ContainsFunc(rest, func(id int) bool { other := v.core(id); return other == nil || other.busy >= working }) {
		return
	}
	o.add(Finding{
		Severity: v.severe(c), Subject: n.Name, core: c.ID, weight: q.share, kind: "own",
		Says:     fmt.Sprintf("RPS leaves 1 of %d flows of %s on %s, which receives all packets of queue %d and is full; %s room", len(cpus), n.Name, c.name(), q.n, otherRoom(rest)),
		Evidence: []string{fmt.Sprintf("rps_cpus of %s: %s", n.Name, coreList(cpus)), v.queueLine(n), c.line()},
		Remedies: []Remedy{{
			Command: fmt.Sprintf("echo %s > /sys/class/net/%s/queues/rx-%d/rps_cpus", cpulist.FormatMask(rest), n.Name, q.n),
			Text:    "leave out the core that receives: it then only empties the ring and hands over",
		}},
		Expect:  "more packets, because the full core does less for each",
		because: fmt.Sprintf("it receives all packets of %s, and RPS leaves it a part of the flows", n.Name),
	})
}

func otherRoom(cores []int) string {
	if len(cores) == 1 {
		return coreList(cores) + " has"
	}
	return coreList(cores) + " have"
}

// fewVirtual checks a veth with one queue. The core that sends also receives.
func (v *view) fewVirtual(o *outcome, n *nic) {
	q := n.largest()
	filled := v.spreadable()
	if q == nil || len(q.cores) > 0 || len(filled) == 0 || v.part(n) < 0.5 || v.spreads(n, q) {
		return
	}
	o.add(Finding{
		Severity: v.critical(), Subject: n.Name, core: -1, weight: v.part(n),
		Says:     n.Name + " has 1 queue, and the core that sends to it receives as well",
		Evidence: []string{v.queueLine(n), filled[0].line()},
		Remedies: v.spread(n, q),
		Expect:   "flows spread over more cores, at the cost of handing packets over",
		because:  n.Name + " has one queue, which is received by the core that sends to it",
	})
}

// hostThread checks a guest's card with one queue: one thread of the host carries all its
// packets, and may be full although the core here, which does less for each, is not.
func (v *view) hostThread(o *outcome, n *nic) {
	const many = 200000 // packets a second in both directions, which such threads rarely exceed
	q := n.largest()
	if n.Driver != "virtio_net" || !v.Host.Hypervisor || n.queueCount() != 1 || q == nil || len(v.cores) < 4 {
		return
	}
	c := v.loaded(q)
	if c == nil && len(q.cores) == 0 {
		c = v.busiestCore() // one core receives, and nobody knows which
	}
	packets := n.link.RxPackets + n.link.TxPackets
	if c == nil || c.network() < working || float64(packets)/v.Seconds < many {
		return
	}
	o.add(Finding{
		Severity: Warning, Subject: n.Name, core: c.ID, weight: q.share,
		Says:     fmt.Sprintf("%s has 1 queue: one thread of the host carries its %s, and may be full although no core here is", n.Name, v.rate(packets)),
		Evidence: []string{v.queueLine(n), c.line()},
		Remedies: []Remedy{{Command: fmt.Sprintf("ethtool -L %s combined %d", n.Name, len(v.cpusFor(n))), Text: "after the host offers more: " + moreQueues(n.Driver)}},
		Expect:   "several threads of the host, and several cores here, share the packets",
	})
}

// carriesPPP reports whether a PPPoE session runs over a device.
func (v *view) carriesPPP(name string) bool {
	return slices.ContainsFunc(v.Interfaces, func(i Interface) bool { return i.Kind == "ppp" && i.Up && v.bottom(i.Parent) == name })
}

// fills returns the card's largest queue that one of these cores serves. It does so only
// if all queues with a good part of the card's packets are on these cores; otherwise
// other queues have room.
func (n *nic) fills(cores []*core) (most *queue) {
	for _, q := range n.active() {
		if len(q.cores) > 0 && !slices.ContainsFunc(cores, func(c *core) bool { return c.ID == q.cores[0] }) {
			return nil
		}
	}
	for _, q := range n.queues {
		served := q.burden >= burdensome && slices.ContainsFunc(cores, func(c *core) bool { return c.ID == q.cores[0] })
		if served && (most == nil || q.packets > most.packets) {
			most = q
		}
	}
	return most
}

func (v *view) few(n *nic, q *queue) Finding {
	c := v.loaded(q)
	has := "1 queue, which fills a core"
	if count := len(n.queues); count > 1 {
		has = fmt.Sprintf("%d queues, which fill their cores", count)
	}
	spread := "RPS spreads nothing"
	if n.RPS == nil {
		spread = "whether RPS spreads them was not readable"
	}
	verb := "has no more than"
	if n.Channels == nil {
		verb = "receives by" // it may use more of them
	}
	kind := ""
	if beside := v.besides(q); q.burden < mostly && len(n.queues) == 1 && len(beside) > 0 {
		kind, has = "shared", fmt.Sprintf("1 queue, which shares %s with %s", c.name(), join(beside))
	}
	f := Finding{
		Severity: v.severe(c), Subject: n.Name, core: c.ID, weight: q.share, kind: kind,
		Says:     fmt.Sprintf("%s %s %s; %s", n.Name, verb, has, spread),
		Evidence: []string{v.queueLine(n), c.line()},
		Expect:   "flows spread over more cores, at the cost of handing packets over; packets that weir handles at XDP stay on the core that receives them",
		because:  fmt.Sprintf("%s %s %s", n.Name, verb, has),
	}
	if paravirtual[n.Driver] && n.Channels != nil && v.Host.Hypervisor {
		f.Remedies = append(f.Remedies, Remedy{Command: fmt.Sprintf("ethtool -L %s combined %d", n.Name, len(v.cpusFor(n))),
			Text: "after the host offers more: " + moreQueues(n.Driver)})
	}
	if n.Driver == "ice" && len(n.queues) == 1 && n.maxQueues() == 1 { // ice_set_safe_mode_caps
		f.Remedies = append(f.Remedies, Remedy{Command: "dmesg | grep -iE 'ice.*(DDP|safe mode)'", Text: "ice has one queue only in Safe Mode: it did not find its DDP package. Install it (firmware-intel-misc, or linux-firmware with intel/ice/ddp/ice.pkg), also in the initramfs, and load the driver again"})
	}
	for _, q := range n.queues {
		f.Remedies = append(f.Remedies, v.spread(n, q)...)
	}
	if other := c.user + c.system - c.threads; other >= beside {
		f.Remedies = append(f.Remedies, Remedy{Command: "top -1 -H", Text: fmt.Sprintf("%s of %s is other work: find the program, and keep it off %s (CPUAffinity= of its unit, or taskset), whatever spreads the packets", percent(other), c.name(), c.name())})
	}
	return f
}

// beside is the share of a core's time from which on work beside the packets is worth moving.
const beside = 0.3

// besides names the other queues that bring the core of a queue a good part of its packets.
func (v *view) besides(q *queue) (names []string) {
	for _, m := range v.nics {
		for _, other := range m.active() {
			if other != q && len(other.cores) > 0 && other.cores[0] == q.cores[0] && other.burden >= burdensome {
				names = append(names, place{m, other}.String())
			}
		}
	}
	return names
}

// moreQueues says where a hypervisor's host sets the number of a card's queues.
func moreQueues(driver string) string {
	switch driver {
	case "vmxnet3":
		return "vmxnet3 has as many queues as the machine had cores when its card was made, up to 8, if its hardware version is recent enough"
	case "hv_netvsc":
		return "queues= of a card of Hyper-V is its VMMQ (Set-VMNetworkAdapter -VmmqEnabled), and Azure gives a card a queue for each core"
	case "ena", "gve":
		return "the machine's type decides it; for gve see queue-count of the card"
	case "vif":
		return "max_queues of xen-netback, and then of xen-netfront"
	}
	return "queues= of the card in the hypervisor (queues=N of QEMU's netdev with vectors=2N+2, Multiqueue in Proxmox)"
}

// fullTargets looks for RPS that spreads only to full cores which mostly work on packets
// from other cores.
func (v *view) fullTargets(o *outcome, n *nic, filled []*core) {
	var targets, queues []int
	for q := range n.RPS {
		cpus, err := cpulist.Parse(n.RPS[q])
		if err != nil || len(cpus) == 0 {
			continue // the bundle was checked when it was read
		}
		for _, id := range cpus {
			c := v.core(id)
			if !slices.Contains(filled, c) || 2*c.received < c.processed {
				return
			}
		}
		targets, queues = append(targets, cpus...), append(queues, q)
	}
	all := v.cpusFor(n)
	if len(targets) == 0 || n.link.RxPackets == 0 || len(all) <= distinct(targets) {
		return
	}
	cores := slices.DeleteFunc(slices.Clone(filled), func(c *core) bool { return !slices.Contains(targets, c.ID) })
	f := Finding{
		Severity: v.critical(), Subject: n.Name, core: cores[0].ID, weight: v.part(n),
		Says:     fmt.Sprintf("RPS hands the packets of %s to %s, which %s full; other cores have room", n.Name, cpuNames(cores), beVerb(len(cores))),
		Evidence: []string{fmt.Sprintf("rps_cpus of %s: %s", n.Name, coreList(targets))},
		Expect:   "more cores share the packets that are handed over",
		because:  fmt.Sprintf("RPS hands the packets of %s to no other core", n.Name),
	}
	for _, c := range cores {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s, handed over by others: %s of %s", c.line(), v.rate(c.received), v.rate(c.processed)))
	}
	for _, q := range queues {
		f.Remedies = append(f.Remedies, Remedy{
			Command: fmt.Sprintf("echo %s > /sys/class/net/%s/queues/rx-%d/rps_cpus", cpulist.FormatMask(all), n.Name, q),
			Text:    "spread to " + coreList(all) + ", of which some have room",
		})
	}
	o.add(f)
}
