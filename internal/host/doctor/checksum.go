package doctor

import (
	"fmt"
	"strings"

	"weir/internal/units"
)

// checksums looks at packets for this box whose checksum was wrong. What a cable damages, the
// card throws away (ERR-1). What arrives whole with a wrong checksum left its sender so, or
// something on the way changed it: most often a card, a tunnel's device or a driver that was
// left to fill in the checksum, and did not.
func checksums(v *view) (o outcome) {
	worst := Finding{}
	for _, c := range []struct{ bad, good, what string }{
		{"Udp.InCsumErrors", "Udp.InDatagrams", "datagrams of UDP"}, {"Tcp.InCsumErrors", "Tcp.InSegs", "segments of TCP"},
	} {
		bad, good := v.counted(c.bad), v.counted(c.good)
		share := float64(bad) / float64(max(1, bad+good))
		if bad < fewLost || share < lossHurts || share <= worst.weight {
			continue
		}
		worst = Finding{
			Severity: min(gradeLoss(bad, share), Warning), core: -1, weight: share,
			Says:     fmt.Sprintf("%s of the %s for this box come with a wrong checksum, and are dropped", percent(share), c.what),
			Evidence: []string{fmt.Sprintf("%s: %s in %s", c.bad, units.Thousands(int(bad)), seconds(v.Seconds))},
			Expect:   "the counter no longer grows",
		}
		if share >= held {
			worst.Severity = Critical
		}
	}
	if worst.weight == 0 {
		return o
	}
	worst.Remedies = v.fillInChecksums()
	o.add(worst)
	return o
}

// overUDP lists kinds of tunnels whose outer packets are UDP: their checksum is left to the
// card below.
var overUDP = map[string]bool{"vxlan": true, "geneve": true, "bareudp": true, "fou": true, "gue": true}

// fillInChecksums returns what lets the stack, not a card, fill in checksums. It is the
// sender that does so.
func (v *view) fillInChecksums() (remedies []Remedy) {
	for i := range v.Interfaces {
		if d := &v.Interfaces[i]; d.Up && overUDP[d.Kind] {
			remedies = append(remedies, Remedy{Command: "ethtool -K " + d.Name + " tx-checksum-ip-generic off",
				Text: fmt.Sprintf("at the far ends of %s, and here: the stack then fills in the checksums of what the tunnel carries, which some kernels and cards do wrongly behind NAT. It is undone at once (on)", d.Name)})
		}
	}
	remedies = append(remedies, Remedy{Command: "dmesg | grep -i 'bad checksum'", Text: "see who sends them, and to which port (UDP only); there, try without its card's help (ethtool -K … tx off)"})
	var cards []string
	for _, n := range v.nics {
		if on, known := n.feature("rx-checksum"); !n.virtual && (!known || on) && n.link.RxPackets > 0 {
			cards = append(cards, "ethtool -K "+n.Name+" rx off")
		}
	}
	if len(cards) > 0 {
		remedies = append(remedies, Remedy{Command: strings.Join(cards, " && "), Text: "if they come from everybody: let the stack check, in case this box's card judges wrongly"})
	}
	return remedies
}
