package doctor

import (
	"cmp"
	"fmt"

	"weir/internal/units"
)

// slowLink looks for a link below its port's speed. A port on a slower switch is none, unless
// the link is as slow as a broken cable makes it, or one of the two ends could do more.
func slowLink(v *view, n *nic, o *outcome) {
	f := Finding{Severity: Warning, Subject: n.Name, core: -1,
		Evidence: []string{fmt.Sprintf("%s: %s Mbit/s, %s duplex, the port's fastest is %s Mbit/s", n.Name, units.Thousands(n.Mbit), cmp.Or(n.Duplex, "none"), units.Thousands(n.MaxMbit))},
		Expect:   "the link's full rate",
	}
	if n.Offers != nil && n.Offers.Mbit > 0 && n.Offers.Partner > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s offers up to %s Mbit/s, the other end up to %s", n.Name, units.Thousands(n.Offers.Mbit), units.Thousands(n.Offers.Partner)))
	}
	switch {
	case n.Mbit <= 0: // -1 if the driver does not report a speed
		if !n.hosted(o) {
			o.lacks(v, "interfaces."+n.Name+".mbit")
		}
		return
	case n.Duplex == "half":
		f.kind, f.bites = "half", true
		f.Says = fmt.Sprintf("%s runs half duplex: the two ends take turns, and collide", n.Name)
		f.Remedies = []Remedy{n.setLink("autoneg on", "negotiate at both ends: if one end is fixed and the other negotiates, the link runs half duplex")}
	case v.mismatched(n):
		f.kind, f.bites = "mismatch", true
		f.Says = fmt.Sprintf("%s does not negotiate (its speed and full duplex are set) and receives damaged frames: an end that negotiates runs half duplex then, and collides", n.Name)
		f.Remedies = []Remedy{n.setLink("autoneg on", "negotiate at both ends (to limit the speed, say so with autoneg on), or set both; remove what sets it here (NetworkManager, netplan, ifupdown)")}
	case n.MaxMbit > n.Mbit:
		why, remedy := n.slower()
		if remedy == nil {
			return
		}
		f.kind, f.bites = "speed", true
		f.Says = fmt.Sprintf("%s runs at %s Mbit/s, and its port does %s%s", n.Name, units.Thousands(n.Mbit), units.Thousands(n.MaxMbit), why)
		f.Remedies = []Remedy{*remedy}
		if used, _, known := n.wire(v.Seconds); known && used < half {
			f.Severity, f.bites = Notice, false // probably a modem or a management port
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s is %s used", n.Name, percent(used)))
		}
	default:
		return
	}
	o.add(f)
}

// mismatched reports whether a link of at most 100 Mbit/s, which may run half duplex, is set to
// full duplex without negotiation, and frames arrive damaged. The other end cannot know of it.
func (v *view) mismatched(n *nic) bool {
	if !n.counted || n.Offers == nil || n.Offers.Autoneg || n.Mbit > 100 || n.Duplex != "full" {
		return false
	}
	bad, _ := v.worstOf(n.Name, isDamage)
	bad = max(bad, n.link.RxErrors)
	return gradeLoss(bad, float64(bad)/float64(max(1, bad+n.link.RxPackets))) >= Warning
}

// slower says why a link is slower than its port, as far as the ends' offers tell, and what
// to do. nil: nothing is wrong.
func (n *nic) slower() (why string, r *Remedy) {
	slow := n.Mbit <= 100
	offers := n.Offers
	if offers == nil {
		offers = &Offers{Autoneg: true}
	}
	ours, partner := offers.Mbit, offers.Partner
	switch {
	case !offers.Autoneg && slow:
		on := n.setLink("autoneg on", "negotiate, and remove what sets the speed (NetworkManager, netplan, ifupdown); if the link then stays down, set the other end to negotiate, too")
		return ": it does not negotiate, its speed is set", &on
	case !offers.Autoneg:
		return "", nil
	case ours > 0 && ours < n.MaxMbit && (n.couldOffer(offers) || slow && partner == 0 && ours == n.Mbit):
		also := ""
		if partner > ours {
			also = fmt.Sprintf(", the other end up to %s", units.Thousands(partner))
		}
		all := n.setLink("autoneg on advertise "+advertise(n.MaxMbit), "offer all that the port does (the link goes down for a moment); then find what limits it: a driver's default, NetworkManager, or a power saving setting")
		return fmt.Sprintf(": it offers no more than %s%s", units.Thousands(ours), also), &all
	case offers.both() > n.Mbit:
		return ", as both ends offer: the cable or a plug is bad", n.cableTest("find the broken pair (the link goes down for a moment), and change the cable. A link that was fast at first and falls back after a while may be a card that is too hot: see whether a fan helps")
	case slow && partner > 0 && partner == n.Mbit:
		return ": the other end offers no more", &Remedy{Text: "look at the other port: its speed, or a limit that is set there; a port that can do no more is full at this speed"}
	case slow && offers.Common > 0 && offers.Common == n.Mbit:
		return ": the other end offers no faster speed that this port has", &Remedy{Text: "look at the other port: a limit that is set there; a port that lacks the speeds between is right at this one"}
	case slow:
		return "", n.cableTest("find the broken pair (the link goes down for a moment), and change the cable; with two of its four pairs gigabit Ethernet falls back to 100 Mbit/s. Then look at the other port's settings")
	}
	return "", nil
}

// couldOffer reports whether the link would be faster if the card offered all that its port
// has. Without the list of speeds that both have, only a partner that is as fast as the port
// tells: a faster one may lack the speeds between.
func (n *nic) couldOffer(o *Offers) bool {
	return o.Reach > max(o.Mbit, n.Mbit) || o.Reach == 0 && o.Partner == n.MaxMbit && o.Partner > o.Mbit
}

// setLink returns the command that sets how a link negotiates. It may take the link down for
// good, and with it the session that it was typed in: so the command first arranges for what
// was before to come back.
func (n *nic) setLink(settings, text string) Remedy {
	return Remedy{
		Command: fmt.Sprintf("nohup sh -c 'sleep 60; ethtool -s %s %s' >/dev/null 2>&1 & ethtool -s %s %s", n.Name, n.linkNow(), n.Name, settings),
		Text:    text + ". After a minute the first half brings back what was before, also if the session is lost with the link; kill $! keeps the new setting",
	}
}

// linkNow returns the settings that bring the link's present state back. What a card offers
// is not always known: then it is set to what it runs at.
func (n *nic) linkNow() string {
	if n.Offers != nil && n.Offers.Autoneg && n.Offers.Mbit > 0 {
		return "autoneg on advertise " + advertise(n.Offers.Mbit)
	}
	return fmt.Sprintf("autoneg off speed %d duplex %s", n.Mbit, cmp.Or(n.Duplex, "full"))
}

// slowerThan returns the next lower speed of a link of copper that still carries much; 0: none.
func slowerThan(mbit int) int {
	return map[int]int{2500: 1000, 5000: 2500}[mbit]
}

// both returns the fastest speed that both ends offer; 0: unknown. The slower of their fastest need
// not be one: many a port of 10,000 Mbit/s has none between that and 1,000.
func (o *Offers) both() int {
	if o.Common == 0 && o.Mbit == o.Partner {
		return o.Mbit
	}
	return o.Common
}

func (n *nic) cableTest(text string) *Remedy {
	return &Remedy{Command: "ethtool --cable-test " + n.Name, Text: "where the driver can: " + text}
}

// advertise returns the mask of ethtool for all speeds of copper up to one.
func advertise(mbit int) string {
	mask := uint64(0x0f) // 10 and 100 Mbit/s, half and full duplex
	for _, m := range []struct{ mbit, bit int }{{1000, 5}, {2500, 47}, {5000, 48}, {10000, 12}} {
		if m.mbit <= mbit {
			mask |= 1 << m.bit
		}
	}
	return fmt.Sprintf("%#x", mask)
}

// half is the use of a slow link above which its low speed matters.
const half = 0.5
