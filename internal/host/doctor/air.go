package doctor

import (
	"fmt"

	"weir/internal/units"
)

// What the kernel's Wi-Fi counts of a card (net/mac80211/ethtool.c): times in milliseconds, and the
// signal of the access point as a byte, which is a negative number of dBm.
const (
	airRetries = "tx_retries"
	airFailed  = "tx_retry_failed"
	airTime    = "ch_time"
	airBusy    = "ch_time_busy"
	airOwnIn   = "ch_time_rx"
	airOwnOut  = "ch_time_tx"
	airSignal  = "signal"
)

// Shares from which on the air limits a Wi-Fi card. Some retries are how it finds the best rate.
const (
	airFull    = 0.85 // of the time that the channel is busy
	airOwn     = 0.7  // of that time, for this card's own frames
	airAgain   = 0.5  // retries for each frame
	airLost    = 0.01 // frames that no retry got through
	airAway    = 0.05 // of an access point's: stations sleep, and walk away
	weakSignal = -75  // dBm; below it the slowest rates remain
)

// air looks at cards of Wi-Fi: what the card counts of its channel, and of what it had to send
// again.
func air(v *view, n *nic, o *outcome) {
	failed, wireless := v.own(n, airFailed)
	if !wireless {
		return
	}
	retries, _ := v.own(n, airRetries)
	sent := max(1, n.link.TxPackets)
	again, lost := float64(retries)/float64(sent), float64(failed)/float64(sent)
	v.channel(n, o)
	signal := int(int8(v.After.Statistics[n.Name][airSignal])) // the driver writes it as a byte
	weak := signal < weakSignal && n.link.TxPackets > 0
	if n.link.TxPackets < few || !(lost >= airLost && failed >= fewLost) && !(weak && again >= airAgain) {
		return
	}
	f := Finding{
		Severity: Warning, Subject: n.Name, core: -1, weight: lost, kind: "lost", bites: true,
		Says:     fmt.Sprintf("%s sends each frame %s times on average, and %s never arrive: the air loses them", n.Name, units.Digits(1+again, 2), percent(lost)),
		Evidence: []string{grew(airRetries, n.Name, retries, v.Seconds), grew(airFailed, n.Name, failed, v.Seconds)},
		Remedies: []Remedy{
			{Command: "iw dev " + n.Name + " station dump", Text: "see signal, tx bitrate, tx retries and tx failed of each station: those far away take the air from all others. An access point nearer to them, another channel, or a lower transmit rate for them helps"},
			{Command: "iw dev " + n.Name + " scan | grep -E 'BSS|freq|signal'", Text: "see who else is on the channel (a scan interrupts the traffic for seconds)"},
		},
		Expect: "fewer retries, and with them more of the air for frames that arrive",
	}
	if signal == 0 && lost < airAway { // an access point's card has no signal of its own
		f.Severity, f.bites = Notice, false
	}
	if weak {
		f.Evidence = append(f.Evidence, fmt.Sprintf("the signal is %d dBm", signal))
		f.Says += fmt.Sprintf(" (its signal is %d dBm)", signal)
	}
	o.add(f)
}

// channel finds a channel that has no time left.
func (v *view) channel(n *nic, o *outcome) {
	all, known := v.own(n, airTime)
	taken, _ := v.own(n, airBusy)
	const valid = 0.3 // of the time, below which the driver did not survey its channel
	if !known || float64(all) < valid*v.Seconds*1000 || float64(taken) < airFull*float64(all) || n.link.RxPackets+n.link.TxPackets < few {
		return
	}
	in, _ := v.own(n, airOwnIn)
	out, _ := v.own(n, airOwnOut)
	own := float64(in+out) / float64(taken)
	f := Finding{
		Severity: Warning, Subject: n.Name, core: -1, weight: float64(taken) / float64(all), kind: "busy", bites: true,
		Says:     fmt.Sprintf("the channel of %s is busy for %s of the time, for %s of that with others' frames", n.Name, percent(float64(taken)/float64(all)), percent(max(0, 1-own))),
		Evidence: []string{fmt.Sprintf("%s of %s: %d of %d ms; %s %d, %s %d ms", airBusy, n.Name, taken, all, airOwnIn, in, airOwnOut, out)},
		Remedies: []Remedy{{Command: "iw dev " + n.Name + " survey dump", Text: "compare the channels that it has seen, and take one with less time busy; 5 and 6 GHz have more of them"}},
		Expect:   "frames are sent when they come",
	}
	if own >= airOwn {
		f.Says = fmt.Sprintf("the channel of %s is busy for %s of the time, mostly with its own frames: the air is the limit", n.Name, percent(float64(taken)/float64(all)))
		f.Remedies = []Remedy{{Command: "iw dev " + n.Name + " station dump", Text: "see who has low bitrates: they take most of the air; a wider channel (80 or 160 MHz), or a second access point on another one, has room"}}
	}
	o.add(f)
}

// own returns how far one of a card's own counters grew.
func (v *view) own(n *nic, name string) (grew uint64, known bool) {
	return v.statistic(n.Name, func(key string) bool { return key == name })
}
