package doctor

import "fmt"

// fieldBus lists the kinds of interfaces whose senders do not slow down when frames are dropped.
var fieldBus = map[string]bool{"can": true, "vcan": true, "vxcan": true}

// busDrops checks the queue in front of a field bus. A frame that is dropped there is lost: nobody sends it
// again, and no sender takes it for a hint.
func (v *view) busDrops(d *Interface, o *outcome) {
	for _, q := range v.qdiscsOf(d.Name) {
		share := float64(q.Drops) / float64(max(1, q.Drops+q.Packets))
		if q.Parent != "root" || q.Drops < fewLost {
			continue
		}
		f := Finding{
			Severity: min(gradeLoss(q.Drops, share), Warning), Subject: d.Name, core: -1, weight: share, bites: true,
			Says:     fmt.Sprintf("the queue in front of %s drops %s of its frames, and on a bus nobody sends them again", d.Name, percent(share)),
			Evidence: []string{q.line(v.Seconds)},
			Remedies: []Remedy{{Command: fmt.Sprintf("ip link set dev %s txqueuelen 1000", d.Name), Text: "let the queue hold longer bursts (the default is 10 frames); a bus that is full all the time needs a higher bitrate"}},
			Expect:   "frames wait instead of being lost, in their order",
		}
		if managers[q.Kind] {
			f.Says += "; " + q.Kind + " drops so that senders slow down"
			f.Remedies = append([]Remedy{{Command: fmt.Sprintf("tc qdisc replace dev %s root pfifo_fast", d.Name), Text: "a plain queue keeps the frames; net.core.default_qdisc=pfifo_fast does so for devices that come later"}}, f.Remedies...)
		}
		o.add(f)
	}
}
