package doctor

import (
	"fmt"
	"slices"

	"weir/internal/units"
)

// Signs of a shaper that its own bucket holds below its rate: packets wait before and after, it holds
// back at least every second one, and sends clearly less than it may.
const (
	oftenHeld   = 0.5
	leastOfRate = 0.3 // below, what it sends came in bursts with pauses between them
)

// shortBurst finds shapers that do not reach their rate although packets wait and the cores have room:
// what they may send at once (burst) is used up before the kernel comes back to them.
func (v *view) shortBurst(o *outcome, d *Interface, q *qdisc) {
	waits := q.Backlog > 0 && v.waitedBefore(q)
	if !limiters[q.Kind] || q.rate == 0 || !waits || q.Packets < few || q.heldBack() < oftenHeld || len(v.fullCores()) > 0 {
		return
	}
	share := q.bits / float64(q.rate)
	if share >= atRate || share < leastOfRate || q.hasFullClass(v.Seconds) || v.atLink() {
		return
	}
	// What the rate sends in 1 ms, and two packets with their headers: TBF drops each that is longer than its burst.
	burst := max(int(q.rate/8/1000), 2*(max(d.MTU, 1500)+18))
	f := Finding{
		Severity: Warning, Subject: d.Name, core: -1, weight: 1 - share, kind: "burst", bites: true,
		Says: fmt.Sprintf("%s in front of %s sends %s of the %s that it may, while packets wait and the cores have room: its burst is too small for the rate",
			q.Kind, d.Name, bitRate(q.bits), bitRate(float64(q.rate))),
		Evidence: []string{q.counts(v.Seconds)},
		Remedies: []Remedy{
			{Command: "tc -d class show dev " + d.Name, Text: fmt.Sprintf("see burst and cburst of the classes that send: give each at least what its rate sends in a millisecond, and two packets (here %s bytes: tc class change … burst %d cburst %d)", units.Thousands(burst), burst, burst)},
			{Text: "or cake, or queues of weir's rules, which need no such figure"},
		},
		Expect: "the shaper reaches its rate; a burst of a millisecond, or of two packets, adds hardly any delay",
	}
	if q.Kind == "tbf" {
		f.Remedies[0] = Remedy{Command: "tc -d qdisc show dev " + d.Name, Text: fmt.Sprintf("see its burst, and set at least what the rate sends in a millisecond, and two packets (burst %d)", burst)}
	}
	o.add(f)
}

// hasFullClass reports whether a class sends what it may: what waits for it waits as it was told.
func (q *qdisc) hasFullClass(seconds float64) bool {
	return slices.ContainsFunc(q.Classes, func(c Class) bool {
		return c.CeilingBits > 0 && float64(c.Bytes)*8/seconds >= atRate*float64(c.CeilingBits)
	})
}

// waitedBefore reports whether packets waited in a discipline at the first sample, too.
func (v *view) waitedBefore(q *qdisc) bool {
	for i := range v.Before.Qdiscs {
		if b := &v.Before.Qdiscs[i]; b.Interface == q.Interface && b.Handle == q.Handle && b.Kind == q.Kind {
			return b.Backlog > 0
		}
	}
	return false
}
