package doctor

import (
	"fmt"

	"weir/internal/host/cpulist"
	"weir/internal/units"
)

// handedOver is the share of all packets from which on handing them to other cores costs a good part of
// the cores' time.
const handedOver = 0.25

// needless finds RPS on a card that has a queue for each core, evenly loaded: each packet then
// costs an interrupt between cores, and goes from one core with as much to do to another.
func (v *view) needless(o *outcome, n *nic) {
	q := n.largest()
	if q == nil || !v.sampled || len(v.cores) < 2 || len(n.queues) < len(v.cores) || n.isUneven(q) || v.carriesPPP(n.Name) || v.part(n) < 0.5 {
		return
	}
	for _, q := range n.queues {
		if cpus, err := cpulist.Parse(v.rps(n, q.n)); err != nil || len(cpus) < 2 {
			return // the bundle was checked when it was read
		}
	}
	var all, handed uint64
	for id, after := range v.After.Softnet {
		before := v.Before.Softnet[id]
		all, handed = all+Grown(after.Processed, before.Processed), handed+Grown(after.RPS, before.RPS)
	}
	share := float64(handed) / float64(max(1, all))
	if share < handedOver {
		return
	}
	f := Finding{
		Severity: Notice, Subject: n.Name, core: -1, cores: idsOf(v.cores), weight: share, kind: "needless",
		Says:     fmt.Sprintf("%s has a queue for each core, evenly loaded, and RPS hands %s of what the cores process over to others all the same", n.Name, percent(share)),
		Evidence: []string{v.queueLine(n), fmt.Sprintf("received_rps grew by %s, processed by %s", units.Thousands(int(handed)), units.Thousands(int(all)))},
		Remedies: []Remedy{{Command: fmt.Sprintf("for f in /sys/class/net/%s/queues/rx-*/rps_cpus; do echo 0 > $f; done", n.Name), Text: "the queues spread the packets already; look for what sets the masks again (a tuner, a udev rule)"}},
		Expect:   "less softirq time for each packet",
	}
	if v.meanBusy() >= working {
		f.Severity, f.bites = Warning, true
	}
	o.add(f)
}
