package qos

import (
	"fmt"
	"math"
	"slices"

	"weir/internal/bench/report"
	"weir/internal/stats"
	"weir/internal/units"
)

// document turns the outcomes into a report.
func (b *bench) document() *report.Document {
	o := b.options
	d := &report.Document{Kind: "qos", Title: "Queues with real TCP", Command: o.Command, Version: o.Version,
		Sketch: o.Quick || o.Runs < report.LeastRuns, Method: b.method(), Skipped: b.skipped,
		Attachments: []report.Attachment{{Name: "queues.sh", Text: Script}}}
	b.addControl(d)
	for _, name := range Cases {
		b.addCase(d, name)
	}
	d.Notes = append(d.Notes,
		"Hosts and firewall share this machine's cores. At 1 Gbit/s the hosts may be the limit.",
		"What holds back the acknowledgements is a program on the same cores: a busy machine makes round trips longer than they should be.")
	return d
}

func (b *bench) method() []string {
	o := b.options
	m := []string{
		fmt.Sprintf("Every round does everything once, in random order, and starts the path anew; %s of %d seconds (three times as many at 1 Gbit/s and more). Figures are medians, with smallest and largest run.", units.Plural(o.Runs, "round"), o.Seconds),
		fmt.Sprintf("TCP is iperf3 %s, one process for each connection. Packets from the servers go through a delay line, so what is sent to them is held back nowhere. weir runs at the hook %s.", b.tool.Version, o.Hook),
		"A BPF program at the receiving host counts bytes as a line does, with 24 bytes for each frame's checksum, preamble and gap, in parts of 10 ms from the first data to their end. Windows of 250 ms and 10 s begin in each of these parts; Jain's index per 250 ms is the mean of windows that follow each other, after 2 s.",
		"TCP's loss is the share of segments that were sent again. Pings do not go through the delay line. Their grade is that of DSLReports: A+ below 5 ms beyond idle, A 30, B 60, C 200, D 400.",
		"Without queues (none) the same connections send at the same rate, by iperf3's own pace.",
		"Round-trips per minute are those of draft-ietf-ippm-responsiveness (06), as weir bench ladder measures them: up to 16 HTTP/2 connections load the line; requests on new connections (TCP, TLS and HTTP, a third each) and on loaded ones are timed; the means without the longest 5 % are turned into round-trips per minute, and both are averaged. Intervals are a twentieth of the run. 0 means that no probe was answered.",
	}
	for _, path := range Paths {
		if leaf := b.leaf[path]; leaf != "" {
			m = append(m, fmt.Sprintf("Path %s keeps packets in %s.", path, leaf))
		}
	}
	return m
}

// addControl compares the two measurements of the first scene.
func (b *bench) addControl(d *report.Document) {
	control := stats.NewControl()
	again := b.tasks[len(b.tasks)-1]
	j := again.scene.judged[0]
	i := slices.IndexFunc(b.tasks, func(t *task) bool { return !t.control && t.scene == again.scene && t.path == again.path })
	control.Add(fmt.Sprintf("%s, %s, %s: %s", again.scene.of, again.scene.name, again.path, j.name), values(b.tasks[i], &j), values(again, &j))
	d.Control = &control
}

// values returns a figure of all runs of a task.
func values(t *task, j *judged) (s stats.Sample) {
	for _, o := range t.outcomes {
		s = append(s, j.of(o))
	}
	return s
}

// scenes are those of the tasks, in their order.
func (b *bench) scenes() (all []*scene) {
	for _, t := range b.tasks {
		if !slices.Contains(all, t.scene) {
			all = append(all, t.scene)
		}
	}
	return all
}

// addCase adds the section of a case.
func (b *bench) addCase(d *report.Document, name string) {
	section := report.Section{Title: titles[name]}
	for _, s := range b.scenes() {
		if s.of != name {
			continue
		}
		table := report.Table{Title: s.name, Columns: []report.Column{{Name: "path", Words: true}, {Name: "figure", Words: true}, {Name: "value"},
			{Name: "floor"}, {Name: "aim"}, {Name: "weir", Words: true, Concludes: true}}}
		of := slices.DeleteFunc(slices.Clone(b.tasks), func(t *task) bool {
			return t.control || t.scene.of != s.of || t.scene.name != s.name || len(t.outcomes) == 0
		})
		for _, j := range s.judged {
			for _, t := range of {
				b.addRow(d, &table, t, &j, of)
			}
		}
		if len(table.Rows) > 0 {
			section.Tables = append(section.Tables, table)
		}
		if chart, ok := overTime(s, of); ok {
			section.Charts = append(section.Charts, chart)
		}
	}
	d.Add(section)
}

var titles = map[string]string{CaseOne: "One CUBIC connection", CaseBBR: "One BBR connection", CaseMixed: "Different connections together",
	CaseFlood: "A sparse stream beside a flood", CaseWeights: "Weights and priority", CasePing: "What a ping waits", CaseECN: "Marks instead of loss",
	CaseRRUL: "Load in both directions", CaseRPM: "Round-trips per minute"}

func (b *bench) addRow(d *report.Document, table *report.Table, t *task, j *judged, others []*task) {
	runs := values(t, j)
	if j.beyond != "" {
		i := slices.IndexFunc(others, func(o *task) bool { return o.path == j.beyond })
		if i < 0 || t.path == j.beyond {
			return
		}
		without := values(others[i], j).Median()
		for k := range runs {
			runs[k] -= without
		}
	}
	if slices.ContainsFunc(runs, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
		d.Notes = append(d.Notes, fmt.Sprintf("%s, %s, %s: %s has no value in this run.", t.scene.of, t.scene.name, t.path, j.name))
		return
	}
	ours, verdict, floor, aim := t.path == PathWeir, "–", "–", "–"
	if ours {
		verdict, floor, aim = j.verdict(runs), j.limit(j.least), j.limit(j.aim)
	}
	value := report.WithSpread(runs)
	if j.unit != "" {
		value += " " + j.unit
	}
	if j.unit == "ms" && j.name == pingMedian.name {
		value += ", grade " + grade(runs.Median())
	}
	table.Add(ours, t.path, j.name, value, floor, aim, verdict)
	d.Measure(j.better, j.unit, runs, t.scene.of, slug(t.scene.name), t.path, slug(j.name))
	if verdict == missed {
		d.Verdicts = append(d.Verdicts, j.sentence(t.scene, runs))
	}
}

// overTime shows what arrived in each quarter of a second of the last run.
func overTime(s *scene, of []*task) (report.Chart, bool) {
	panel := report.Panel{Label: "arrived", Unit: "Mbit/s"}
	for _, t := range of {
		last := t.outcomes[len(t.outcomes)-1]
		if last.up == nil {
			continue
		}
		l := report.TimeLine{Name: t.path, Ours: t.path == PathWeir}
		for i, v := range last.up.all().parts(short) {
			l.Points = append(l.Points, report.Moment{Seconds: float64(i) * short.Seconds(), Value: v * 8 / short.Seconds() / 1e6})
		}
		panel.Series = append(panel.Series, l)
	}
	if len(panel.Series) == 0 {
		return report.Chart{}, false
	}
	return report.Chart{Title: "Over time: " + s.name, Times: &report.Times{Panels: []report.Panel{panel}},
		Note: "The last run of each path."}, true
}
