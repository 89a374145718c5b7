package doctor

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/pattern"
	"weir/internal/units"
)

// direction is that of pause frames, seen from this box.
type direction uint8

const (
	noPause  direction = iota // the statistic does not count them
	pauseIn                   // received: the other end stops this one
	pauseOut                  // sent
)

// Words of drivers' names for statistics of pause frames. Each driver has names of its own
// (rx_flow_control_xoff, rx_pause_ctrl_phy, [mac] rx valid pause frames, p06_RxPause,
// IEEE_rx_fdxfc), but they are made of the same words.
var (
	nameWord  = pattern.New(`[A-Z]?[a-z]+|[A-Z]+|\d+`)
	pauseWord = pattern.New(`^(?:pause[ds]?|pausepkts|pauseframes|l?xoff|fdxfc|fc|pfc)$`)
	// What the same names also tell: for how long, the end of a pause, bytes.
	otherWord = pattern.New(`^(?:l?xon|on|duration|usecs?|transitions?|bytes?|octets?|constant|storm|err\w*|bad|fec)$`)
	inWord    = pattern.New(`^(?:rx|in|rcvd?|recv|received?|honou?red)$`)
	outWord   = pattern.New(`^(?:tx|out|sent|send|xmit|transmit(?:ted)?)$`)
)

// pauseDirection says which pause frames a driver's statistic counts.
func pauseDirection(name string) direction {
	words := nameWord.FindAllString(name, -1)
	for i := range words {
		words[i] = strings.ToLower(words[i])
	}
	flow := slices.Index(words, "flow")
	pause := slices.ContainsFunc(words, pauseWord.MatchString) || flow >= 0 && flow+1 < len(words) && words[flow+1] == "control"
	switch {
	case !pause || slices.ContainsFunc(words, otherWord.MatchString):
		return noPause
	case slices.ContainsFunc(words, inWord.MatchString):
		return pauseIn // "Tx Pause Frames Honored" are received, too
	case slices.ContainsFunc(words, outWord.MatchString):
		return pauseOut
	}
	return noPause
}

// pauseFrames returns the pause frames of a direction. Several statistics may count the same
// frames, so it takes the largest; those that differ by a number (ports, priorities) are
// added up.
func (v *view) pauseFrames(name string, way direction) (most uint64, known bool) {
	if !v.sampled {
		return 0, false
	}
	sums := map[string]uint64{}
	for key, now := range v.After.Statistics[name] {
		if then, both := v.Before.Statistics[name][key]; both && pauseDirection(key) == way {
			sums[queueNumber.ReplaceAllString(key, "*")] += Grown(now, then)
			known = true
		}
	}
	for _, sum := range sums {
		most = max(most, sum)
	}
	return most, known
}

// pauses counts how often this end, or the other, stopped the link.
func pauses(v *view, n *nic, o *outcome) {
	in, knowsIn := v.pauseFrames(n.Name, pauseIn)
	out, knowsOut := v.pauseFrames(n.Name, pauseOut)
	if !knowsIn && !knowsOut {
		if !n.hosted(o) {
			o.lacks(v, "statistics."+n.Name+" (pause frames)")
		}
		return
	}
	// A pause frame stops a link for at most 65,535 × 512 bit times. A few
	// frames a minute are normal for a switch.
	const often = 10.0 // per second
	if float64(in)/v.Seconds >= often {
		o.add(Finding{
			Severity: Warning, Subject: n.Name, core: -1, weight: float64(in), kind: "in", bites: true,
			Says:     fmt.Sprintf("the other end of %s stops the link %s times a second by pause frames: it, not this box, is the limit there", n.Name, units.Short(float64(in)/v.Seconds)),
			Evidence: []string{fmt.Sprintf("pause frames received on %s: %s in %s", n.Name, units.Thousands(int(in)), seconds(v.Seconds))},
			Remedies: []Remedy{{Command: n.pauseOff("rx"), Text: "ignore them; the switch then drops for the one slow port instead of stopping all"}},
			Expect:   "one slow port behind the switch no longer holds up the others",
		})
	}
	if float64(out)/v.Seconds >= often {
		o.add(Finding{
			Severity: Warning, Subject: n.Name, core: -1, weight: float64(out), kind: "out",
			Says:     fmt.Sprintf("%s stops its other end %s times a second by pause frames: packets come faster than they are taken, and the loss is moved to the switch", n.Name, units.Short(float64(out)/v.Seconds)),
			Evidence: []string{fmt.Sprintf("pause frames sent by %s: %s in %s", n.Name, units.Thousands(int(out)), seconds(v.Seconds))},
			Remedies: append(v.largerRing(n), Remedy{Command: n.pauseOff("tx"), Text: "drop here, where it is counted"}),
			Expect:   "the loss shows as RING-1, with its cause; the switch's other ports are no longer held up",
		})
	}
}

// largerRing returns the command for a card that stops its other end although the core
// behind its ring has room: bursts are longer than the ring.
func (v *view) largerRing(n *nic) []Remedy {
	c := v.load(n)
	if n.Rings == nil || n.Rings.Rx == 0 || n.Rings.Rx >= n.Rings.MaxRx || c != nil && c.busy >= full || c == nil && len(v.fullCores()) > 0 {
		return nil
	}
	return []Remedy{{Command: fmt.Sprintf("ethtool -G %s rx %d", n.Name, n.Rings.MaxRx), Text: "cores have room: let the ring hold the bursts; the link may go down for a moment"}}
}

// pauseOff returns the command for one direction. The negotiated setting overrides it
// unless pause negotiation is off.
func (n *nic) pauseOff(direction string) string {
	command := "ethtool -A " + n.Name
	if n.Pause != nil && n.Pause.Autoneg {
		command += " autoneg off"
	}
	return command + " " + direction + " off"
}
