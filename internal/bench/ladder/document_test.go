package ladder

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/bench/forward"
	"weir/internal/bench/iperf"
	"weir/internal/bench/paths"
	"weir/internal/bench/probe"
	"weir/internal/bench/report"
	"weir/internal/bench/sample"
	"weir/internal/lab"
	"weir/internal/stats"
)

// synthetic makes figures of every part. Each rung is a tenth slower than the one before
// it, except weir, which is as fast as the direct wire.
func synthetic(o *Options) *ladder {
	l := &ladder{options: o, figures: newFigures(), records: map[scene]*sample.Record{}, tool: &iperf.Tool{Version: iperf.Version{Major: 3, Minor: 12}}}
	f := &l.figures
	for _, offloads := range o.modes() {
		for i, r := range rungs {
			s, rate := spot{r, offloads}, 10-float64(i)
			if r.firewall == Weir {
				rate = 9
			}
			for _, n := range o.Connections {
				f.rates[point{s, n}] = around(rate * 1.1)
				l.records[scene{s, PartTCP, n}] = seen(rate)
			}
			if r.route == overLoopback {
				continue
			}
			delay := &probe.Delays{Millis: around(float64(i)), Sent: 6, Lost: 1, Jitter: 0.1}
			f.pairs[s] = pair(rate, rate/2, rate/2)
			for _, part := range []string{PartPairs, PartCPU, PartLatency, partOf(true)} {
				l.records[scene{s, part, 0}] = seen(rate)
			}
			f.cpu[s] = around(1 / rate)
			f.idle[s], f.loaded[s], f.oneWay[s] = []*probe.Delays{delay}, []*probe.Delays{delay, delay}, []*probe.Delays{delay}
			f.respond[direction{s, true}] = []*probe.RPM{{Value: 1000 * rate, Foreign: 1000, Loaded: 2000, Goodput: 1e9, Stable: true}, {Value: 1000 * rate}}
		}
		control := point{spot{o.control(), offloads}, o.Connections[0]}
		f.again[control] = f.rates[control]
	}
	f.short[spot{rungOf("nat, nft"), lab.OffloadsOff}] = 0.7
	f.drowned[spot{rungOf("nat, weir"), lab.OffloadsOff}] = 2
	f.cut[spot{rungOf("nat, nft"), lab.OffloadsOn}] = 1
	f.silent[spot{rungOf("nat, weir"), lab.OffloadsOn}] = 2
	l.frames = &forward.Report{Control: stats.NewControl()}
	for path, rate := range map[string]float64{paths.Generator: 5, paths.Redirect: 5, paths.NftNAT: 1, paths.WeirNAT: 4} {
		row := forward.Row{Path: path, Mpps: around(rate)}
		row.Frame = 64
		l.frames.Rows = append(l.frames.Rows, row)
	}
	return l
}

// seen is a record of a time in which a rate was carried.
func seen(rate float64) *sample.Record {
	return &sample.Record{About: "As made up.", Rates: []sample.Rate{{Panel: "throughput", Unit: "Gbit/s", Name: "to the server"}},
		Moments: []sample.Moment{{Point: sample.Point{At: time.Second, Took: time.Second, Cores: []sample.Core{{ID: 0, Busy: 0.5}}}, Values: []float64{rate}}}}
}

// charts returns the titles of a document's charts of a kind.
func charts(d *report.Document, of func(*report.Chart) bool) (titles []string) {
	for _, s := range d.Sections {
		for _, c := range s.Charts {
			if of(&c) {
				titles = append(titles, c.Title)
			}
		}
	}
	return titles
}

// TestOverTime: each part with traffic shows it with the load of the cores, in all forms,
// and each table of rungs has bars.
func TestOverTime(t *testing.T) {
	o := Defaults()
	o.Offloads = []string{"off"}
	d := synthetic(&o).document()
	want := []string{"1 connection", "4 connections", "64 connections", "1,000 connections", "two pairs", "the fixed rate", "the full line", "upload"}
	for i := range want {
		want[i] = "Over time: " + want[i] + ", offloads off"
	}
	if got := charts(d, func(c *report.Chart) bool { return c.Times != nil }); !slices.Equal(got, want) {
		t.Errorf("over time %q, want %q", got, want)
	}
	for i, s := range d.Sections {
		bars := slices.ContainsFunc(s.Charts, func(c report.Chart) bool { return c.Bars != nil })
		if len(s.Tables) > 0 && !bars {
			t.Errorf("section %d, %s, has a table and no bars", i, s.Title)
		}
	}
	var page, text, markdown bytes.Buffer
	for _, err := range []error{d.WriteHTML(&page), d.WriteText(&text, 110), d.WriteMarkdown(&markdown, "")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(page.String(), "load of each core (%)") || !strings.Contains(text.String(), "load of each core") {
		t.Error("the page or the text does not show the cores")
	}
	if row := "| **nat, weir** | **9.00 (9.00–9.00)** | **50** |"; !strings.Contains(markdown.String(), row) {
		t.Errorf("no row %s in the Markdown", row)
	}
}

// TestDocument makes a report of all parts in every form, and checks the conclusions from
// known figures.
func TestDocument(t *testing.T) {
	o := Defaults()
	d := synthetic(&o).document()
	var page, text, back bytes.Buffer
	for _, err := range []error{d.WriteHTML(&page), d.WriteText(&text, 120), d.WriteJSON(&back)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	read, err := report.Read(&back)
	if err != nil {
		t.Fatal(err)
	}
	const parts = 2*7*4 + 2*6*(1+1+6+1) + 4 // rates; sum of pairs, CPU, delays, RPM; frames
	if got := len(read.Measurements); got != parts {
		t.Errorf("%d measurements, want %d", got, parts)
	}
	if !d.Conclusive() {
		t.Errorf("control: %v", d.Control)
	}
	verdicts := strings.Join(d.Verdicts, "\n")
	for _, want := range []string{
		"With NAT and offloads off, 1 connection: weir carries 9.90 Gbit/s, nft 5.50: +80 ± ",
		" With 4, 64, 1,000 connections: +80 ± 1.7 %, +80 ± 1.7 %, +80 ± 1.7 %.",
		"nat, nft, offloads off, 5.00 Gbit/s by one pair, 2.50 + 2.50 by two: an even split of the single rate: the firewall is the limit.",
		"nat, weir, offloads on, 9.00 Gbit/s by one pair, 4.50 + 4.50 by two: no more than the same pairs carry without a firewall: the hosts are the limit.",
		"CPU time with NAT and offloads on, hosts included: weir takes 0.111 s per gigabit, nft 0.200: −44 ± ",
	} {
		if !strings.Contains(verdicts, want) {
			t.Errorf("no verdict %q in\n%s", want, verdicts)
		}
	}
	if strings.Contains(verdicts, "stateful, ") {
		t.Errorf("a lower step of the same firewall has a verdict of its own in\n%s", verdicts)
	}
	notes := strings.Join(d.Notes, "\n")
	for _, want := range []string{
		"Loopback, which the offloads of the wires do not touch, differs between the two modes by: none proven",
		"nat, nft, offloads off: runs that did not reach the fixed rate, but 0.700 Gbit/s at most",
		"nat, weir, offloads off: 2 runs left out of the CPU time",
		"nat, nft, offloads on: 1 run left out of the loaded delays",
		"nat, weir, offloads on: 2 runs left out of the round-trips per minute",
		"redirect, frames of 64 bytes: the generator is the limit",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note %q in\n%s", want, notes)
		}
	}
	said := strings.Join(strings.Fields(text.String()), " ") // undoes the terminal's line breaks
	for _, want := range []string{"the hosts: the direct wire carries no more", "One connection against many", "1 of 2", "16.7"} {
		if !strings.Contains(said, want) {
			t.Errorf("the text does not say %q", want)
		}
	}
}

// TestFramesControl: if frames differ from themselves, nothing is concluded, in a report
// with other parts and in one of frames alone.
func TestFramesControl(t *testing.T) {
	for _, parts := range [][]string{Parts, {PartFrames}} {
		o := Defaults()
		o.Parts = parts
		l := synthetic(&o)
		if len(parts) == 1 {
			l.figures = newFigures()
		}
		if d := l.document(); !d.Conclusive() || d.Control == nil {
			t.Errorf("%v: control %v, want one that holds", parts, d.Control)
		}
		l.frames.Control.Add("redirect", around(5), around(7))
		d := l.document()
		if d.Conclusive() || !strings.Contains(d.Control.Why, "frames: redirect differs from itself by 40.0 %") {
			t.Errorf("%v: control %v", parts, d.Control)
		}
		d.Withhold()
		var text bytes.Buffer
		if err := d.WriteText(&text, 120); err != nil {
			t.Fatal(err)
		}
		for _, conclusion := range []string{"the generator is the limit", "the hosts: the direct wire carries no more", "an even split of the single rate", "−44 ± "} {
			if strings.Contains(strings.Join(strings.Fields(text.String()), " "), conclusion) {
				t.Errorf("%v: concluded %q", parts, conclusion)
			}
		}
	}
}

// TestDocumentOfOneRung has no other rung to compare with.
func TestDocumentOfOneRung(t *testing.T) {
	o := Quick()
	l := &ladder{options: &o, figures: newFigures(), tool: &iperf.Tool{Version: iperf.Version{Major: 3, Minor: 18}}}
	l.figures.rates[point{spot{rungOf("nat, weir"), lab.OffloadsOff}, 1}] = stats.Sample{1}
	d := l.document()
	if err := d.WriteText(new(bytes.Buffer), 80); err != nil {
		t.Fatal(err)
	}
	if len(d.Verdicts) != 0 || len(d.Measurements) != 1 || len(d.Sections) != 1 {
		t.Errorf("verdicts %q, %d measurements, %d sections", d.Verdicts, len(d.Measurements), len(d.Sections))
	}
}

// The tables and the charts write a figure alike, whatever it is.
func TestFigures(t *testing.T) {
	o := Defaults()
	l := synthetic(&o)
	awkward := func(s stats.Sample, i int) {
		for k := range s {
			s[k] = []float64{0.04, 99.96, 1234.5}[(i+k)%3]
		}
	}
	i := 0
	for _, samples := range []map[point]stats.Sample{l.figures.rates, l.figures.again} {
		for _, s := range samples {
			awkward(s, i)
			i++
		}
	}
	for at, f := range l.figures.pairs {
		awkward(f.alone, i)
		awkward(f.first, i+1)
		awkward(f.second, i+2)
		awkward(l.figures.cpu[at], i)
		awkward(l.figures.idle[at][0].Millis, i)
		l.figures.idle[at][0].Jitter, l.figures.loaded[at][0].Jitter = 0.04, 1234.5
		i++
	}
	for _, s := range l.figures.respond {
		s[0].Value, s[0].Foreign, s[0].Loaded, s[0].Goodput = 1234.5, 99.96, 0.04, 1234.5e9
	}
	for k := range l.frames.Rows {
		awkward(l.frames.Rows[k].Mpps, k)
	}
	d := l.document()
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	if err := d.CheckFigures(); err != nil {
		t.Error(err)
	}
}
