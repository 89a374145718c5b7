package doctor

import (
	"cmp"
	"fmt"
	"strings"

	"weir/internal/units"
)

// refusedByTunnels finds tunnels' devices that refuse packets. Nothing is full then: the device
// does not know where to send them, or may not take what comes.
func refusedByTunnels(v *view) (o outcome) {
	o.absent = "no tunnel of the kernel is up"
	for i := range v.Interfaces {
		d := &v.Interfaces[i]
		l, known := v.link(d.Name)
		if encapsulation[d.Kind] == 0 || !d.Up {
			continue
		}
		if o.absent = ""; !known {
			o.lacks(v, "links."+d.Name)
			continue
		}
		v.refusedBy(&o, d, true, max(l.TxErrors, l.TxDropped), l.TxPackets)
		v.refusedBy(&o, d, false, max(l.RxErrors, l.RxDropped), l.RxPackets)
	}
	return o
}

// someRefused is how many packets a tunnel refuses that a far end which is away does not explain alone.
const someRefused = 100

func (v *view) refusedBy(o *outcome, d *Interface, sends bool, lost, passed uint64) {
	share := float64(lost) / float64(max(1, lost+passed))
	if lost < fewLost || share < lossLimits {
		return
	}
	way, counter := "send", "tx"
	if !sends {
		way, counter = "take", "rx"
	}
	f := Finding{
		Severity: Warning, Subject: d.Name, core: -1, weight: share, kind: way, bites: true,
		Says:     fmt.Sprintf("the tunnel %s refuses %s of what it should %s: %s", d.Name, percent(share), way, refusal(d.Kind, sends)),
		Evidence: []string{grew(counter+"_errors or "+counter+"_dropped", d.Name, lost, v.Seconds), "kind " + d.Kind},
		Remedies: refusalRemedies(d, sends),
		Expect:   "the counter no longer grows",
	}
	switch {
	case share >= held && lost >= few:
		f.Severity = Critical
	case lost < someRefused && passed > lost:
		f.Severity, f.bites = Notice, false // it carries the rest: a far end was away for a moment
	}
	o.add(f)
}

// refusal says why a device of a kind refuses packets.
func refusal(kind string, sends bool) string {
	switch {
	case kind == "wireguard" && sends:
		return "no peer may have that address (allowed-ips), or where the peer is, is not known"
	case kind == "wireguard":
		return "its peer sends from an address that it may not have (allowed-ips), or what comes is damaged"
	case (kind == "vxlan" || kind == "geneve") && sends:
		return "behind which far end the address is, is not known"
	case sends:
		return "there is no route to its far end, or the packet is too large for the way"
	}
	return "what comes does not fit its settings (key, checksum, sequence)"
}

func refusalRemedies(d *Interface, sends bool) (all []Remedy) {
	switch {
	case d.Kind == "wireguard":
		all = []Remedy{{Command: "wg show " + d.Name, Text: "see allowed ips, endpoint and latest handshake of each peer: the addresses behind a peer must be among its allowed ips, at both ends"}}
	case (d.Kind == "vxlan" || d.Kind == "geneve") && sends:
		all = []Remedy{{Command: "bridge fdb show dev " + d.Name + "; ip neigh show dev " + d.Name, Text: "see whether the address has an entry: what makes them (a CNI's daemon, EVPN) is late, or has failed; with neither a list nor a default entry (00:00:00:00:00:00) there is no flooding"}}
	default:
		all = []Remedy{{Command: "ip -d -s -s link show dev " + d.Name, Text: "see far end, key and flags, and compare them with the other end's; carrier means no route to the far end, and the route must not lead into the tunnel itself (ip route get)"}}
	}
	return append(all, Remedy{Command: "perf record -aqe skb:kfree_skb sleep 5 && perf script", Text: "if that tells nothing: the kernel says for each packet why it was dropped (Linux 5.17 and later)"})
}

// espDrops lists the kernel's counts of what IPsec drops (/proc/net/xfrm_stat), by what they mean.
var espDrops = []struct {
	kind, says string
	counters   []string
	remedy     Remedy
}{
	{
		"replay", "come too late or twice: they overtook one another by more than the window of the association, as over several queues, cores or links",
		[]string{"Xfrm.InStateSeqError"},
		Remedy{Command: "ip -s xfrm state", Text: "see replay-window and the errors of each association: widen the window (strongSwan: charon.replay_window = 1024, replay_window in the connection; Libreswan: replay-window=1024), or keep one association on one queue"},
	},
	{
		"association", "belong to an association that this box does not have, or no longer: one end was restarted, or renewed its keys and the other did not",
		[]string{"Xfrm.InNoStates", "Xfrm.InStateExpired", "Xfrm.InStateInvalid", "Xfrm.InStateMismatch", "Xfrm.OutNoStates", "Xfrm.OutStateExpired", "Xfrm.OutStateInvalid"},
		Remedy{Command: "ip -s xfrm state", Text: "compare the SPIs with those of the other end; let the ends see that the other is gone (dead peer detection), and begin anew"},
	},
	{
		"policy", "fit no policy: the two ends protect different networks, or something came in the clear that must not",
		[]string{"Xfrm.InNoPols", "Xfrm.InTmplMismatch", "Xfrm.InPolBlock", "Xfrm.OutPolBlock", "Xfrm.FwdHdrError"},
		Remedy{Command: "ip xfrm policy", Text: "compare the networks (selectors) with those of the other end; packets that NAT changes before IPsec no longer fit"},
	},
	{
		"damage", "fail their check: other keys, another algorithm, or a card that encrypts wrongly",
		[]string{"Xfrm.InStateProtoError", "Xfrm.OutStateProtoError", "Xfrm.InHdrError"},
		Remedy{Command: "ip xfrm state", Text: "compare algorithms and lengths at both ends; try without the card's help (ethtool -K … esp-hw-offload off)"},
	},
	{
		"size", "are too large for the association, or find no route behind it",
		[]string{"Xfrm.OutError", "Xfrm.OutBundleGenError", "Xfrm.OutBundleCheckError", "Xfrm.OutPolError", "Xfrm.InBufferError", "Xfrm.InError"},
		Remedy{Command: "ip -s xfrm policy", Text: "see which policy it is; lower the MTU or the MSS of what goes through it"},
	},
}

// espRefused finds packets that IPsec drops. The stack counts the reasons and nobody sees them:
// neither a card nor a queue loses anything.
func espRefused(v *view) (o outcome) {
	counts := false
	for name := range v.After.SNMP {
		counts = counts || strings.HasPrefix(name, "Xfrm.")
	}
	if !counts {
		o.absent = "the kernel has no IPsec"
		return o
	}
	for _, d := range espDrops {
		var sum uint64
		var lines []string
		for _, name := range d.counters {
			if n, _ := v.snmp(name); n > 0 {
				sum += n
				lines = append(lines, fmt.Sprintf("%s: %s in %s", strings.Replace(name, ".", "", 1), units.Thousands(int(n)), seconds(v.Seconds)))
			}
		}
		share := float64(sum) / float64(max(1, sum, cmp.Or(v.counted("Ip.InReceives"), v.received())))
		if sum < fewLost || share < lossHurts {
			continue
		}
		f := Finding{
			Severity: min(gradeLoss(sum, share), Warning), core: -1, weight: share, kind: d.kind, bites: true,
			Says:     fmt.Sprintf("IPsec drops %s that %s", v.rate(sum), d.says),
			Evidence: lines, Remedies: append(v.moreBundles(d.kind), d.remedy), Expect: "the counter no longer grows",
		}
		if share >= held {
			f.Severity = Critical
		}
		o.add(f)
	}
	return o
}

// moreBundles returns the commands that raise the limit of what the kernel caches of IPsec, which is one way to a destination
// through an association, where it is low: beyond twice that it makes none, and drops (xfrm_bundle_create). Old kernels
// have 1,024 there, new ones no limit.
func (v *view) moreBundles(kind string) (remedies []Remedy) {
	const unlimited, low = 1<<31 - 1, 1 << 16
	if bundles, _ := v.snmp("Xfrm.OutBundleGenError"); kind != "size" || bundles < fewLost {
		return nil
	}
	for _, limit := range []string{"net.ipv4.xfrm4_gc_thresh", "net.ipv6.xfrm6_gc_thresh"} {
		if now, known := v.number(limit); known && now < low {
			remedies = append(remedies, Remedy{Command: fmt.Sprintf("sysctl -w %s=%d", limit, unlimited),
				Text: fmt.Sprintf("it is %s, as old kernels have it, and new ones have no limit there: with more destinations the kernel cannot send through IPsec (\"No buffer space available\"); set it in containers' namespaces, too", units.Thousands(now))})
		}
	}
	return remedies
}
