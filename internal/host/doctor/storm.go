package doctor

import (
	"fmt"

	"weir/internal/pattern"
)

// Drivers' counts of frames for everybody, and for groups.
var (
	broadcastIn  = pattern.New(`(?i)^(?:port\.)?rx[-_](?:broadcast|bcast|bc)(?:[-_](?:packets|frames|pkts|phy|ok))*(?:\.nic)?$|^(?:rx_)?broadcast$|^\[hw\] rx bcast frames$`)
	broadcastOut = pattern.New(`(?i)^(?:port\.)?tx[-_](?:broadcast|bcast|bc)(?:[-_](?:packets|frames|pkts|phy|ok))*(?:\.nic)?$`)
	groupIn      = pattern.New(`(?i)^(?:port\.)?rx[-_](?:multicast|mcast|mc)(?:[-_](?:packets|frames|pkts|phy|ok))*(?:\.nic)?$|^multicast$`)
	groupOut     = pattern.New(`(?i)^(?:port\.)?tx[-_](?:multicast|mcast|mc)(?:[-_](?:packets|frames|pkts|phy|ok))*(?:\.nic)?$`)
)

// stormRate is the rate of broadcasts below which they fill nothing, in frames a second.
const stormRate = 1000

// storms finds networks in which most frames are for everybody. A port of a bridge that
// sends such frames on as well is part of a loop, or feeds it.
func storms(v *view, n *nic, o *outcome) {
	if !n.counted {
		o.lacks(v, "links."+n.Name)
		return
	}
	all, _ := v.worstOf(n.Name, broadcastIn.MatchString)
	groups, _ := v.worstOf(n.Name, groupIn.MatchString)
	out, _ := v.worstOf(n.Name, broadcastOut.MatchString)
	groupsOut, _ := v.worstOf(n.Name, groupOut.MatchString)
	looped := n.Master != "" && 2*(out+groupsOut) >= n.link.TxPackets && n.link.TxPackets >= few
	if looped {
		all += groups // a flood of multicast alone may be television
	}
	share := float64(min(all, n.link.RxPackets)) / float64(max(1, n.link.RxPackets))
	if share < half || float64(all)/v.Seconds < stormRate {
		return
	}
	f := Finding{
		Severity: Warning, Subject: n.Name, core: -1, cores: idsOf(v.cores), weight: share, bites: true,
		Says:     fmt.Sprintf("%s of the frames that %s receives are for everybody (%s): a loop between switches, or a host that floods", percent(share), n.Name, v.rate(all)),
		Evidence: []string{grew("broadcasts received", n.Name, all, v.Seconds)},
		Remedies: []Remedy{
			{Command: "tcpdump -ni " + n.Name + " -c 50 'ether broadcast or ether multicast'", Text: "see who sends: the same frame again and again is a loop; unplug one link of the ring, and switch spanning tree on (ip link set … type bridge stp_state 1, or at the switches). One sender is a faulty host"},
		},
		Expect: "the network carries what is for somebody; each host's cores have room again",
	}
	if looped {
		f.Says = fmt.Sprintf("%s of the frames that %s receives are for everybody (%s), and %s sends as many on: the network has a loop", percent(share), n.Name, v.rate(all), n.Master)
	}
	if len(v.fullCores()) > 0 {
		f.Severity = Critical
	}
	o.add(f)
}
