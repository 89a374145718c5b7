package doctor

import (
	"fmt"
	"slices"
)

// bulkRate is the rate of packets of full size from which on it matters whether they are
// merged, in packets a second.
const bulkRate = 10000

// helpful checks offloads that make each packet cheaper.
func helpful(v *view) outcome {
	o := eachNIC(helpfulOffloads)(v)
	for i := range v.Interfaces {
		v.unmerged(&o, &v.Interfaces[i])
	}
	return o
}

// unmerged finds a virtual device that a good part of all packets come in by, one by one, while a
// core is busy with them: those of a guest without segmentation, or of a veth without GRO. Merged,
// a dozen of them cost as much as one.
func (v *view) unmerged(o *outcome, d *Interface) {
	l, known := v.link(d.Name)
	if !d.Up || !known || v.Seconds <= 0 || float64(l.RxPackets)/v.Seconds < bulkRate || float64(l.RxPackets) < burdensome*float64(v.received()) {
		return
	}
	mtu := uint64(d.MTU)
	if size := l.RxBytes / l.RxPackets; mtu == 0 || 3*size < 2*mtu || size > mtu+ethernetHeader {
		return // small packets gain little, and larger ones are merged
	}
	f := Finding{
		Severity: Warning, Subject: d.Name, core: -1, weight: float64(l.RxPackets), kind: "merge", bites: true,
		Evidence: []string{fmt.Sprintf("%s: %s of %d bytes on average", d.Name, v.rate(l.RxPackets), l.RxBytes/l.RxPackets)},
		Expect:   "a core handles several times as much: a dozen segments cost as much as one",
	}
	gro, knowsGRO := d.feature("rx-gro")
	tso, knowsTSO := d.feature("tx-tcp-segmentation")
	switch {
	case d.Kind == "veth" && knowsGRO && !gro && d.XDP == "":
		f.Says = fmt.Sprintf("full packets come one by one over %s, whose GRO is off, as a veth's is by default", d.Name)
		f.Remedies = []Remedy{{Command: "ethtool -K " + d.Name + " gro on", Text: "merge segments there (Linux 5.13 and later): what encrypts, translates or bridges them then handles one large packet in place of many. For good: where the pair is made"}}
	case d.Kind == "physical" && knowsGRO && !gro && d.XDP == "":
		f.Says = fmt.Sprintf("full packets come one by one from %s, whose GRO is off", d.Name)
		f.Remedies = []Remedy{{Command: "ethtool -K " + d.Name + " gro on", Text: "merge the segments of a flow before the stack handles them; what is forwarded is split again. Some drivers have it off by default, and some programs that read packets themselves want it so"}}
	case d.guest() && knowsTSO && !tso:
		f.Says = fmt.Sprintf("the guest behind %s sends full packets one by one: the tap has no checksum and segmentation offloads", d.Name)
		f.Remedies = []Remedy{{Text: "open the tap with vnet headers (vnet_hdr=on, host_tso4=on, guest_tso4=on, csum=on of the hypervisor's card), and give the guest virtio: it then sends up to 64 KB at once"}}
	default:
		return
	}
	only := v.servesOf(d)
	c := v.busiestOf(func(c *core) bool {
		if only != nil && !slices.Contains(only, c.ID) {
			return false
		}
		return c.busy >= busy && (c.forwards() || c.inKernel() || c.network()+c.system >= c.busy/2)
	})
	if c == nil {
		return
	}
	if c.busy >= full {
		f.Severity = v.critical()
	}
	f.cores = []int{c.ID}
	f.Evidence = append(f.Evidence, c.line())
	o.findings = slices.DeleteFunc(o.findings, func(same Finding) bool { // what helpfulOffloads says of it
		return same.Subject == f.Subject && len(f.Remedies) > 0 && same.Remedies[0].Command == f.Remedies[0].Command
	})
	o.add(f)
}

// servesOf returns the cores that serve a card's queues; nil: it is a virtual device, or they are
// not known.
func (v *view) servesOf(d *Interface) (ids []int) {
	if n := v.nic(d.Name); n != nil && !n.virtual {
		for _, q := range n.queues {
			ids = append(ids, q.cores...)
		}
	}
	return ids
}

// mergedByProgram returns the device of a program that hands over packets larger than its MTU:
// it reads packets from a card by itself, and takes them merged; nil: there is none.
func (v *view) mergedByProgram() *Interface {
	for i := range v.Interfaces {
		d := &v.Interfaces[i]
		l, known := v.link(d.Name)
		if d.Up && userSpace[d.Kind] && !d.guest() && d.MTU > 0 && known && l.RxPackets >= few && l.RxBytes/l.RxPackets > uint64(d.MTU)+ethernetHeader {
			return d
		}
	}
	return nil
}

// unmerge returns the commands that hand packets to such a program as they came.
func (v *view) unmerge() (remedies []Remedy) {
	for _, n := range v.nics {
		if on, known := n.feature("rx-gro"); !n.virtual && (on || !known) && n.link.RxPackets > 0 {
			remedies = append(remedies, Remedy{Command: "ethtool -K " + n.Name + " gro off", Text: "on the card that the program reads from: it then gets packets as they came (a hotspot's, a mobile core's or a filter's program); on other cards leave it on"})
		}
	}
	return remedies
}

// ethernetHeader is what a link counts of a packet besides its MTU at most, in bytes: addresses,
// type and two tags.
const ethernetHeader = 22
