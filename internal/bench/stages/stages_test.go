package stages

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/bench/forward"
	"weir/internal/bench/paths"
	"weir/internal/bench/profile"
	"weir/internal/stats"
	"weir/internal/testenv"
)

// example returns a report of two runs of one path.
func example() *Report {
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	stages := map[string]stats.Sample{}
	for _, stage := range everyStage() {
		stages[stage] = stats.Sample{0, 0}
	}
	stages[profile.Parse], stages[profile.NAT], stages[profile.Generator] = stats.Sample{20, 22}, stats.Sample{10, 12}, stats.Sample{70, 66}
	return &Report{report: &forward.Report{Command: "weir bench stages", Started: started, Control: stats.NewControl()},
		Paths: []PathStages{{Path: paths.WeirNAT, Flows: 1000, Total: stats.Sample{100, 100}, Stages: stages, Net: 40}}}
}

func TestStagesDocument(t *testing.T) {
	d := example().Document()
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	if err := d.CheckFigures(); err != nil {
		t.Error(err)
	}
	var names []string
	for _, m := range d.Measurements {
		names = append(names, m.Name)
	}
	want := []string{"stages: weir-nat, 1,000 flows: parse", "stages: weir-nat, 1,000 flows: NAT", "stages: weir-nat, 1,000 flows: all of weir"}
	if !cmp.Equal(names, want) {
		t.Errorf("%q", names)
	}
	if got := d.Measurements[2].Runs; !cmp.Equal(got, stats.Sample{30, 34}) {
		t.Errorf("all of weir: %v", got)
	}
}

func TestStagesRecord(t *testing.T) {
	dir := t.TempDir()
	s := example()
	if err := s.Record(dir, "abc1234+"); err != nil {
		t.Fatal(err)
	}
	s.report.Started = s.report.Started.AddDate(0, 0, 1)
	if err := s.Record(dir, "def5678"); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "stages.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	if !strings.Contains(text, "| abc1234+ (2026-01-02) | weir-nat | 1000 | 0.0 | 21.0 | 0.0 | 0.0 | 0.0 | 0.0 | 11.0 | 0.0 | 0.0 | 0.0 | 32 | 68 |") ||
		strings.Index(text, "def5678") > strings.Index(text, "abc1234") {
		t.Errorf("%s", text)
	}
	s.report.Control.Refuse("noise")
	if err := s.Record(dir, "bad"); err == nil {
		t.Error("a report whose control failed was recorded")
	}
}

// The committed table matches the committed records.
func TestStagesTableIsCurrent(t *testing.T) {
	const dir = "../../../docs/performance"
	want, err := Table(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "stages.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/performance/stages.md is old: weir bench stages --table (-file +records):\n%s", cmp.Diff(string(got), want))
	}
}

// A real run: samples are in every stage that a translated packet passes and in no other,
// and the shares add up to the whole frame. A run disturbed by other load is repeated.
func TestStages(t *testing.T) {
	testenv.NeedRoot(t)
	const most = 3
	for try := 1; ; try++ {
		s, err := Run(context.Background(), Options{Paths: []string{paths.Weir, paths.WeirNAT, paths.WeirQoS}, Flows: []int{200}, Runs: 1, Seconds: time.Second, name: "weir-test-stages", quick: true, Program: testenv.BuildWeir(t)})
		if err != nil {
			t.Fatal(err)
		}
		testenv.NothingLeft(t, "weir-test-stages")
		wrong := wrongStages(s)
		if len(wrong) == 0 {
			return
		}
		if try == most {
			t.Fatalf("%d tries: %s", most, strings.Join(wrong, "\n"))
		}
		t.Logf("try %d: %s", try, strings.Join(wrong, "\n"))
	}
}

func wrongStages(s *Report) (wrong []string) {
	for i := range s.Paths {
		p := &s.Paths[i]
		fail := func(format string, about ...any) {
			wrong = append(wrong, p.Path+": "+fmt.Sprintf(format, about...))
		}
		sum := 0.0
		for _, stage := range everyStage() {
			sum += p.Stages[stage].Median()
		}
		if total := p.Total.Median(); sum < 0.999*total || sum > 1.001*total {
			fail("the stages are %.1f ns of %.1f", sum, total)
		}
		for _, stage := range []string{profile.Parse, profile.LookUp, profile.Counters, profile.Redirect, profile.Transmit, profile.Generator} {
			if p.Stages[stage].Median() <= 0 {
				fail("no sample of %s, of %v", stage, p.Stages)
			}
		}
		if translated := p.Stages[profile.NAT].Median() > 0.005*p.own().Median(); translated != (p.Path == paths.WeirNAT) {
			fail("NAT %.1f ns", p.Stages[profile.NAT].Median())
		}
		// Where the verifier has removed the code of queues, the next instruction has the line of what it removed.
		if queues := p.Stages[profile.Queues].Median() > 0.03*p.own().Median(); queues != (p.Path == paths.WeirQoS) {
			fail("queues %.1f ns", p.Stages[profile.Queues].Median())
		}
		if miss := p.Stages[profile.Miss].Median(); miss > 0.05*p.own().Median() {
			fail("%.1f ns in programs that known connections do not meet", miss)
		}
	}
	return wrong
}

// The tables and the chart write a stage's time alike, whatever it is.
func TestFigures(t *testing.T) {
	s := example()
	p := &s.Paths[0]
	p.Stages[profile.Parse], p.Stages[profile.NAT], p.Stages[profile.Generator] = stats.Sample{0.04, 0.04}, stats.Sample{1234.5, 99.96}, stats.Sample{99.96, 1234.5}
	p.Total, p.Net = stats.Sample{2345.6, 2345.6}, -3.126
	d := s.Document()
	if err := d.CheckFigures(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(d.Verdicts[0], "it takes -3.13 ns more") {
		t.Errorf("%q", d.Verdicts[0])
	}
}
