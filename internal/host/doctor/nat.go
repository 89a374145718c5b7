package doctor

import (
	"cmp"
	"fmt"
	"slices"

	"weir/internal/units"
)

func natPorts(v *view) (o outcome) {
	refused, known := v.weirReason("nat-ports")
	if !known {
		o.lacks(v, "before.weir and after.weir")
		return o
	}
	if refused == 0 {
		return o
	}
	o.add(Finding{
		Severity: Critical, core: -1, weight: float64(refused),
		Says:     fmt.Sprintf("address translation found no free port for %s", v.rate(refused)),
		Evidence: []string{fmt.Sprintf("packets dropped with nat-ports: %s in %s", units.Thousands(int(refused)), seconds(v.Seconds))},
		Remedies: []Remedy{morePorts},
		Expect:   "new connections to busy destinations succeed again",
	})
	return o
}

var morePorts = Remedy{Command: "grep -n nat-to " + RulesFile, Text: "translate to a pool of addresses, or to a wider range of ports (nat-to … port 1024:65535): one address has 15,535 ports in pf's range towards one destination. Then weir load " + RulesFile}

// LeastNATPorts is the size of the smallest range whose use is counted. For a smaller
// range, the first failed connection says more than the count.
const LeastNATPorts = 16

// MostNATUses is the largest number of far ends in a snapshot.
const MostNATUses = 100

// portsOf returns the range that the connections' ports were chosen from: the smallest
// range that contains them all. Ports are chosen at random, so a large number of them
// spans the range.
func (w *Weir) portsOf(u *NATUse) (r PortRange, ok bool) {
	for _, p := range w.NATPorts {
		if p.Low <= u.Low && u.High <= p.High && (!ok || p.Size() < r.Size()) {
			r, ok = p, true
		}
	}
	return r, ok
}

// share returns the used part of a far end's range; 0 if the range is unknown.
func (w *Weir) share(u *NATUse) float64 {
	r, ok := w.portsOf(u)
	if !ok {
		return 0
	}
	return float64(u.Ports) / float64(r.Size())
}

// Fullest returns the uses that take most of their range, fullest first, at most as many
// as a snapshot has.
func (w *Weir) Fullest(uses []NATUse) []NATUse {
	slices.SortStableFunc(uses, func(a, b NATUse) int { return cmp.Compare(w.share(&b), w.share(&a)) })
	return uses[:min(len(uses), MostNATUses)]
}

// portsLost is the used share above which connections are lost. The search for a free
// port ends after 1,024 steps (NAT_PORT_TRIES in bpf/config.h), and used ports come in
// rows. In a simulation that filled 15,535 and 64,512 ports, the first connection was
// lost at 92 to 96 %.
const portsLost = 0.92

// natUses warns that ports run out before a packet is dropped for lack of one.
func natUses(v *view) (o outcome) {
	if v.Weir.NATPorts == nil {
		o.lacks(v, "weir.nat_ports")
		return o
	}
	if len(v.Weir.NATPorts) == 0 {
		o.absent = "no rule chooses ports for translated sources"
		return o
	}
	if v.After.Weir.NAT == nil {
		o.lacks(v, "weir.nat")
		return o
	}
	var full []NATUse
	for _, u := range v.Weir.Fullest(slices.Clone(v.After.Weir.NAT)) {
		if _, known := v.Weir.portsOf(&u); !known {
			o.lacks(v, "weir.nat_ports of connections that earlier rules translate")
		} else if v.Weir.share(&u) >= crowded {
			full = append(full, u)
		}
	}
	if len(full) == 0 {
		return o
	}
	worst := v.Weir.share(&full[0])
	grade := Warning
	if worst >= portsLost {
		grade = Critical
	}
	f := Finding{
		Severity: grade, core: -1, weight: worst,
		Says:     fmt.Sprintf("address translation has %s of its %s ports towards %s in use", percent(worst), full[0].Protocol, full[0].Far),
		Remedies: []Remedy{morePorts, {Command: "weir states", Text: "see who has them: one host that opens thousands of connections to one destination is rarely healthy"}},
		Expect:   "new connections to that destination keep succeeding",
	}
	const most = 5 // number of lines to print
	for i := range full[:min(len(full), most)] {
		u := &full[i]
		r, _ := v.Weir.portsOf(u)
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s from %s to %s: %s of the ports %d to %d", u.Protocol, u.Address, u.Far, of(u.Ports, r.Size()), r.Low, r.High))
	}
	if more := len(full) - most; more > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("and towards %d more", more))
	}
	o.add(f)
	return o
}
