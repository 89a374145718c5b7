package remote

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir/internal/bench/iperf"
	"weir/internal/bench/sample"
	"weir/internal/stats"
)

// aMeasurement measured TCP in both directions and UDP, with a server that sends odd
// names.
func aMeasurement(t *testing.T) *measured {
	t.Helper()
	o := Defaults()
	o.Host, o.Runs, o.RouterName = "192.0.2.1", 3, "weir-fw"
	points := []sample.Point{
		{At: 250 * time.Millisecond, Took: 250 * time.Millisecond, Cores: []sample.Core{{ID: 0, Busy: 0.5, Softirq: 0.2}},
			Links: []sample.Link{{Name: "eth0", RxDropped: 7, Queued: 3000}}, Drops: map[string]uint64{"no-rule": 4}, States: 2},
		{At: time.Second, Took: 900 * time.Millisecond, Cores: []sample.Core{{ID: 0, Busy: 0.6}}},
	}
	evil := &result{}
	if err := evil.take([]sample.Point{{At: 1, Took: 1, Links: []sample.Link{{Name: "<script>\x1b[2J", RxDropped: 1}}}}); err != nil {
		t.Fatal(err)
	}
	m := &measured{
		options: &o, tool: &iperf.Tool{Version: iperf.Version{Major: 3, Minor: 12}}, server: netip.MustParseAddrPort("192.0.2.1:5202"), own: Host{Name: "here"}, started: time.Now(),
		welcome: &Welcome{Program: "weir", Machine: Host{Name: plain("<script>\x1b[2J"), Cores: 2}}, idle: stats.Sample{1, 2, 3},
		before: []stats.Sample{{1, 2, 3}}, without: "weir does not run there",
	}
	for _, f := range []*findings{
		{Case: Case{TCP, Both, 2, 0, 0}}, {Case: Case{TCP, Both, 2, 0, 0}, control: true}, {Case: Case{UDP, Down, 1, 10e6, 512}},
	} {
		for i := range o.Runs {
			d := &direction{Result: iperf.Result{
				Packets: 1000, Lost: 10, Retransmits: 2, Rate: 8 * float64(1e6+i), Received: 1e6, Seconds: 1,
			}, Series: []float64{8e6, 8e6}}
			r := &result{granted: f.Case.request(m.server.Addr(), time.Second), down: d, rtts: stats.Sample{2, 3, 4}, own: points,
				theirs: evil.theirs, process: 0.1, remote: 0.2}
			if f.Direction == Both {
				r.up = d
			}
			f.results = append(f.results, r)
		}
		m.entries = append(m.entries, f)
	}
	return m
}

func TestDocument(t *testing.T) {
	d := aMeasurement(t).document()
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	if err := d.CheckFigures(); err != nil {
		t.Error(err)
	}
	if !d.Conclusive() || len(d.Verdicts) < 2 {
		t.Errorf("control %+v, verdicts %q", d.Control, d.Verdicts)
	}
	names := map[string]float64{}
	for _, m := range d.Measurements {
		names[m.Name] = m.Runs.Median()
	}
	for name, want := range map[string]float64{
		"tcp.both.2.up.throughput": 8, "tcp.both.2.down.throughput": 8, "udp.down.512.10000000.throughput": 8,
		"udp.down.512.10000000.loss": 1, "tcp.both.2.rtt.p50": 3, "idle.rtt.p50": 2,
	} {
		if got := names[name]; got < 0.99*want || got > 1.01*want {
			t.Errorf("%s is %g, want %g (of %v)", name, got, want, names)
		}
	}
	var html, text bytes.Buffer
	if err := d.WriteHTML(&html); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteText(&text, 100); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(html.String(), "<script>?") || strings.Contains(text.String(), "\x1b[2J") {
		t.Error("what the server calls its machine is written as it came")
	}
	for _, want := range []string{"weir: no-rule", "eth0 on reception", "too busy to be read for 900ms", "weir does not run there"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in the report:\n%s", want, text.String())
		}
	}
}

// TestDelayCountsRuns: a thousand probes of one slow run prove nothing about the others.
// If all runs are slow, the load is proven to be the cause.
func TestDelayCountsRuns(t *testing.T) {
	around := func(v float64) (s stats.Sample) {
		for i := range 1000 {
			s = append(s, v*(1+float64(i%10)/100))
		}
		return s
	}
	m := aMeasurement(t)
	f := &findings{Case: m.entries[0].Case}
	m.before = nil
	for i := range 5 {
		m.before = append(m.before, around(1+float64(i)/100))
		f.results = append(f.results, &result{rtts: around(1 + float64(i)/100)})
	}
	if said := m.delay(f); said != "" {
		t.Errorf("the same times as without load, but: %s", said)
	}
	for range 10 { // most of all probes, but from one run in five
		f.results[0].rtts = append(f.results[0].rtts, around(2)...)
	}
	if said := m.delay(f); said != "" {
		t.Errorf("four of five runs are as fast as without load, but: %s", said)
	}
	for i := range f.results {
		f.results[i].rtts = around(3 + float64(i)/100)
	}
	f.results[0].lost = 500
	said := m.delay(f)
	for _, want := range []string{"rises from 1.07 to 3.16 ms", "9.1 % of the probes had no echo"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q, want %q", said, want)
		}
	}
	f.results = []*result{{lost: 10}}
	if said := m.delay(f); !strings.Contains(said, "100 % of the probes had no echo") {
		t.Errorf("no echo at all: %q", said)
	}
}

// TestControlFails: if the first case differs from itself, nothing is concluded.
func TestControlFails(t *testing.T) {
	m := aMeasurement(t)
	for _, r := range m.entries[1].results {
		other := *r.up
		other.Rate *= 2
		r.up = &other
	}
	if d := m.document(); d.Conclusive() {
		t.Errorf("control %+v", d.Control)
	}
}

// TestTableFits: columns without a figure are left out, and chart and table round alike.
func TestTableFits(t *testing.T) {
	m := aMeasurement(t)
	m.entries = m.entries[:2] // TCP only
	s := m.throughput()
	var names []string
	for _, c := range s.Tables[0].Columns {
		names = append(names, c.Name)
	}
	if got := strings.Join(names, ", "); got != "case, way, median, least, most, sent again, core here, core there" {
		t.Errorf("columns: %s", got)
	}
	for _, row := range s.Tables[0].Rows {
		if len(row) != len(names) {
			t.Errorf("a row of %d cells: %q", len(row), row)
		}
	}
	ours := 0
	for _, line := range aMeasurement(t).latency().Charts[0].CDF.Series {
		if line.Ours {
			ours++
		}
	}
	if ours != 1 {
		t.Errorf("%d lines are drawn alike", ours)
	}
}

// The tables and the chart write a rate alike, whatever it is.
func TestFigures(t *testing.T) {
	m := aMeasurement(t)
	for i, f := range m.entries {
		for k, r := range f.results {
			rate := []float64{0.04, 99.96, 1234.5}[(i+k)%3]
			r.process, r.remote = rate/1e3, rate/7
			for _, d := range r.directions() {
				d.Rate, d.Lost, d.Jitter = rate*1e6, 333, rate/1e6
			}
		}
	}
	d := m.document()
	if err := d.CheckFigures(); err != nil {
		t.Error(err)
	}
	if d.Sections[0].Title != "Throughput" || len(d.Sections[0].Tables[0].Rows) == 0 {
		t.Errorf("%+v", d.Sections[0])
	}
}
