package qos

import (
	"math"
	"strings"
	"testing"
	"time"

	"weir/internal/bench/iperf"
	"weir/internal/bench/report"
	"weir/internal/stats"
)

func TestVerdict(t *testing.T) {
	up := figure("rate", "", report.Higher, nil).floor(0.95, 0.97)
	down := figure("loss", "%", report.Lower, nil).floor(0.1, 0)
	none := figure("loss", "%", report.Lower, nil)
	for _, c := range []struct {
		j    judged
		runs stats.Sample
		want string
	}{
		{up, stats.Sample{0.94, 0.949, 0.99}, missed}, {up, stats.Sample{0.95}, holdsFloor}, {up, stats.Sample{0.97}, holdsAim},
		{down, stats.Sample{0.2}, missed}, {down, stats.Sample{0.1}, holdsFloor}, {down, stats.Sample{0}, holdsAim},
		{none, stats.Sample{5}, "–"}, {up, nil, "–"},
	} {
		if got := c.j.verdict(c.runs); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.j.name, c.runs, got, c.want)
		}
	}
	if up.limit(up.least) != "≥ 0.950" || down.limit(down.aim) != "≤ 0" || none.limit(none.least) != "–" {
		t.Errorf("limits %s, %s, %s", up.limit(up.least), down.limit(down.aim), none.limit(none.least))
	}
}

// Two connections: 30 bytes of CUBIC and 90 of BBR after the start, so BBR has ¾ of all and 1.5
// times its half, and the class that should have ½ misses it by half.
func TestShares(t *testing.T) {
	o := &outcome{up: &arrivals{}, scene: &scene{flows: []flow{{congestion: cubic, class: "first"}, {congestion: bbr, class: "second"}}}}
	for i, v := range []float64{30, 90} {
		o.up.flows[i] = make(series, bins(settled)+1)
		o.up.flows[i][0] = 1e6 // before the start has ended
		o.up.flows[i][bins(settled)] = v
	}
	if got := o.bbrShare(); !near(got, 1.5) {
		t.Errorf("BBR's share: %v", got)
	}
	j := weightError(0.5)
	if got := j.of(o); !near(got, 50) {
		t.Errorf("error of the shares: %v %%", got)
	}
	o.up.frames[0], o.up.frames[1], o.up.marked[1] = 60, 40, 2
	if got := o.marks(); !near(got, 2) {
		t.Errorf("marks: %v %%", got)
	}
	o.results = []*iperf.Result{{Sent: 1448 * 900, Retransmits: 1}, {Sent: 1448 * 100, Retransmits: 9}}
	if got := o.tcpLoss(); !near(got, 1) {
		t.Errorf("loss: %v %%", got)
	}
}

// The data begin when a connection has more than iperf3's own words, whatever other packets
// there are.
func TestBegin(t *testing.T) {
	a := &arrivals{}
	for f := range a.flows {
		a.flows[f] = make(series, 10)
	}
	a.flows[0][1], a.flows[0][4], a.flows[flowCount-1][0] = 600, 15_000, 1e6
	if got := a.begin([]int{0}); got != 4*bin {
		t.Errorf("begin: %v", got)
	}
	a.cut(4*bin, 3*bin)
	if len(a.flows[0]) != 3 || a.flows[0][0] != 15_000 || a.all().sum() != 15_000 {
		t.Errorf("cut: %v", a.flows[0])
	}
}

func TestOptions(t *testing.T) {
	o := Defaults()
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(*Options){
		func(o *Options) { o.Cases = []string{"all"} }, func(o *Options) { o.Paths = []string{"pf"} }, func(o *Options) { o.Rates[0] = 1e11 },
		func(o *Options) { o.RTTs[0] = time.Minute }, func(o *Options) { o.Congestion = "reno" }, func(o *Options) { o.Hook = "xtc" },
		func(o *Options) { o.Seconds = 1 }, func(o *Options) { o.Runs = 0 },
	} {
		o := Defaults()
		if change(&o); o.Check() == nil {
			t.Errorf("accepted: %+v", o)
		}
	}
	names := map[string]bool{}
	for _, s := range o.scenes() {
		if names[s.of+s.name] {
			t.Errorf("two scenes are %s, %s", s.of, s.name)
		}
		names[s.of+s.name] = true
		for _, j := range s.judged {
			if math.IsNaN(j.least) != math.IsNaN(j.aim) {
				t.Errorf("%s: %s has one limit", s.name, j.name)
			}
		}
	}
}

// Weir's rules name the queues of a scene by the ports of its connections.
func TestRules(t *testing.T) {
	s := &scene{rate: 50e6, ecn: true, queues: "queue a parent up bandwidth 1M default\n", flows: []flow{{class: "a"}, {}}}
	got := s.rules(PathWeir)
	for _, want := range []string{"queue up on wan0 bandwidth 50000K ecn\n", "queue a parent up", "queue down on wan0 in bandwidth 50000K ecn default\n", "port 5201 set queue a\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := s.rules(PathHeld); strings.Count(got, " engine queue ecn") != 2 {
		t.Errorf("not both directions are held:\n%s", got)
	}
	if got := s.rules(PathNone); strings.Contains(got, "queue") {
		t.Errorf("without queues:\n%s", got)
	}
}

// The control is the first scene on weir's path once more, and missing paths are left out.
func TestTasks(t *testing.T) {
	o := Defaults()
	o.Cases = []string{CasePing, CaseECN}
	all := o.tasks(map[string]string{PathCake: "no", PathFqCodel: "no"})
	var got []string
	for _, one := range all {
		name := one.scene.of + " " + one.path
		if one.control {
			name += " again"
		}
		got = append(got, name)
	}
	if want := "ping none, ping weir, ping held, ping htb, ecn weir, ecn weir, ping weir again"; strings.Join(got, ", ") != want {
		t.Errorf("tasks %v, want %s", got, want)
	}
	if o.Cases, o.Paths = []string{CaseECN}, []string{PathHTB}; len(o.tasks(nil)) != 0 {
		t.Error("there is something to measure")
	}
}

// The tables write a figure as charts do, whatever it is, and with the measurement's own value.
func TestFigures(t *testing.T) {
	o := Defaults()
	b := &bench{options: &o, tool: &iperf.Tool{}, tasks: o.tasks(nil)}
	order := map[*outcome]int{}
	for _, task := range b.tasks {
		for range 3 {
			task.outcomes = append(task.outcomes, &outcome{scene: task.scene})
			order[task.outcomes[len(task.outcomes)-1]] = len(order)
		}
		for i := range task.scene.judged {
			task.scene.judged[i].of = func(o *outcome) float64 { return []float64{-3.126, 0.04, 1234.5, 99.96}[(order[o]+i)%4] }
		}
	}
	d := b.document()
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	if err := d.CheckFigures(); err != nil {
		t.Error(err)
	}
	rows := 0
	for _, s := range d.Sections {
		for _, table := range s.Tables {
			for _, row := range table.Rows {
				if m := d.Measurements[rows]; !strings.HasPrefix(row[2], report.WithSpread(m.Runs)) {
					t.Errorf("%s: %q stands for %v", m.Name, row[2], m.Runs)
				}
				rows++
			}
		}
	}
	if rows < 50 || rows != len(d.Measurements) {
		t.Errorf("%d rows for %d measurements", rows, len(d.Measurements))
	}
}
