package doctor

import (
	"fmt"
	"strings"
)

// repeats checks the errors that a slot's hardware corrected by sending again (AER). A few
// a day are normal; a stream of them is a bad riser, a dirty contact or a slot that sleeps.
func repeats(v *view, n *nic, o *outcome) {
	if !v.sampled || v.After.Bus == nil {
		if !n.hosted(o) {
			o.lacks(v, "bus")
		}
		return
	}
	var sum uint64
	var parts []string
	for _, kind := range sortedKeys(v.After.Bus[n.Name]) {
		before, known := v.Before.Bus[n.Name][kind]
		if grew := Grown(v.After.Bus[n.Name][kind], before); known && grew > 0 {
			sum += grew
			parts = append(parts, fmt.Sprintf("%s %d", kind, grew))
		}
	}
	const often = 1.0 // a second
	if float64(sum)/v.Seconds < often {
		return
	}
	f := Finding{
		Severity: Warning, Subject: n.Name, core: -1, weight: float64(sum), bites: true,
		Says:     fmt.Sprintf("the slot of %s damages transfers, and repeats them: %d times in %s", n.Name, sum, seconds(v.Seconds)),
		Evidence: []string{"corrected errors of the bus (aer_dev_correctable): " + strings.Join(parts, ", ")},
		Remedies: []Remedy{{Command: "dmesg | grep -i aer", Text: "see the port that reports them; seat the card again, leave out risers and adapters, try another slot, or set the slot one generation slower in the BIOS"}},
		Expect:   "no corrected errors; the bus carries its rate",
	}
	f.Remedies = append(f.Remedies, withoutASPM(n, "keep the slot awake: some cards wake badly (ASPM)")...)
	if lost, _ := v.lost(n); lost >= fewLost {
		f.Severity = Critical
	}
	o.add(f)
}
