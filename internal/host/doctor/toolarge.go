package doctor

import (
	"fmt"

	"weir/internal/units"
)

// refusedByModules finds packets of IPv6 that something of this box refuses as too large, and not its forwarding: that
// counts what it refuses (FragFails, InTooBigErrors). It is a module that takes packets out of the stack: a translator
// (NAT64), or a tunnel. What GRO has merged is larger than the MTU and no fault of its sender's: forwarding cuts it again,
// a module that compares its length does not.
func (v *view) refusedByModules(o *outcome) {
	told, _ := v.snmp("Icmp6.OutPktTooBigs")
	failed, _ := v.snmp("Ip6.FragFails")
	refused, _ := v.snmp("Ip6.InTooBigErrors")
	byWeir, _ := v.weirReason("up-mtu")
	told -= min(told, max(failed, refused)+byWeir)
	received, _ := v.snmp("Ip6.InReceives")
	share := float64(told) / float64(max(1, told, received))
	if told < fewLost || share < held {
		return
	}
	f := Finding{
		Severity: Warning, core: -1, weight: share, kind: "module",
		Says:     fmt.Sprintf("%s of what comes by IPv6 is refused as too large, and not by forwarding: a translator or a tunnel of this box does so", percent(share)),
		Evidence: []string{fmt.Sprintf("Icmp6OutPktTooBigs beyond Ip6FragFails and Ip6InTooBigErrors: %s in %s", units.Thousands(int(told)), seconds(v.Seconds))},
		Expect:   "what the sender cut to the MTU passes",
	}
	for i := range v.Interfaces {
		if d := &v.Interfaces[i]; d.Up && d.MTU > 0 && d.MTU < 1500 && d.Kind != "loopback" {
			f.Evidence = append(f.Evidence, fmt.Sprintf("MTU of %s: %d bytes", d.Name, d.MTU))
			f.Remedies = append(f.Remedies, v.clamp(d)...)
		}
	}
	for _, n := range v.nics {
		if on, known := n.feature("rx-gro"); !n.virtual && (on || !known) && n.link.RxPackets > 0 {
			f.Remedies = append(f.Remedies, Remedy{Command: "ethtool -K " + n.Name + " gro off", Text: "if it is a translator (Jool, TAYGA): what " + n.Name + " merges looks too large to it. It is undone at once (on)"})
		}
	}
	o.add(f)
}
