package doctor

import (
	"cmp"
	"fmt"

	"weir/internal/pattern"
	"weir/internal/units"
)

// Driver statistics of damaged frames, and of frames refused for their length alone.
// Wrong lengths point to MTUs, not to cables.
var (
	badFrames = pattern.New(`(?i)(?:^|[._])(?:rx[-_])?(?:crc|fcs|symbol|align|pcs_symbol|code)[-_]?err(?:or)?s?(?:_frames|_phy|\.nic)?$|^rx_(?:crc|jabbers?(?:_phy|\.nic)?)$`)
	badLength = pattern.New(`(?i)^(?:port\.)?rx_(?:long_)?length_errors(?:\.nic)?$|^(?:port\.)?rx_oversize(?:_pkts_phy|\.nic)?$`)
)

// seen is the share of lost or damaged packets below which nothing is reported. IEEE
// 802.3 allows gigabit Ethernet a bit error rate of one in 10¹⁰, which damages this share
// of the longest frames.
const seen = 1e-6

// damaged checks for frames that were damaged on receive or send, and for links that went
// down.
func damaged(v *view) (o outcome) {
	for _, n := range v.nics {
		if !n.counted {
			o.lacks(v, "links."+n.Name)
			continue
		}
		v.receiveErrors(&o, n)
		v.sendErrors(&o, n)
	}
	if v.sampled {
		for i := range v.Interfaces {
			v.flapped(&o, &v.Interfaces[i])
		}
	}
	return o
}

// worstOf returns the matching counter that grew most. It does not add them up, because
// several count the same frame.
func (v *view) worstOf(name string, match func(string) bool) (most uint64, counter string) {
	if !v.sampled {
		return 0, ""
	}
	for _, key := range sortedKeys(v.After.Statistics[name]) {
		before, known := v.Before.Statistics[name][key]
		if grew := Grown(v.After.Statistics[name][key], before); known && grew > most && match(key) {
			most, counter = grew, key
		}
	}
	return most, counter
}

// receiveErrors uses the card's own counter of damaged frames, or the part of the
// kernel's rx_errors beyond them. Some drivers add frames that found no room to
// rx_errors; RING-1 reports those.
func (v *view) receiveErrors(o *outcome, n *nic) {
	bad, counter := v.worstOf(n.Name, isDamage)
	long, by := v.worstOf(n.Name, badLength.MatchString)
	errors := n.link.RxErrors
	if lost, _ := v.lost(n); lost <= errors {
		errors -= lost
	}
	switch {
	case long > 0 && 2*long >= errors && long > bad:
		v.tooLong(o, n, long, by)
		return
	case errors > bad:
		bad, counter = errors, "rx_errors"
	}
	share := float64(bad) / float64(max(1, bad+n.link.RxPackets))
	if share < seen {
		return
	}
	f := Finding{
		Severity: gradeLoss(bad, share), Subject: n.Name, core: -1, weight: share, kind: "damage", bites: true,
		Says:     fmt.Sprintf("%s of the frames that %s receives are damaged: its cable, its transceiver or the other port", percent(share), n.Name),
		Evidence: []string{grew(counter, n.Name, bad, v.Seconds)},
		Remedies: []Remedy{
			{Command: "ethtool -m " + n.Name, Text: "where it has a transceiver: see the light that it receives; clean the fibre, or change fibre and transceiver"},
			{Command: "ethtool --cable-test " + n.Name, Text: "where it has a socket for copper, and the driver can: the link goes down for a moment; change the cable, then try another port of the switch"},
			{Text: "if no cable and no port makes a difference: newer firmware of the card and of the board (BIOS), which sets up clocks and power, then another card"},
		},
		Expect: "no damaged frames at all",
	}
	v.notTheCable(n, &f, bad, share)
	o.add(f)
}

// garbled is the share of damaged frames from which on no cable explains them: a link that
// damages most of what comes would not come up.
const garbled = 0.5

// notTheCable changes a finding about damaged frames where no cable can be the cause.
func (v *view) notTheCable(n *nic, f *Finding, bad uint64, share float64) {
	switch ports := v.switchedBy(n.Name); {
	case len(ports) > 0:
		f.Says = fmt.Sprintf("%s of the frames that %s receives are damaged on the way from the switch chip inside the box: no cable is there", percent(share), n.Name)
		f.Evidence = append(f.Evidence, "ports of the switch behind it: "+join(ports))
		f.Remedies = []Remedy{
			{Command: "dmesg | grep -iE '" + n.Name + "|phy-mode|base-x|rgmii'", Text: "see in which mode the driver runs this way (phy-mode of the board's device tree): a kernel that sets another mode or delay breaks it; try the kernel before, or a slower mode (1000base-x in place of 2500base-x)"},
		}
	case share >= garbled && bad >= few:
		f.Says = fmt.Sprintf("%s of the frames that %s receives are damaged: the card or its driver is out of step, for no cable damages most frames and holds the link", percent(share), n.Name)
		reset := n.anew("start the card anew")
		if n.Driver != "" {
			reset.Text += fmt.Sprintf(". If that is not enough, load its driver anew: modprobe -r %s; modprobe %s. This ends all ports of that driver, and their VLANs", n.Driver, n.Driver)
		}
		f.Remedies = append([]Remedy{reset}, f.Remedies...)
	}
}

// anew returns the command that starts a card anew. The kernel then removes its routes and its IPv6
// addresses, and does not bring them back.
func (n *nic) anew(text string) Remedy {
	return Remedy{
		Command: fmt.Sprintf("ip link set dev %s down; ip link set dev %s up", n.Name, n.Name),
		Text: fmt.Sprintf("%s. Run it from a console, or by another card: the link goes down, and its routes and IPv6 addresses go with it; "+
			"let the network's service set it up again afterwards (networkctl reconfigure %s, or ifdown %s; ifup %s)", text, n.Name, n.Name, n.Name),
	}
}

// switchedBy returns the ports of the switch chip whose frames come by this device (DSA).
func (v *view) switchedBy(name string) (ports []string) {
	for i := range v.Interfaces {
		if d := &v.Interfaces[i]; d.Kind == "dsa" && d.Parent == name {
			ports = append(ports, d.Name)
		}
	}
	return ports
}

func (v *view) tooLong(o *outcome, n *nic, long uint64, counter string) {
	share := float64(long) / float64(long+n.link.RxPackets)
	if share < seen {
		return
	}
	o.add(Finding{
		Severity: min(gradeLoss(long, share), Warning), Subject: n.Name, core: -1, weight: share,
		Says:     fmt.Sprintf("%s refuses %s of the frames because of their length: a neighbour has another MTU than its own %s", n.Name, percent(share), cmp.Or(bytesOf(n.MTU), "one")),
		Evidence: []string{grew(counter, n.Name, long, v.Seconds)},
		Remedies: []Remedy{{Command: "ip -d link show dev " + n.Name, Text: "see its MTU, and set the same on all hosts and switches of this network (ip link set dev " + n.Name + " mtu …)"}},
		Expect:   "the counter no longer grows",
	})
}

func bytesOf(mtu int) string {
	if mtu == 0 {
		return ""
	}
	return fmt.Sprintf("of %d bytes", mtu)
}

func (v *view) sendErrors(o *outcome, n *nic) {
	bad := n.link.TxErrors
	share := float64(bad) / float64(max(1, bad+n.link.TxPackets))
	if share < seen {
		return
	}
	o.add(Finding{
		Severity: gradeLoss(bad, share), Subject: n.Name, core: -1, weight: share, kind: "send",
		Says:     fmt.Sprintf("%s fails to send %s of its frames", n.Name, percent(share)),
		Evidence: []string{grew("tx_errors", n.Name, bad, v.Seconds)},
		Remedies: []Remedy{{Command: "ip -s -s link show dev " + n.Name, Text: "see which kind: carrier is the cable or the other port, aborted and window are a half-duplex link (LINK-1), fifo is the bus (PCI-1)"}},
		Expect:   "all sent frames leave",
	})
}

// flapped checks how often a link went up and down. One of each is a flap, but explains
// nothing else yet.
func (v *view) flapped(o *outcome, d *Interface) {
	before, known := v.Before.Links[d.Name]
	after, still := v.After.Links[d.Name]
	if !known || !still || d.Kind != "physical" {
		return
	}
	changes := Grown(after.CarrierChanges, before.CarrierChanges)
	if changes == 0 {
		return
	}
	f := Finding{
		Severity: Notice, Subject: d.Name, core: -1, weight: float64(changes), kind: "flap", bites: changes > 2,
		Says:     fmt.Sprintf("the link of %s came up or went down while doctor looked", d.Name),
		Evidence: []string{grew("carrier_changes", d.Name, changes, v.Seconds)},
		Remedies: []Remedy{{Command: "dmesg | grep " + d.Name, Text: "see when and how often; then change the cable or the transceiver, and look at the other port's power saving (EEE-1) and settings"}},
		Expect:   "the link stays up",
	}
	if d.EEE != nil && d.EEE.Enabled && d.EEE.Active {
		f.Remedies = append([]Remedy{{Command: "ethtool --set-eee " + d.Name + " eee off", Text: "the link sleeps between packets (EEE), which some pairs of ports do not survive: try it without (the link goes down for a moment)"}}, f.Remedies...)
		f.Evidence = append(f.Evidence, d.Name+": EEE is on, and active")
	}
	if together := v.flapTogether(d); len(together) > 1 {
		f.Remedies = append([]Remedy{{Command: "cat /proc/net/bonding/" + d.Master, Text: fmt.Sprintf("%s flap together: then it is no cable, but what watches them. Set lacp_rate fast at both ends, and miimon without updelay and downdelay", join(together))}}, f.Remedies...)
	}
	if changes > 1 {
		f.Severity = Warning
		f.Says = fmt.Sprintf("the link of %s flaps: it came up or went down %d times in %s", d.Name, changes, seconds(v.Seconds))
	}
	o.add(f)
}

// flapTogether returns the members of the interface's bond that went up or down.
func (v *view) flapTogether(d *Interface) (names []string) {
	bond := v.device(d.Master)
	if bond == nil || bond.Bond == nil {
		return nil
	}
	for _, name := range bond.Bond.Members {
		if l, known := v.link(name); known && l.CarrierChanges > 1 {
			names = append(names, name)
		}
	}
	return names
}

// grew describes how far a counter of an interface grew.
func grew(counter, name string, by uint64, in float64) string {
	return fmt.Sprintf("%s of %s: %s in %s", counter, name, units.Thousands(int(by)), seconds(in))
}
