package doctor

import (
	"fmt"

	"weir/internal/units"
)

// allowance is a counter of a card's driver that says that the host did not take a virtual
// machine's traffic.
type allowance struct {
	counter string
	says    string // after the rate of packets and "of" the card
	remedy  Remedy
	queues  bool // it queues packets, and does not drop them
}

// byType is the remedy if the machine's type decides.
func byType(name string) Remedy {
	return Remedy{Command: "ethtool -S " + name + " | grep allowance", Text: "see which of them grow; take a larger machine, or several: no setting in the machine raises its allowance"}
}

// allowancesOf lists what Amazon's hosts count of a machine's traffic that exceeded what its
// size is allowed (ena): they queue it or drop it. Hyper-V's cards count how often the host
// had not emptied what they send.
func allowancesOf(name string) []allowance {
	exceeds := func(of string) string { return "the machine exceeds its allowance of " + of }
	return []allowance{
		{"pps_allowance_exceeded", exceeds("packets per second"), byType(name), false},
		{"bw_in_allowance_exceeded", exceeds("received bits per second"), byType(name), false},
		{"bw_out_allowance_exceeded", exceeds("sent bits per second"), byType(name), false},
		{"conntrack_allowance_exceeded", exceeds("tracked connections"), Remedy{
			Command: "ethtool -S " + name + " | grep conntrack_allowance",
			Text:    "see how many are left; let its security groups accept all from everywhere, in and out, so that the host tracks nothing, and filter in the machine; or take a larger machine",
		}, false},
		{"linklocal_allowance_exceeded", exceeds("packets to the cloud's own services (DNS, metadata, time)"), Remedy{
			Command: "ethtool -S " + name + " | grep linklocal_allowance",
			Text:    "see whether it grows; answer names from a cache in the machine (unbound, systemd-resolved), for 1024 packets a second are allowed to each card, whatever the machine's size",
		}, false},
		{"tx_send_full", "it takes packets from the card's send ring too slowly", Remedy{
			Command: "ethtool -S " + name + " | grep -e tx_send_full -e vf_",
			Text:    "see whether a VF carries packets: with accelerated networking (SR-IOV) packets bypass the host's switch. Without it, a newer kernel's hv_netvsc and a larger ring (ethtool -G, tx) help",
		}, true},
	}
}

func allowed(v *view) (o outcome) {
	counts := false
	for _, n := range v.nics {
		for _, a := range allowancesOf(n.Name) {
			exceeded, known := v.statistic(n.Name, func(key string) bool { return key == a.counter })
			counts = counts || known
			share := float64(exceeded) / float64(max(1, exceeded+n.link.RxPackets+n.link.TxPackets))
			if exceeded < fewLost || share < seen {
				continue
			}
			f := Finding{
				Severity: gradeLoss(exceeded, share), Subject: n.Name, core: -1, weight: share,
				Says:     fmt.Sprintf("the cloud's host holds back, or drops, %s of %s: %s", v.rate(exceeded), n.Name, a.says),
				Evidence: []string{grew(a.counter, n.Name, exceeded, v.Seconds)},
				Remedies: []Remedy{a.remedy},
				Expect:   "the counter no longer grows",
			}
			if a.queues {
				f.Severity = min(f.Severity, Warning)
				f.Says = fmt.Sprintf("the host stops %s %s times a second: %s", n.Name, units.Short(float64(exceeded)/v.Seconds), a.says)
			}
			o.add(f)
		}
	}
	if !counts {
		o.absent = "no card counts what its host holds back"
	}
	return o
}
