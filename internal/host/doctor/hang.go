package doctor

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"weir/internal/pattern"
	"weir/internal/units"
)

// hangs matches drivers' counts of a send queue that stood still until the kernel reset the
// card (dev_watchdog).
var hangs = pattern.New(`(?i)^(?:tx[-_]?(?:queue_\d+_)?(?:timeouts?|timeout_count|hang)|(?:queue_\d+_)?tx_timeout(?:s|_count)?|tx_hang_count|wd_expired|reset_fail_cnt)$`)

// lateSends matches counts of packets that the card did not report as sent in time. Drivers
// then reset it.
var lateSends = pattern.New(`(?i)^(?:queue_\d+_)?(?:tx_)?(?:missed_tx|missing_tx_cmpl|lost_tx_completions?)$`)

// stalled finds cards that stop sending. Each reset takes the link down.
func stalled(v *view, n *nic, o *outcome) {
	if !n.counted {
		o.lacks(v, "links."+n.Name)
		return
	}
	v.deaf(n, o)
	v.mute(n, o)
	times, counter := v.worstOf(n.Name, hangs.MatchString)
	if n.link.TxTimeouts > times {
		times, counter = n.link.TxTimeouts, "tx_timeout of its queues"
	}
	late, lateCounter := v.worstOf(n.Name, lateSends.MatchString)
	if times == 0 && (late == 0 || n.link.CarrierChanges == 0) {
		return
	}
	f := Finding{
		Severity: Critical, Subject: n.Name, core: -1, weight: float64(times), kind: "send", bites: true,
		Says:     fmt.Sprintf("%s stopped sending %s in %s, and the kernel reset it (NETDEV WATCHDOG)", n.Name, timesOf(times), seconds(v.Seconds)),
		Evidence: []string{grew(counter, n.Name, times, v.Seconds), "driver " + cmp.Or(n.Driver, "unknown")},
		Expect:   "the card sends without a pause",
	}
	if times == 0 {
		f.weight = float64(late)
		f.Says = fmt.Sprintf("%s did not report %s packets as sent, and its driver reset it", n.Name, units.Thousands(int(late)))
		f.Evidence[0] = grew(lateCounter, n.Name, late, v.Seconds)
	}
	if n.Driver != "" && !paravirtual[n.Driver] {
		f.Remedies = append(f.Remedies, Remedy{Command: "ethtool -K " + n.Name + " tso off gso off", Text: "try first without segmentation by the card: large packets are what stalls e1000e, r8169, tg3 and others"})
	}
	f.Remedies = append(f.Remedies, withoutASPM(n, "then without the slot's sleep (ASPM)")...)
	f.Remedies = append(f.Remedies, Remedy{Command: "dmesg | grep -iE '" + n.Name + "|watchdog|hang'", Text: "see what the driver says; a newer kernel or firmware, or another driver (r8168, r8125), is the lasting cure. A hypervisor's card waits for its host"})
	o.add(f)
}

// deaf finds cards whose port still receives while the card hands nothing on: its own memory
// is full, and no queue moves. Only a reset ends that. A port that nothing of this box uses may
// belong to a program that took the card over.
func (v *view) deaf(n *nic, o *outcome) {
	lost, counter := v.lost(n)
	if lost < fewLost || n.link.RxPackets > 0 || n.virtual || n.XDP != "" {
		return
	}
	f := Finding{
		Severity: Critical, Subject: n.Name, core: -1, weight: float64(lost), kind: "receive", bites: true,
		Says:     fmt.Sprintf("%s receives, but hands nothing on: all of %s packets in %s were lost in the card", n.Name, units.Thousands(int(lost)), seconds(v.Seconds)),
		Evidence: []string{grew(counter, n.Name, lost, v.Seconds), "rx_packets of " + n.Name + ": none", "driver " + cmp.Or(n.Driver, "unknown")},
		Remedies: []Remedy{
			n.anew("the driver then sets the card up anew; unless a program has taken the card over (DPDK, netmap, AF_XDP), nothing else empties it"),
			{Command: "dmesg | grep " + n.Name, Text: "see what the driver says; a newer kernel or firmware is the lasting cure"},
		},
		Expect: "rx_packets grows again",
	}
	if v.leftAlone(n) {
		f.Severity, f.bites = Notice, false
		f.Says = fmt.Sprintf("%s loses all that it receives (%s packets in %s), and nothing of this box uses it: it is idle, or a program has it", n.Name, units.Thousands(int(lost)), seconds(v.Seconds))
		f.Expect = "nothing changes for this box"
		f.Remedies = []Remedy{{Command: "ip link set dev " + n.Name + " down", Text: "if nothing uses the port; a program that has it (DPDK, netmap, AF_XDP) counts its own packets"}}
	}
	o.add(f)
}

// mute finds cards that receive, and send nothing although packets wait in front of them, before and
// after: the card reports nothing as sent, and its driver does not notice.
func (v *view) mute(n *nic, o *outcome) {
	waits := slices.IndexFunc(v.qdiscsOf(n.Name), func(q qdisc) bool { return q.Backlog > 0 && q.Packets == 0 && v.waitedBefore(&q) })
	if n.link.TxPackets > 0 || n.link.RxPackets < few || waits < 0 || n.virtual || n.link.TxTimeouts > 0 {
		return
	}
	o.add(Finding{
		Severity: Critical, Subject: n.Name, core: -1, weight: float64(n.link.RxPackets), kind: "send", bites: true,
		Says:     fmt.Sprintf("%s sends nothing, although packets wait for it and it receives: its send queue stands still, unnoticed", n.Name),
		Evidence: []string{fmt.Sprintf("tx_packets of %s: none in %s; received: %s", n.Name, seconds(v.Seconds), units.Thousands(int(n.link.RxPackets))), v.qdiscsOf(n.Name)[waits].Interface + ": packets wait in both samples", "driver " + cmp.Or(n.Driver, "unknown")},
		Remedies: []Remedy{n.anew("the driver then sets the queue up anew"), {Command: "dmesg | grep " + n.Name, Text: "see what came before (the link went down, a resume); a newer kernel or driver is the lasting cure"}},
		Expect:   "tx_packets grows again",
	})
}

// leftAlone reports whether nothing of this box uses a card: nobody receives or sends by it, it has no address, and no
// default route, bridge, bond or VLAN names it. What is not known counts as use.
func (v *view) leftAlone(n *nic) bool {
	known := v.Routes != nil && slices.ContainsFunc(v.Interfaces, func(i Interface) bool { return len(i.Addresses) > 0 })
	return known && !n.virtual && n.XDP == "" && n.link.RxPackets+n.link.TxPackets == 0 && n.Master == "" && !v.leadsTo(n) && !n.hasAddress()
}

// hasAddress reports whether an interface has an address that others use: none that it makes of its own.
func (i *Interface) hasAddress() bool {
	return slices.ContainsFunc(i.Addresses, func(a netip.Prefix) bool { return !a.Addr().IsLinkLocalUnicast() })
}

// leadsTo reports whether a route or a VLAN leads to a card.
func (v *view) leadsTo(n *nic) bool {
	return slices.ContainsFunc(v.Routes, func(r Route) bool { return r.Interface == n.Name }) ||
		slices.ContainsFunc(v.Interfaces, func(d Interface) bool { return d.Parent == n.Name && d.Up })
}

func timesOf(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// withoutASPM returns the command that keeps a card's slot awake, if the slot may sleep.
func withoutASPM(n *nic, text string) []Remedy {
	switch p := n.PCI; {
	case p == nil || p.ASPM != nil && !*p.ASPM:
	case p.ASPM != nil && p.Address != "":
		return []Remedy{{Command: fmt.Sprintf("for f in /sys/bus/pci/devices/%s/link/*_aspm; do echo 0 > $f; done", p.Address), Text: text + "; for good: pcie_aspm=off among the kernel's parameters"}}
	case n.Driver == "r8169" || n.Driver == "e1000e" || n.Driver == "igc" || n.Driver == "alx":
		return []Remedy{{Command: "lspci -vv -s " + cmp.Or(p.Address, "…") + " | grep ASPM", Text: text + ": pcie_aspm=off among the kernel's parameters, if it says Enabled"}}
	}
	return nil
}
