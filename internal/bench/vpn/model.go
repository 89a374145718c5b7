package vpn

import (
	"fmt"

	"weir/internal/bench/report"
)

// modelCores is how many cores the model is for.
const modelCores = 8

// speedup returns how many times faster n workers are than one, if two are faster by a factor: what only one of them can do
// at a time stays (Amdahl's law).
func speedup(two float64, n int) float64 {
	alone := max(2/two-1, 0)
	return float64(n) / (1 + alone*float64(n-1))
}

// onePeer returns how many times faster all cores of the model carry the packets of one peer than one core does: in the
// direction that gains less; 0: not measured.
func (b *bench) onePeer() (times float64) {
	for _, decrypt := range []bool{false, true} {
		one, two := b.findStand(stand{decrypt, 1, 1}), b.findStand(stand{decrypt, 2, 1})
		if one == nil || two == nil {
			return 0
		}
		if s := speedup(two.rate.Median()/one.rate.Median(), modelCores); times == 0 || s < times {
			times = s
		}
	}
	return times
}

// model says what a gateway of eight cores would carry.
func (b *bench) model(d *report.Document) report.Section {
	t := report.Table{Title: fmt.Sprintf("A gateway of %d cores", modelCores), Columns: []report.Column{{Name: "case", Words: true}, {Name: "cores for 1 Gbit/s"},
		{Name: "many peers", Unit: "Gbit/s"}, {Name: "one peer", Unit: "Gbit/s"}}}
	times := b.onePeer()
	for _, of := range []string{CaseGSO, CaseNIC} {
		var ours, theirs float64
		for _, engine := range []string{Weir, Released} {
			one := b.find(task{of: of, engine: engine, flows: b.options.Flows})
			if one == nil {
				continue
			}
			c := one.cost.Median() / 2 // of one end
			single := "–"
			switch {
			case engine == Released:
				theirs = modelCores / c
				single = "at most " + report.Figure(theirs)
			case times > 0:
				ours = times / c
				single = report.Figure(ours)
			}
			t.Add(engine == Weir, one.String(), report.Figure(c), report.Figure(modelCores/c), single)
		}
		if ours > 0 && theirs > 0 {
			verdict := holds
			if ours < theirs {
				verdict = missed
			}
			d.Verdicts = append(d.Verdicts, fmt.Sprintf("%s, one peer on %d cores by the model: weir ÷ wireguard-go at its best is %.2f (floor 1.00: %s).", of, modelCores, ours/theirs, verdict))
		}
	}
	s := report.Section{Title: "By the model"}
	if len(t.Rows) > 0 {
		s.Tables = []report.Table{t}
		s.Text = []string{"One end costs half of both. With many peers all cores share the work evenly. With one peer, what only one core at a time can do is a limit below that: " +
			"weir reads a port and writes what came by it on one core at a time, and decrypts on all (a wide link has several ports). How much that is follows from two workers beside one, of one end alone, in the direction that gains less. " +
			"wireguard-go reads a tun device and a port in one thread each; how much that costs it is not measured, so it is compared as if it cost nothing. " +
			"To compare: a gateway of eight cores that did 650 Mbit/s on one of them, and 1 Gbit/s on two."}
	}
	return s
}
