package doctor

import (
	"fmt"
	"strings"

	"weir/internal/units"
)

// costly is the softirq time for each packet above which something else than moving packets
// takes it, in seconds. A router of 600 MHz with a tunnel and a shaper stays below.
const costly = 200e-6

// muchSoftirq is the share of a core's time in softirqs from which on it is asked what for.
const muchSoftirq = 0.4

// packetSoftirqs are the softirqs that may be of packets: drivers of cards on USB, and of
// wireless ones, receive in tasklets. The others are timers, disks, RCU and the scheduler.
var packetSoftirqs = []string{"NET_RX", "NET_TX", "TASKLET", "HI"}

// otherSoftirqs looks for cores whose softirq time is not that of packets: far too few
// packets came for it, or the kernel counted the time as another softirq's.
func otherSoftirqs(v *view) (o outcome) {
	var loaded []*core
	var spent float64
	for _, c := range v.cores {
		spent += c.softirq * v.Seconds
		if c.softirq >= muchSoftirq && c.busy >= working {
			loaded = append(loaded, c)
		}
	}
	packets := v.packets()
	if len(loaded) == 0 || packets == 0 {
		return o
	}
	each := spent / float64(packets)
	kinds, others := v.softirqKinds(loaded)
	if each < costly && others < half || each >= costly && kinds != "" && others < 0.1 || len(v.tunnels()) > 0 {
		return o // encryption of large packets takes as long on small machines
	}
	f := Finding{
		Severity: Warning, Subject: cpuNames(loaded), core: loaded[0].ID, cores: idsOf(loaded), weight: each, bites: true,
		Says:     fmt.Sprintf("softirqs take %s of %s, and packets do not explain it: %s µs for each", percent(loaded[0].softirq), cpuNames(loaded), units.Thousands(int(each*1e6))),
		Evidence: []string{fmt.Sprintf("softirq time of all cores: %s; packets: %s in %s", seconds(spent), units.Thousands(int(packets)), seconds(v.Seconds))},
		Remedies: []Remedy{
			{Command: "cat /proc/softirqs", Text: "see twice, a second apart, which kinds grow: TIMER, BLOCK, SCHED and RCU are not packets, but timers, disks and accounting of processes"},
			{Command: "perf top -e cycles:k", Text: "see what the kernel does there: a program that hooks into it (accounting, tracing, antivirus), very long lists of rules, or a driver"},
		},
		Expect: "the cores have that time for packets",
	}
	v.showCores(&f, loaded)
	if kinds != "" {
		f.Evidence = append(f.Evidence, kinds)
		f.Says = fmt.Sprintf("%s of the softirq time of %s is not that of packets", percent(others), cpuNames(loaded))
	}
	if loaded[0].busy >= full {
		f.Severity = v.critical()
	}
	o.add(f)
	return o
}

// packets returns what the cards received, or the stack, if that is more.
func (v *view) packets() uint64 {
	var cards, stack uint64
	for _, n := range v.nics {
		cards += n.link.RxPackets
	}
	for _, c := range v.cores {
		stack += c.processed
	}
	return max(cards, stack)
}

// softirqKinds says how long the cores spent in each kind, and which share was not of
// packets; "" if nobody counted.
func (v *view) softirqKinds(cores []*core) (line string, others float64) {
	if v.Watched == nil || v.Watched.Cores == nil {
		return "", 0
	}
	sums := map[string]float64{}
	var all, network float64
	for _, c := range cores {
		for kind, time := range v.Watched.Cores[c.ID].Softirqs {
			sums[kind] += time
			all += time
		}
	}
	for _, kind := range packetSoftirqs {
		network += sums[kind]
	}
	if all == 0 {
		return "", 0
	}
	var parts []string
	for _, kind := range sortedKeys(sums) {
		if sums[kind] >= 0.02*all {
			parts = append(parts, kind+" "+percent(sums[kind]/all))
		}
	}
	return "softirqs by kind: " + strings.Join(parts, ", "), 1 - network/all
}
