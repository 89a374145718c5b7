package stages

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/internal/bench/profile"
	"weir/internal/stats"
)

// Record is the cost of the stages at one commit.
type Record struct {
	Commit   string       `json:"commit"` // measured commit; + means with changes
	Recorded time.Time    `json:"recorded"`
	Command  string       `json:"command"`
	CPU      string       `json:"cpu"`
	Kernel   string       `json:"kernel"`
	Paths    []RecordPath `json:"paths"`
}

// RecordPath is one path of a record.
type RecordPath struct {
	Path   string             `json:"path"`
	Flows  int                `json:"flows"`
	NS     float64            `json:"ns"`     // ns of a frame, including the benchmark's own part
	Stages map[string]float64 `json:"stages"` // medians, ns of a frame
}

// errControl prevents figures that prove nothing from being recorded.
var errControl = errors.New("not recorded: the control failed")

// Record stores the report in dir/stages under its time and commit, and writes the table
// of all records again.
func (s *Report) Record(dir, commit string) error {
	if !s.report.Control.OK {
		return fmt.Errorf("%w: %s", errControl, s.report.Control.Why)
	}
	record := Record{Commit: commit, Recorded: s.report.Started, Command: s.report.Command, CPU: s.report.Machine.CPU,
		Kernel: s.report.Machine.Kernel}
	for _, p := range s.Paths {
		kept := RecordPath{Path: p.Path, Flows: p.Flows, NS: stats.Round(p.Total.Median()), Stages: map[string]float64{}}
		for _, stage := range everyStage() {
			if median := p.Stages[stage].Median(); median > 0 {
				kept.Stages[stage] = stats.Round(median)
			}
		}
		record.Paths = append(record.Paths, kept)
	}
	b, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return fmt.Errorf("record the stages: %w", err)
	}
	folder := filepath.Join(dir, "stages")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("record the stages: %w", err)
	}
	name := record.Recorded.Format("2006-01-02-150405") + "-" + strings.TrimSuffix(commit, "+") + ".json"
	if err := os.WriteFile(filepath.Join(folder, name), append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("record the stages: %w", err)
	}
	return WriteTable(dir)
}

// WriteTable makes dir/stages.md from the records in dir/stages.
func WriteTable(dir string) error {
	text, err := Table(dir)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "stages.md"), []byte(text), 0o644); err != nil {
		return fmt.Errorf("write the table of stages: %w", err)
	}
	return nil
}

// Table returns the table of the records in dir/stages, the newest first.
func Table(dir string) (string, error) {
	records, err := readRecords(filepath.Join(dir, "stages"))
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString("# What each stage of the packet path costs, by commit\n\n" +
		"Nanoseconds per frame of 64 bytes on one core; a row is a file of `stages/`, the newest first. Made by\n" +
		"`weir bench stages --record`; how it is measured and what it cannot say is in [measuring.md](../measuring.md).\n" +
		"Compare rows of the same CPU only.\n\n")
	text.WriteString("| commit | path | flows | " + strings.Join(profile.Stages, " | ") + " | all of weir | benchmark's own | CPU, kernel |\n")
	text.WriteString("|---|---|" + strings.Repeat("---|", len(profile.Stages)+4) + "\n")
	for _, r := range records {
		for _, p := range r.Paths {
			fmt.Fprintf(&text, "| %s (%s) | %s | %d |", r.Commit, r.Recorded.Format(time.DateOnly), p.Path, p.Flows)
			sum, harness := 0.0, 0.0
			for _, stage := range profile.Stages {
				sum += p.Stages[stage]
				fmt.Fprintf(&text, " %.1f |", p.Stages[stage])
			}
			for _, stage := range profile.Harness {
				harness += p.Stages[stage]
			}
			fmt.Fprintf(&text, " %.0f | %.0f | %s, %s |\n", sum, harness, r.CPU, r.Kernel)
		}
	}
	return text.String(), nil
}

func readRecords(dir string) ([]Record, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("find the records of stages: %w", err)
	}
	var all []Record
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a record of stages: %w", err)
		}
		var r Record
		if err := json.Unmarshal(b, &r); err != nil {
			return nil, fmt.Errorf("read the record of stages %s: %w", file, err)
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b Record) int { return b.Recorded.Compare(a.Recorded) })
	return all, nil
}
