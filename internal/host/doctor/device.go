package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/internal/units"
)

func deviceChecks() []Check {
	return []Check{
		{ID: "OFF-1", Title: "LRO merges received packets although the box forwards", Reads: []string{"interfaces.features", "sysctls"}, Worst: Warning, needs: []need{(*view).noOffloads}, run: largeReceive},
		{ID: "OFF-2", Title: "a useful offload is off", Reads: []string{"interfaces.features"}, Worst: Warning, needs: []need{(*view).noCards}, run: helpful},
		{ID: "LINK-1", Title: "a link runs below its port's speed", Reads: []string{"interfaces.mbit", "interfaces.max_mbit", "interfaces.duplex", "interfaces.offers", "statistics"}, Worst: Critical, needs: []need{(*view).noCards}, run: eachNIC(slowLink)},
		{ID: "LAG-1", Title: "a member of a link aggregation group is full", Reads: []string{"interfaces.bond", "links"}, Worst: Critical, needs: []need{noInterfaces}, run: aggregation},
		{ID: "PCI-1", Title: "a card's slot is slower than the card", Reads: []string{"interfaces.pci", "interfaces.usb_mbit", "interfaces.mbit", "links"}, Worst: Critical, needs: []need{(*view).noCards}, run: eachNIC(slot)},
		{ID: "PCI-2", Title: "a card's slot repeats transfers", Reads: []string{"bus"}, Worst: Critical, needs: []need{(*view).noCards}, run: eachNIC(repeats)},
		{ID: "XDP-1", Title: "packets are not handled at XDP", Reads: []string{"weir.interfaces", "interfaces.xdp"}, Worst: Warning, needs: []need{(*view).noNICs}, run: hooks},
		{ID: "WIFI-1", Title: "the air is full, or loses frames", Reads: []string{"statistics", "links"}, Worst: Warning, needs: []need{(*view).noCards}, run: eachNIC(air)},
		{ID: "EEE-1", Title: "the link sleeps between packets (EEE)", Reads: []string{"interfaces.eee"}, Worst: Notice, needs: []need{(*view).noCards}, run: eachNIC(checkEEE)},
	}
}

// forwarding reports whether the box forwards at all. known is false if no sysctl says
// so.
func (v *view) forwarding() (on, known bool) {
	on4, known4 := v.routes("ipv4")
	on6, known6 := v.routes("ipv6")
	return on4 || on6 || v.Weir != nil, known4 || known6 || v.Weir != nil
}

// longNames maps the kernel's names of features to the names of ethtool -k.
var longNames = map[string]string{"rx-lro": "large-receive-offload", "rx-gro": "generic-receive-offload", "rx-checksum": "rx-checksumming", "tx-tcp-segmentation": "tcp-segmentation-offload"}

// feature reports whether an offload is on. It tries both names.
func (i *Interface) feature(name string) (on, known bool) {
	if on, known = i.Features[name]; !known {
		on, known = i.Features[longNames[name]]
	}
	return on, known
}

// noOffloads is [view.noNICs], but for FreeBSD, whose sysctls tell of LRO.
func (v *view) noOffloads(o *outcome) bool { return v.Host.System != "FreeBSD" && v.noNICs(o) }

func largeReceive(v *view) (o outcome) {
	if v.Host.System == "FreeBSD" {
		return v.bsdMerged()
	}
	on, known := v.forwarding()
	if !known {
		o.lacks(v, "sysctls.net.ipv4.ip_forward")
		return o
	}
	if !on {
		o.absent = "the box does not forward"
		return o
	}
	for _, n := range v.nics {
		if n.Features == nil {
			o.lacks(v, "interfaces."+n.Name+".features")
			continue
		}
		on, known := n.feature("rx-lro")
		if !known && !n.virtual {
			o.lacks(v, "interfaces."+n.Name+".features.rx-lro")
		}
		if !on {
			continue
		}
		o.add(Finding{
			Severity: Warning, Subject: n.Name, core: -1,
			Says:     fmt.Sprintf("%s merges received packets (LRO) although the box forwards: merged packets cannot be forwarded unchanged", n.Name),
			Evidence: []string{n.Name + ": rx-lro is on, and forwarding is on"},
			Remedies: []Remedy{{Command: "ethtool -K " + n.Name + " lro off", Text: "GRO does the same work, and can be undone exactly"}},
			Expect:   "no packets above the MTU, and no retransmissions because of them; XDP can attach",
		})
	}
	return o
}

// offloads lists those that make each packet cheaper. GRO has no effect on packets that
// XDP takes.
var offloads = []struct{ feature, name, flag string }{
	{"rx-gro", "GRO", "gro"},
	{"rx-checksum", "receive checksums", "rx"},
}

func helpfulOffloads(v *view, n *nic, o *outcome) {
	if n.Features == nil {
		o.lacks(v, "interfaces."+n.Name+".features")
		return
	}
	for _, h := range offloads {
		on, known := n.feature(h.feature)
		if on || !known || h.feature == "rx-gro" && (n.XDP == "native" || v.mergedByProgram() != nil) {
			continue
		}
		o.add(Finding{
			Severity: min(v.severe(v.load(n)), Warning), Subject: n.Name, core: -1,
			Says:     fmt.Sprintf("%s is off on %s", h.name, n.Name),
			Evidence: []string{fmt.Sprintf("%s: %s is off", n.Name, h.feature)},
			Remedies: []Remedy{{Command: fmt.Sprintf("ethtool -K %s %s on", n.Name, h.flag), Text: "switch it on for the packets that the stack handles"}},
			Expect:   "fewer cycles per packet on the core that serves the card; measure it: single packets gain nothing",
		})
	}
}

// paravirtual lists drivers of cards made by a hypervisor. These cards have no link, PCI
// slot or pause frames of their own.
var paravirtual = map[string]bool{"virtio_net": true, "ena": true, "gve": true, "hv_netvsc": true, "vmxnet3": true, "vif": true}

// hosted reports whether the host decides what a card does not report. If all cards are
// such, it notes that there is nothing to check.
func (n *nic) hosted(o *outcome) bool {
	if !paravirtual[n.Driver] {
		return false
	}
	o.absent = "a hypervisor's card: only the host knows"
	return true
}

// linkFull is the share of a link's rate that counts as full. Bursts, and gaps that no
// sender fills, take the rest.
const linkFull = 0.94

func aggregation(v *view) (o outcome) {
	o.absent = "no link aggregation group is up"
	for i := range v.Interfaces {
		b := &v.Interfaces[i]
		if b.Bond == nil || !b.Up {
			continue
		}
		o.absent = ""
		v.absentMembers(&o, b)
		v.apartMembers(&o, b)
		v.members(&o, b)
	}
	return o
}

// absentMembers looks for members of a bond that are down: what is left carries all.
func (v *view) absentMembers(o *outcome, b *Interface) {
	var down []string
	for _, name := range b.Bond.Members {
		if d := v.device(name); d != nil && !d.Up {
			down = append(down, name)
		}
	}
	if len(down) == 0 {
		return
	}
	o.add(Finding{
		Severity: Warning, Subject: b.Name, core: -1,
		Says:     fmt.Sprintf("%s of the %d members of %s %s down: the others carry all, and nothing is left to fail over to", join(down), len(b.Bond.Members), b.Name, beVerb(len(down))),
		Evidence: []string{fmt.Sprintf("%s: mode %s; down: %s", b.Name, b.Bond.Mode, join(down))},
		Remedies: []Remedy{{Command: "cat /proc/net/bonding/" + b.Name, Text: "see MII Status and Link Failure Count of each member; then its cable, its transceiver and the switch's port"}},
		Expect:   "all members carry traffic",
	})
}

// apartMembers looks for members of a bond that joined another aggregate than the others. The
// bond uses one aggregate: what is in another carries nothing.
func (v *view) apartMembers(o *outcome, b *Interface) {
	in := map[int][]string{}
	for _, name := range b.Bond.Members {
		if d := v.device(name); d != nil && d.Up && b.Bond.Aggregates[name] > 0 {
			in[b.Bond.Aggregates[name]] = append(in[b.Bond.Aggregates[name]], name)
		}
	}
	if len(in) < 2 {
		return
	}
	var most []string
	for _, id := range sortedKeys(in) {
		if len(in[id]) > len(most) {
			most = in[id]
		}
	}
	apart := slices.DeleteFunc(slices.Clone(b.Bond.Members), func(name string) bool {
		return slices.Contains(most, name) || b.Bond.Aggregates[name] == 0
	})
	o.add(Finding{
		Severity: Warning, Subject: b.Name, core: -1, weight: float64(len(apart)),
		Says:     fmt.Sprintf("%s %s up, but not in one aggregate with %s: %s uses one aggregate, and the others carry nothing", join(apart), beVerb(len(apart)), join(most), b.Name),
		Evidence: []string{fmt.Sprintf("%s: mode %s, %d aggregates", b.Name, b.Bond.Mode, len(in))},
		Remedies: []Remedy{{Command: "grep -E 'Interface|Aggregator ID|Mac Address' /proc/net/bonding/" + b.Name, Text: "compare the partners: one of zeros does not speak LACP on that port; different ones are two switches, or two groups of one. Put the ports into one LACP group there"}},
		Expect:   "all members have one aggregator ID, and share the traffic",
	})
}

// members looks for a full member of a bond while other members have room.
func (v *view) members(o *outcome, b *Interface) {
	var fullest *nic
	var most, sum float64
	var sends bool
	var lines []string
	for _, name := range b.Bond.Members {
		n := v.nic(name)
		if n == nil {
			continue
		}
		share, tx, ok := n.wire(v.Seconds)
		if !ok {
			o.lacks(v, "links."+name+" and its mbit")
			return
		}
		lines = append(lines, fmt.Sprintf("%s at %s of %s Mbit/s", name, percent(share), units.Thousands(n.Mbit)))
		sum += share
		if share > most {
			fullest, most, sends = n, share, tx
		}
	}
	count := len(lines)
	if fullest == nil || count < 2 || most < linkFull || sum/float64(count) > 0.75 {
		return
	}
	f := Finding{
		Severity: Critical, Subject: b.Name, core: -1, weight: most,
		Says:     fmt.Sprintf("%s, one of %d members of %s, is full while the others have room: a flow never uses more than one member", fullest.Name, count, b.Name),
		Evidence: []string{strings.Join(lines, ", "), fmt.Sprintf("%s: mode %s, hash %s", b.Name, b.Bond.Mode, cmp.Or(b.Bond.Hash, "none"))},
		Expect:   "several flows use several members; one flow stays at one member's rate",
	}
	switch {
	case !sends:
		f.Remedies = []Remedy{{Command: "cat /proc/net/bonding/" + b.Name, Text: "see which device is the other end (partner): it chooses the member for received frames; make its hash use ports (layer 3 and 4)"}}
	case strings.Contains(b.Bond.Hash, "3+4"):
		f.Remedies = []Remedy{{Command: "ip -s link show master " + b.Name, Text: "watch the members: the hash already uses ports, so this is one flow, or few; a faster link helps, more members do not"}}
	default:
		f.Remedies = []Remedy{{Command: fmt.Sprintf("ip link set %s type bond xmit_hash_policy layer3+4", b.Name), Text: "include ports in the hash"}}
	}
	o.add(f)
}

// laneGbit is the data rate of a lane at a number of transfers: 8 of 10 bits are data up
// to PCIe 2, 128 of 130 later.
func laneGbit(gt float64) float64 {
	if gt <= 5 {
		return gt * 0.8
	}
	return gt * 128 / 130
}

func slot(v *view, n *nic, o *outcome) {
	if n.USB > 0 {
		v.usbPort(n, o)
		return
	}
	p := n.PCI
	if p == nil || p.Speed == 0 || p.Width == 0 {
		if !n.hosted(o) {
			o.lacks(v, "interfaces."+n.Name+".pci")
		}
		return
	}
	if p.Speed >= p.MaxSpeed && p.Width >= p.MaxWidth {
		return
	}
	carries := laneGbit(p.Speed) * float64(p.Width)
	f := Finding{
		Severity: Notice, Subject: n.Name, core: -1,
		Says:     fmt.Sprintf("%s sits in a slot of %s at %g GT/s, and supports %d at %g", n.Name, plural(p.Width, "lane"), p.Speed, max(p.MaxWidth, p.Width), max(p.MaxSpeed, p.Speed)),
		Evidence: []string{fmt.Sprintf("%s: the slot carries %s Gbit/s in each direction, the link %s Mbit/s", n.Name, units.Digits(carries, 3), units.Thousands(n.Mbit))},
		Remedies: []Remedy{{Command: "lspci -vv -s " + cmp.Or(p.Address, "$(basename $(readlink /sys/class/net/"+n.Name+"/device))"), Text: "see LnkCap and LnkSta; move the card to a slot with its lanes and speed, and see that no riser or BIOS setting narrows it"}},
		Expect:   "the bus carries what the link does, with room for descriptors",
	}
	// Bus headers and descriptors take a fifth at 1,500 bytes, and more for
	// smaller packets.
	if n.Mbit > 0 && carries < 1.25*float64(n.Mbit)/1000 {
		f.Severity = Warning
		f.Says += ": less than its link carries"
	}
	// Near what the slot carries, a card's memory fills although all cores have room.
	if used := float64(max(n.link.RxBytes, n.link.TxBytes)) * 8 / v.Seconds / 1e9; v.Seconds > 0 && used >= busFull*carries {
		f.Severity, f.bites = max(f.Severity, Warning), true
		f.Says += fmt.Sprintf(", and it carries %s now", bitRate(used*1e9))
	} else if lost, _ := v.lost(n); lost >= fewLost && f.Severity == Warning && v.load(n) != nil && v.load(n).busy < busy {
		f.bites = true // the ring fills although the core has room
	}
	o.add(f)
}

// usbCarries returns what a USB port carries of Ethernet at most, in Mbit/s. Up to USB 3.0, 8 of 10 bits
// are data (480 Mbit/s: all); the protocol takes a fifth, and with 480 Mbit/s, where the host
// asks for each transfer, more than a third.
func usbCarries(mbit int) int {
	switch {
	case mbit <= 480:
		return mbit * 63 / 100
	case mbit <= 5000:
		return mbit * 64 / 100
	}
	return mbit * 75 / 100
}

// usbPort looks for a card on a USB port that carries less than its link.
func (v *view) usbPort(n *nic, o *outcome) {
	carries := usbCarries(n.USB)
	if n.Mbit <= carries {
		return
	}
	f := Finding{
		Severity: Notice, Subject: n.Name, core: -1,
		Says:     fmt.Sprintf("%s is plugged into a USB port of %s Mbit/s, which carries some %s of the %s that its link has", n.Name, units.Thousands(n.USB), units.Thousands(carries), units.Thousands(n.Mbit)),
		Evidence: []string{fmt.Sprintf("%s: USB at %d Mbit/s, the link at %d", n.Name, n.USB, n.Mbit)},
		Remedies: []Remedy{{Command: "lsusb -t", Text: "see the speed of each port and of the hub between (480M is USB 2): plug it into one of 5000M or more, with a cable for that"}},
		Expect:   "the bus carries what the link does",
	}
	if used := float64(max(n.link.RxBytes, n.link.TxBytes)) * 8 / max(v.Seconds, 1) / 1e6; v.Seconds > 0 && used >= half*float64(carries) {
		f.Severity, f.bites = Warning, true
		f.Says += fmt.Sprintf(", and it carries %s now", bitRate(used*1e6))
	}
	o.add(f)
}

// busFull is the share of a slot's rate, without headers and descriptors, from which on
// it is the limit.
const busFull = 0.7

func hooks(v *view) (o outcome) {
	for _, n := range v.nics {
		if n.XDP == "generic" {
			o.add(Finding{
				Severity: Warning, Subject: n.Name, core: -1,
				Says:     fmt.Sprintf("an XDP program runs on %s in generic mode, after the allocation that XDP is meant to avoid", n.Name),
				Evidence: []string{n.Name + ": XDP mode generic"},
				Remedies: append([]Remedy{{Command: "ip link set " + n.Name + " xdpgeneric off", Text: "detach it; weir itself never attaches this way"}}, n.forNative()...),
				Expect:   "fewer cycles per packet than with it",
			})
		}
	}
	if v.noWeir(&o) {
		return o
	}
	for _, w := range v.Weir.Interfaces {
		n := v.nic(w.Name)
		if n == nil || w.Hook == "xdp" {
			continue
		}
		o.add(Finding{
			Severity: min(v.severe(v.load(n)), Warning), Subject: n.Name, core: -1,
			Says:     fmt.Sprintf("weir handles packets of %s at %s, not at XDP: %s", n.Name, cmp.Or(w.Hook, "none"), cmp.Or(w.Why, "none")),
			Evidence: []string{"weir interfaces: " + n.Name + " " + w.Hook + ": " + w.Why},
			Remedies: append([]Remedy{{Command: "weir interfaces", Text: "the column WHY says what to change: MTU, queues, LRO, a foreign program, or the driver"}}, n.forNative()...),
			Expect:   "packets of established connections cost a fraction of what they cost in the stack",
		})
	}
	return o
}

// native says by driver what it wants before it runs XDP by itself.
var native = map[string]string{
	"gve":        "gve uses at most half of its queues beside XDP: ethtool -L combined to half of the maximum, or, if that is one, a larger maximum (queue-count of the VM's card)",
	"ena":        "ena uses at most half of its queues beside XDP, and an MTU of at most 3,498: ethtool -L combined to half of the maximum",
	"virtio_net": "virtio_net wants a spare queue for each core (queues= of the hypervisor at twice the cores), and no merged packets from the host (guest_tso4=off,guest_tso6=off, or lro off)",
	"vmxnet3":    "vmxnet3 runs XDP from Linux 6.6 on, without LRO",
	"hv_netvsc":  "hv_netvsc wants LRO off, and an MTU of at most a page",
	"ixgbe":      "ixgbe wants LRO off, an MTU of at most 3,050, and no more cores than it has queues to send by (64)",
	"mlx5_core":  "mlx5 wants LRO off, and an MTU of at most 3,498",
	"i40e":       "i40e wants an MTU of at most 3,046",
	"bnxt_en":    "bnxt_en wants an MTU of at most 3,500, and LRO off",
	"stmmac":     "stmmac wants an MTU of at most 1,500",
}

// forNative returns what the card's driver wants before it runs XDP by itself, if that is known.
func (n *nic) forNative() []Remedy {
	if text := native[n.Driver]; text != "" {
		return []Remedy{{Command: "ethtool -l " + n.Name, Text: text}}
	}
	return nil
}

func checkEEE(v *view, n *nic, o *outcome) {
	if n.EEE == nil {
		if !n.hosted(o) {
			o.lacks(v, "interfaces."+n.Name+".eee")
		}
		return
	}
	if !n.EEE.Active {
		return
	}
	o.add(Finding{
		Severity: Notice, Subject: n.Name, core: -1,
		Says:     fmt.Sprintf("%s puts its link to sleep between packets (EEE): waking takes about 17 µs at 1 Gbit/s, and some switches drop frames", n.Name),
		Evidence: []string{n.Name + ": EEE enabled and active"},
		Remedies: []Remedy{{Command: "ethtool --set-eee " + n.Name + " eee off", Text: "if delays vary or frames are lost at low load; the link goes down for a moment"}},
		Expect:   "steadier delays at low load; nothing at high load",
	})
}
