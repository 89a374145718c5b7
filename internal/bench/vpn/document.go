package vpn

import (
	"fmt"
	"slices"

	"weir/internal/bench/report"
	"weir/internal/stats"
	"weir/internal/units"
)

// A judged is a quotient with a floor.
type judged struct {
	what  string
	of    string // what is divided, and by what
	above stats.Sample
	below stats.Sample
	unit  string
	floor float64 // 0: there is none
	aim   float64
}

// What verdicts say.
const (
	holds  = "holds"
	missed = "missed"
)

func (j *judged) ratio() float64 { return j.above.Median() / j.below.Median() }

func (j *judged) verdict() string {
	switch {
	case j.floor == 0:
		return "–"
	case j.ratio() < j.floor:
		return missed
	}
	return holds
}

// find returns a task that was measured, or nil.
func (b *bench) find(like task) *task {
	i := slices.IndexFunc(b.tasks, func(t *task) bool {
		return !t.control && t.of == like.of && t.engine == like.engine && t.flows == like.flows && t.ports == like.ports && t.rules == like.rules && t.stand == nil && len(t.rate) > 0
	})
	if i < 0 {
		return nil
	}
	return b.tasks[i]
}

func (b *bench) findStand(s stand) *task {
	i := slices.IndexFunc(b.tasks, func(t *task) bool { return !t.control && t.stand != nil && *t.stand == s && len(t.rate) > 0 })
	if i < 0 {
		return nil
	}
	return b.tasks[i]
}

// quotients are what this run is judged by.
func (b *bench) quotients() (all []judged) {
	add := func(what, of, unit string, above, below *task, floor, aim float64) {
		if above != nil && below != nil {
			all = append(all, judged{what, of, above.rate, below.rate, unit, floor, aim})
		}
	}
	const engines, flow = "weir ÷ wireguard-go", "one connection"
	n := b.options.Flows
	pair := func(of string, flows int) (*task, *task) {
		return b.find(task{of: of, engine: Weir, flows: flows}), b.find(task{of: of, engine: Released, flows: flows})
	}
	tcp := func(of, name string, floor, aim float64) {
		ours, theirs := pair(of, n)
		add(name+", "+units.Plural(n, "connection"), engines, "Gbit/s", ours, theirs, floor, aim)
		if n > 1 {
			ours, theirs = pair(of, 1)
			add(name+", "+flow, engines, "Gbit/s", ours, theirs, 0, 0)
		}
	}
	tcp(CaseGSO, "TCP, super-packets", 1.5, 2)
	tcp(CaseNIC, "TCP, frames", 1.3, 1.6)
	ours, theirs := pair(CaseUDP, 1)
	add(fmt.Sprintf("UDP of %d bytes", datagram), engines, "thousand packets/s", ours, theirs, 2.5, 0)
	add("rules at TCX", "with ÷ without", "Gbit/s", b.find(task{of: CaseTCX, engine: Weir, flows: n, rules: true}), b.find(task{of: CaseTCX, engine: Weir, flows: n}), 0.97, 0)
	ours, theirs = pair(CaseRPM, 1)
	add("round trips beside a load, frames", engines, "a minute", ours, theirs, 0, 0)
	for _, flows := range slices.Compact([]int{n, 1}) {
		add(fmt.Sprintf("wide link, frames, %s", units.Plural(flows, "connection")), fmt.Sprintf("%d ports ÷ one", widePorts()), "Gbit/s",
			b.find(task{of: CaseWide, engine: Weir, flows: flows, ports: widePorts()}), b.find(task{of: CaseWide, engine: Weir, flows: flows}), 0, 0)
	}
	for _, decrypt := range []bool{false, true} {
		one := b.findStand(stand{decrypt, 1, 1})
		name := (&stand{decrypt: decrypt}).what()
		add(name+" alone", "two workers ÷ one", "Gbit/s", b.findStand(stand{decrypt, 2, 1}), one, 1.7, 0)
		add(name+" alone", fmt.Sprintf("%d peers ÷ one", manyPeers), "Gbit/s", b.findStand(stand{decrypt, 1, manyPeers}), one, 0.9, 0)
	}
	return all
}

// document turns what was measured into a report.
func (b *bench) document() *report.Document {
	o := b.options
	d := &report.Document{Kind: "vpn", Title: "WireGuard: weir's path of data", Command: o.Command, Version: o.Version, Sketch: o.Runs < report.LeastRuns, Method: b.method()}
	b.addControl(d)
	all := b.quotients()
	t := report.Table{Columns: []report.Column{{Name: "what", Words: true}, {Name: "of what", Words: true}, {Name: "above"}, {Name: "below"}, {Name: "unit", Words: true},
		{Name: "ratio"}, {Name: "floor"}, {Name: "aim"}, {Name: "verdict", Words: true, Concludes: true}}}
	limit := func(v float64) string {
		if v == 0 {
			return "–"
		}
		return fmt.Sprintf("≥ %.2f", v)
	}
	for i := range all {
		j := &all[i]
		t.Add(j.floor > 0, j.what, j.of, report.WithSpread(j.above), report.WithSpread(j.below), j.unit, fmt.Sprintf("%.2f", j.ratio()), limit(j.floor), limit(j.aim), j.verdict())
		if j.floor > 0 {
			d.Verdicts = append(d.Verdicts, fmt.Sprintf("%s: %s is %.2f (floor %.2f: %s).", j.what, j.of, j.ratio(), j.floor, j.verdict()))
		}
	}
	ratios := report.Section{Title: "Ratios"}
	if len(t.Rows) > 0 {
		ratios.Tables = []report.Table{t}
	}
	d.Add(ratios, b.costs(d), b.model(d))
	for _, t := range b.tasks {
		if t.control || len(t.rate) == 0 {
			continue
		}
		unit := "Gbit/s"
		switch t.of {
		case CaseUDP:
			unit = "thousand packets/s"
		case CaseRPM:
			unit = "round trips/min"
		}
		d.Measure(report.Higher, unit, t.rate, t.String())
		if len(t.cost) > 0 {
			d.Measure(report.Lower, "s/Gbit", t.cost, t.String(), "CPU")
		}
	}
	for _, t := range b.tasks {
		if t.silent > 0 {
			d.Notes = append(d.Notes, fmt.Sprintf("%s: in %d of %d runs nothing was answered. They do not count in its figure.", t, t.silent, b.options.Runs))
		}
	}
	d.Notes = append(d.Notes,
		"Hosts, both ends and iperf3 share this machine's cores: a gateway alone on them carries about twice as much.",
		"Super-packets flatter: a veth carries 64 KB as one, which no network card does. Frames are nearer to a network card, whose own work is missing.")
	return d
}

// addControl compares the two measurements of the first task.
func (b *bench) addControl(d *report.Document) {
	control := stats.NewControl()
	first, again := b.tasks[0], b.tasks[len(b.tasks)-1]
	control.Add(first.String(), first.rate, again.rate)
	d.Control = &control
}

// costs says what a gigabit costs, beside what its encryption alone costs.
func (b *bench) costs(d *report.Document) report.Section {
	t := report.Table{Title: "CPU of both ends", Columns: []report.Column{{Name: "case", Words: true}, {Name: "CPU", Unit: "s/Gbit"}, {Name: "of that ChaCha20-Poly1305"}, {Name: "floor"},
		{Name: "verdict", Words: true, Concludes: true}}}
	alone, by := b.crypto.openssl, "OpenSSL's"
	if len(alone) == 0 {
		alone, by = b.crypto.goes, "Go's"
	}
	floors := map[string]float64{CaseGSO: 0.30, CaseNIC: 0.20}
	for _, one := range b.tasks {
		if one.control || one.stand != nil || len(one.cost) == 0 {
			continue
		}
		share, floor, verdict := alone.Median()/one.cost.Median(), "–", "–"
		if least := floors[one.of]; one.engine == Weir && least > 0 && one.flows == b.options.Flows {
			floor, verdict = fmt.Sprintf("≥ %.2f", least), holds
			if share < least {
				verdict = missed
			}
			d.Verdicts = append(d.Verdicts, fmt.Sprintf("%s: %s ChaCha20-Poly1305 is %.2f of the CPU of both ends (floor %.2f: %s).", one, by, share, least, verdict))
		}
		t.Add(one.engine == Weir, one.String(), report.WithSpread(one.cost), fmt.Sprintf("%.2f", share), floor, verdict)
	}
	s := report.Section{Title: "CPU"}
	if len(t.Rows) > 0 {
		s.Tables = []report.Table{t}
		s.Text = []string{fmt.Sprintf("To encrypt and decrypt a gigabit of packets of %d bytes takes Go's ChaCha20-Poly1305 %.3f s of a core%s. The column is %s by the CPU of both ends.",
			block, b.crypto.goes.Median(), b.openssl(), by)}
	}
	return s
}

func (b *bench) openssl() string {
	if len(b.crypto.openssl) == 0 {
		return " (OpenSSL is not installed)"
	}
	return fmt.Sprintf(", and OpenSSL's %.3f", b.crypto.openssl.Median())
}

func (b *bench) method() []string {
	o := b.options
	return []string{
		fmt.Sprintf("Every round does everything once, in random order, and starts both ends anew; %s of %d seconds. Figures are medians, with smallest and largest run.", units.Plural(o.Runs, "round"), o.Seconds),
		fmt.Sprintf("A host sends to another through two gateways, whose ends of the tunnel are processes of their own; all are network namespaces of this machine. TCP is iperf3 %s. wireguard-go is the library as it is released, with its own tun device and sockets.", b.tool.Version),
		"Super-packets: devices do what veth does by itself, and 64 KB cross a wire as one. Frames: devices do not split, so frames of 1,500 bytes cross every wire, and whoever receives them puts them together (GRO).",
		fmt.Sprintf("UDP: %.0f thousand datagrams of %d bytes a second are offered; those that arrive count.", offered/1e3, datagram),
		fmt.Sprintf("Round trips beside a load: as weir bench ladder measures them, while the host sends by up to 16 connections (draft-ietf-ippm-responsiveness), at most %d seconds.", o.Seconds),
		"CPU is that of both ends' processes, with what the kernel does for them, from the first packet to the last.",
		"Alone: one end of weir's, without the other and without the hosts. To encrypt, it splits super-packets of TCP that it has in memory, and sends messages to a device that drops them. To decrypt, it takes recorded batches from memory, with handshake, allowed networks and replay window as always (which is emptied when the record begins anew, every 600 batches), and writes packets to a file that drops them.",
	}
}
