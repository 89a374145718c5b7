package rfc

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/bench/report"
	"weir/internal/bench/sample"
	"weir/internal/bench/web"
	"weir/internal/stats"
	"weir/internal/testenv"
)

// fake returns the outcome of a synthetic device.
func fake(path string, limit string, values ...float64) *outcome {
	o := &outcome{path: path}
	for _, v := range values {
		f := more("throughput", "Mpps", v)
		f.step, f.bound = 0.001, limit != ""
		o.runs = append(o.runs, finding{limit: limit, figures: []figure{f}})
	}
	return o
}

func described(t *testing.T, done ...*tested) *report.Document {
	t.Helper()
	o := Defaults("rfc2544")
	r := &runner{o: &o, done: done}
	s, err := Named("rfc2544")
	if err != nil {
		t.Fatal(err)
	}
	d := &report.Document{Kind: s.Name, Title: s.Title}
	r.describe(d, &s)
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	if err := d.CheckFigures(); err != nil {
		t.Error(err)
	}
	return d
}

// TestVerdicts covers proven differences, unproven ones, and a generator that was too
// slow.
func TestVerdicts(t *testing.T) {
	test := &Test{Name: "throughput", Title: "Throughput"}
	for name, c := range map[string]struct {
		theirs, ours, again *outcome
		verdict             string
		ok                  bool
	}{
		"proven": {fake("nft", "", 1, 1.01, 0.99, 1, 1), fake("weir", "", 2, 2.01, 1.99, 2, 2), fake("weir", "", 2, 2, 2, 2, 2.02),
			"weir has 2.00 Mpps against 1.00 Mpps of nft", true},
		"not proven": {fake("nft", "", 1, 1.3, 0.7, 1, 1), fake("weir", "", 1.1, 1.2, 0.8, 1.05, 1), fake("weir", "", 1, 1.04, 1.04, 1.1, 1),
			"undecided: this run would have seen a difference of ", true},
		"equal": {fake("nft", "", 1, 1.01, 0.99, 1, 1), fake("weir", "", 1.01, 1, 0.99, 1, 1.01), fake("weir", "", 1, 1, 1, 1, 1),
			"of nft; equal within ", true},
		"equal to the digit": {fake("nft", "", 1, 1, 1), fake("weir", "", 1, 1, 1), fake("weir", "", 1, 1, 1),
			"equal within 0.10 %", true},
		"different, but hardly": {fake("nft", "", 1, 1.001, 0.999, 1, 1), fake("weir", "", 1.02, 1.021, 1.019, 1.02, 1.02), fake("weir", "", 1, 1, 1.01),
			"that they differ is proven, and by no more than 2.2 %", true},
		"one step": {fake("nft", "", 1, 1, 1), fake("weir", "", 1.001, 1.001, 1.001), fake("weir", "", 1, 1, 1),
			"of nft; equal within 0.2", true},
		"generator": {fake("nft", "generator", 2, 2, 2.01), fake("weir", "generator", 2, 2.01, 2), fake("weir", "generator", 2, 2, 2),
			"neither was the limit", true},
		"at least": {fake("nft", "", 1, 1, 1.01), fake("weir", "generator", 2, 2.01, 2), fake("weir", "generator", 2, 2, 2),
			"of weir at least, as the generator was the limit", true},
		"at most": {fake("nft", "generator", 2, 2, 2.01), fake("weir", "", 1, 1.01, 1), fake("weir", "", 1, 1, 1),
			"of nft at least, as the generator was the limit", true},
		"control": {fake("nft", "", 1, 1, 1.01), fake("weir", "", 2, 2.01, 2), fake("weir", "", 3, 3, 3),
			"Throughput: no verdict: weir, Throughput differs from itself by ", false},
	} {
		d := described(t, &tested{test: test, paths: []*outcome{c.theirs, c.ours}, again: c.again})
		if len(d.Verdicts) != 1 || !strings.Contains(d.Verdicts[0], c.verdict) {
			t.Errorf("%s: verdicts %q, want %q", name, d.Verdicts, c.verdict)
		}
		if d.Conclusive() != c.ok {
			t.Errorf("%s: control %+v", name, *d.Control)
		}
		if len(d.Measurements) != 2 || d.Measurements[1].Name != "rfc2544/throughput/weir/throughput" {
			t.Errorf("%s: measurements %+v", name, d.Measurements)
		}
	}
}

// TestControlOfEach: a test on a restless machine loses its own verdict and no other.
func TestControlOfEach(t *testing.T) {
	of := func(name string, again *outcome) *tested {
		return &tested{test: &Test{Name: name, Title: "Test " + name}, again: again,
			paths: []*outcome{fake("nft", "", 1, 1, 1), fake("weir", "", 2, 2, 2)}}
	}
	d := described(t, of("restless", fake("weir", "", 3, 3, 3)), of("quiet", fake("weir", "", 2.02, 2.02, 2.02)), of("still", fake("weir", "", 2, 2, 2)))
	if !d.Conclusive() || d.Control.Path != "weir, Test quiet" {
		t.Errorf("control %+v", *d.Control)
	}
	if len(d.Verdicts) != 3 || !strings.HasPrefix(d.Verdicts[0], "Test restless: no verdict: ") || !strings.Contains(d.Verdicts[1], "weir has") {
		t.Errorf("verdicts %q", d.Verdicts)
	}
	for _, m := range d.Measurements {
		if m.Untrusted != strings.Contains(m.Name, "restless") {
			t.Errorf("%+v", m)
		}
	}
}

// TestInvalidRuns: invalid runs are shown but do not count.
func TestInvalidRuns(t *testing.T) {
	bad := &outcome{path: "weir", invalid: []string{"3 of 5 transactions failed"}}
	d := described(t, &tested{test: &Test{Name: "cps", Title: "Connections"}, paths: []*outcome{fake("nft", "", 1, 1, 1), bad}, again: bad})
	if len(d.Measurements) != 1 || len(d.Verdicts) != 0 || d.Conclusive() {
		t.Errorf("measurements %v, verdicts %v, control %v", d.Measurements, d.Verdicts, *d.Control)
	}
	if !strings.Contains(strings.Join(d.Notes, "\n"), "3 of 5 transactions failed") {
		t.Errorf("notes %q", d.Notes)
	}
}

// TestEndpoints: if clients and servers share the machine, paths as fast as bare routing
// say nothing about a firewall.
func TestEndpoints(t *testing.T) {
	timed := func(path string, values ...float64) *outcome {
		o := fake(path, "", values...)
		for i := range o.runs {
			o.runs[i].times = stats.Sample{1, 2, 3}
		}
		return o
	}
	d := described(t, &tested{test: &Test{Name: "cps", Title: "Connections"}, again: timed("weir", 10, 10, 10),
		paths: []*outcome{timed("kernel", 10, 10.1, 9.9), timed("nft", 5, 5.1, 4.9), timed("nft-nat", 4, 9, 14), timed("weir", 10, 10.05, 9.95)}})
	notes := strings.Join(d.Notes, "\n")
	if !strings.Contains(notes, "undecided whether clients and servers are the limit of nft-nat (this run would have seen a difference of ") {
		t.Errorf("noise is taken for equality: %q", notes)
	}
	if !strings.Contains(notes, "limited by clients and servers: weir equal to bare routing within 5 %") {
		t.Errorf("notes %q", notes)
	}
}

// TestControlOfObjects: all objects of all runs may take under 100 ms while the same path
// still differs from itself.
func TestControlOfObjects(t *testing.T) {
	with := func(factor float64) *outcome {
		o := fake("weir", "", 100, 100, 100, 100, 100)
		for i := range o.runs {
			for j := range 50 {
				o.runs[i].times = append(o.runs[i].times, factor*(10+float64(j%7)+0.01*float64(i)))
			}
		}
		return o
	}
	for factor, holds := range map[float64]bool{1: true, 2: false} {
		d := described(t, &tested{test: &Test{Name: "objects", Title: "Time"}, paths: []*outcome{with(1)}, again: with(factor)})
		if d.Conclusive() != holds {
			t.Errorf("%v times as long: %v", factor, d.Control)
		}
	}
}

// TestForms writes a report with every kind of chart in every form.
func TestForms(t *testing.T) {
	o := fake("weir", "", 1, 2, 3)
	for i := range o.runs {
		o.runs[i].times = stats.Sample{0, 1, 2, 30}
		o.runs[i].curve = []xy{{100, 50}, {90, 0}, {80, 0}}
	}
	o.record = &sample.Record{About: aboutTrials, Rates: offeredAnd("frames", "Mpps", "arrived"), Moments: []sample.Moment{
		{Point: sample.Point{At: time.Second, Took: time.Second, Cores: []sample.Core{{Busy: 0.5}}}, Values: []float64{2, 1}}}}
	d := described(t, &tested{test: &Test{Name: "objects", Title: "Time to the last byte"}, paths: []*outcome{fake("nft", "", 1, 1, 1), o}, again: o})
	if n := len(d.Sections[0].Charts); n != 4 {
		t.Errorf("%d charts, want bars, curves, a distribution and time", n)
	}
	var b bytes.Buffer
	for name, write := range map[string]func() error{
		"JSON": func() error { return d.WriteJSON(&b) }, "HTML": func() error { return d.WriteHTML(&b) },
		"Markdown": func() error { return d.WriteMarkdown(&b, "") }, "text": func() error { return d.WriteText(&b, 100) },
	} {
		if err := write(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStandards: names of measurements are unique.
func TestStandards(t *testing.T) {
	for _, s := range Standards() {
		o := Defaults(s.Name)
		if err := o.Check(); err != nil {
			t.Error(err)
		}
		seen := map[string]bool{}
		for _, test := range s.Tests {
			if seen[test.Name] || test.measure == nil || test.seconds == nil || test.About == "" || test.Where == "" {
				t.Errorf("%s: test %s is there twice or not whole", s.Name, test.Name)
			}
			seen[test.Name] = true
		}
		if e := o.Estimate(); e < 10*time.Second || e > 90*time.Minute {
			t.Errorf("%s: estimated to take %v", s.Name, e)
		}
		o.Lengthen()
		if o.Estimate() < 30*time.Minute {
			t.Errorf("%s: the RFC's durations take only %v", s.Name, o.Estimate())
		}
	}
	if _, err := Named("rfc1149"); err == nil {
		t.Error("birds are measured")
	}
}

func TestOptions(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"--test":        func(o *Options) { o.Tests = []string{"speed"} },
		"--paths":       func(o *Options) { o.Paths = []string{"generator"} },
		"--paths: ":     func(o *Options) { o.Paths = nil },
		"--frame":       func(o *Options) { o.Frames = []int{63} },
		"--runs":        func(o *Options) { o.Runs = 0 },
		"--hook":        func(o *Options) { o.Hook = "tc" },
		"--clients":     func(o *Options) { o.Clients = 1001 },
		"--connections": func(o *Options) { o.Connections = 99 },
		"--seconds":     func(o *Options) { o.Trial = time.Millisecond },
	} {
		o := Defaults("rfc2544")
		change(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestRun is one short real run of each standard. It checks that traffic arrives, not how
// fast.
func TestRun(t *testing.T) {
	testenv.NeedRoot(t)
	testenv.NeedKernelThreads(t)
	testenv.NeedProgram(t, "nft")
	program := testenv.BuildWeir(t)
	for name, tests := range map[string][]string{
		"rfc2544": {"throughput", "latency", "loss", "back-to-back"},
		"rfc9693": {"validity", "throughput", "capacity"},
		"rfc3511": {"capacity", "teardown", "flood", "transactions", "illegal", "fragments", "latency-http"},
		"rfc9411": {"cps", "https-throughput", "connections"},
		"web":     {"objects"},
	} {
		t.Run(name, func(t *testing.T) { shortRun(t, program, name, "nft-nat", tests) })
	}
	// weir takes seconds to start, so it runs once with frames and once with clients.
	t.Run("weir frames", func(t *testing.T) { shortRun(t, program, "rfc2544", "weir-nat", []string{"latency"}) })
	t.Run("weir clients", func(t *testing.T) { shortRun(t, program, "rfc9411", "weir-nat", []string{"https-cps"}) })
}

func shortRun(t *testing.T, program, name, path string, tests []string) {
	if name == "web" && web.NginxMissing() != "" {
		testenv.Skip(t, "%s", web.NginxMissing())
	}
	o := Defaults(name)
	o.Program, o.Tests, o.Paths, o.Runs = program, tests, []string{path}, 1
	o.Trial, o.Sustain, o.Ramp = 20*time.Millisecond, 100*time.Millisecond, 20*time.Millisecond
	o.Frames, o.Flows, o.Connections, o.Clients, o.Precision, o.Tries = []int{128}, 50, 200, 4, 0.4, 1
	o.name = "weir-test-rfc"
	d, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		found := false
		for _, m := range d.Measurements {
			found = found || strings.HasPrefix(m.Name, name+"/"+test+"/") && (m.Runs.Max() > 0 || test == "loss")
		}
		if !found {
			t.Errorf("%s was not measured; notes %q, skipped %v", test, d.Notes, d.Skipped)
		}
	}
	for _, s := range d.Sections {
		if !slices.ContainsFunc(s.Charts, func(c report.Chart) bool {
			return c.Times != nil && len(c.Times.Cores) > 0 && len(c.Times.Panels) > 0
		}) {
			t.Errorf("%s: no rate over time with the load of the cores", s.Title)
		}
	}
	var text bytes.Buffer
	if err := d.WriteText(&text, 100); err != nil {
		t.Error(err)
	}
	t.Log(text.String())
	if left, err := filepath.Glob("/run/netns/" + o.name + "-*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestControlOfNothing: no loss in both halves is the best control. A path that carried
// nothing the second time is not compared with itself.
func TestControlOfNothing(t *testing.T) {
	lost := func(values ...float64) *outcome {
		o := fake("weir", "", values...)
		for i := range o.runs {
			o.runs[i].figures[0] = less("loss at the highest rate", "%", values[i])
		}
		return o
	}
	for name, c := range map[string]struct {
		own, again *outcome
		ok         bool
	}{
		"nothing was lost":      {lost(0, 0, 0), lost(0, 0, 0), true},
		"hardly anything was":   {lost(0, 0, 0), lost(0.001, 0.001, 0), true},
		"much was":              {lost(0, 0, 0), lost(10, 10, 10), false},
		"no frame came through": {fake("weir", "", 1, 1, 1), fake("weir", "", 0, 0, 0), false},
		"no run counts":         {fake("weir", "", 1, 1, 1), &outcome{path: "weir", invalid: []string{"broken"}}, false},
		"illegal frames: none":  {fake("weir", "", 0, 0, 0), fake("weir", "", 0, 0, 0), true},
	} {
		d := described(t, &tested{test: &Test{Name: "loss", Title: "Loss"}, paths: []*outcome{c.own}, again: c.again})
		if d.Control.OK != c.ok || d.Control.Why == "" != c.ok {
			t.Errorf("%s: %+v, want %v", name, *d.Control, c.ok)
		}
	}
}

// TestMeasurements checks what compare is told about figures found by a search, and about
// those that the generator limits.
func TestMeasurements(t *testing.T) {
	own := fake("weir", "", 1, 1, 1)
	own.runs[1].figures[0].step, own.runs[2].figures[0].bound = 0.02, true
	d := described(t, &tested{test: &Test{Name: "throughput", Title: "Throughput"}, paths: []*outcome{own, fake("nft", "", 1, 1, 1)}, again: fake("nft", "", 1)})
	if m := d.Measurements[0]; m.Resolution != 0.02 || !m.AtLeast {
		t.Errorf("%+v", m)
	}
	if m := d.Measurements[1]; m.Resolution != 0.001 || m.AtLeast {
		t.Errorf("%+v", m)
	}
}

// TestFigures: the tables and the charts of every standard write a figure alike, whatever it is.
func TestFigures(t *testing.T) {
	for _, s := range Standards() {
		o := Defaults(s.Name)
		r := &runner{o: &o}
		for i := range s.Tests {
			own, other := fake("weir", "", 0.04, 99.96, 1234.5), fake("nft", "", 1234.5, 1234.5, 99.96)
			for k := range own.runs {
				own.runs[k].curve = []xy{{100, 99.96}, {90, 0.04}}
				own.runs[k].times = stats.Sample{0.04, 99.96, 1234.5}
			}
			r.done = append(r.done, &tested{test: &s.Tests[i], paths: []*outcome{other, own}, again: own})
		}
		d := &report.Document{Kind: s.Name, Title: s.Title}
		r.describe(d, &s)
		if err := errors.Join(d.Check(), d.CheckFigures()); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}
