package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"time"

	"weir/internal/bench/forward"
	"weir/internal/bench/paths"
	"weir/internal/bench/report"
	"weir/internal/stats"
	"weir/internal/units"
)

// Ratio is the number of frames that one path forwards for each frame of another in the
// same run.
type Ratio struct {
	Of    string  `json:"of"`
	To    string  `json:"to"`
	Flows int     `json:"flows"`
	Mpps  float64 `json:"mpps"` // ratio of the medians
}

// name returns "weir : redirect at 1,000 flows".
func (r Ratio) name() string {
	return fmt.Sprintf("%s : %s at %s flows", r.Of, r.To, units.Thousands(r.Flows))
}

func (r Ratio) measurement() report.Measurement {
	return report.Measurement{Name: fmt.Sprintf("gate: %s : %s, %d connections", r.Of, r.To, r.Flows), Unit: "times",
		Better: report.Higher, Runs: stats.Sample{r.Mpps}}
}

// Record has the ratios of one kind of CPU.
type Record struct {
	CPU      string    `json:"cpu"`
	Kernel   string    `json:"kernel"`
	Recorded time.Time `json:"recorded"`
	Command  string    `json:"command"`
	Ratios   []Ratio   `json:"ratios"`
}

// File has the records of several machines.
type File struct {
	Records []Record `json:"records"`
}

// ReadFile reads records. Its error is fs.ErrNotExist if there are none.
func ReadFile(name string) (*File, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the recorded ratios: %w", err)
	}
	var f File
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("read the recorded ratios of %s: %w", name, err)
	}
	for _, r := range f.Records {
		if len(r.Ratios) == 0 || slices.ContainsFunc(r.Ratios, func(r Ratio) bool { return !(r.Mpps > 0) }) {
			return nil, fmt.Errorf("read the recorded ratios of %s: those of %q are none, or not above 0", name, r.CPU)
		}
	}
	if len(f.Records) == 0 {
		return nil, fmt.Errorf("read the recorded ratios of %s: %w", name, fs.ErrNotExist)
	}
	return &f, nil
}

// Put replaces the record of a CPU.
func (f *File) Put(r Record) {
	i := slices.IndexFunc(f.Records, func(old Record) bool { return old.CPU == r.CPU })
	if i < 0 {
		f.Records = append(f.Records, r)
		return
	}
	f.Records[i] = r
}

// Write writes the records for people to commit.
func (f *File) Write(name string) error {
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("write the recorded ratios: %w", err)
	}
	if err := os.WriteFile(name, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the recorded ratios: %w", err)
	}
	return nil
}

// For returns the record to compare a machine with. If its CPU has no record, it returns
// the record with the lowest weir : redirect, and same is false.
func (f *File) For(cpu string) (r Record, same bool) {
	for _, r := range f.Records {
		if r.CPU == cpu {
			return r, true
		}
	}
	return slices.MinFunc(f.Records, func(a, b Record) int {
		return cmp.Compare(a.limit(), b.limit())
	}), false
}

// limit returns the ratio of weir to a bare redirect, or infinity if it is not recorded.
func (r *Record) limit() float64 {
	for _, v := range r.Ratios {
		if v.Of == paths.Weir && v.To == paths.Redirect {
			return v.Mpps
		}
	}
	return math.Inf(1)
}

func (r *Record) measurements() (all []report.Measurement) {
	for _, v := range r.Ratios {
		all = append(all, v.measurement())
	}
	return all
}

// errNoisy says that a machine is too restless for a record.
var errNoisy = errors.New("the control failed in too many runs: record on a quiet machine")

// Measure makes a record of this machine from the medians of three runs.
func Measure(ctx context.Context, progress io.Writer) (Record, error) {
	return record(ctx, runs(progress))
}

func record(ctx context.Context, run one) (r Record, err error) {
	var good []*forward.Report
	for range attempts {
		found, err := run(ctx)
		if err != nil {
			return r, err
		}
		if found.Control.OK {
			good = append(good, found)
		}
		if len(good) == needed {
			break
		}
	}
	if len(good) < needed {
		return r, errNoisy
	}
	first, values := good[0], measured(good...)
	r = Record{CPU: first.Machine.CPU, Kernel: first.Machine.Kernel, Recorded: first.Started, Command: "weir bench gate --record"}
	for _, v := range first.Ratios {
		if !watched(v.Of, v.To) {
			continue
		}
		kept := Ratio{v.Of, v.To, v.Flows, v.Mpps}
		i := slices.IndexFunc(values, func(m report.Measurement) bool { return m.Name == kept.measurement().Name })
		kept.Mpps = stats.Round(values[i].Runs.Median())
		r.Ratios = append(r.Ratios, kept)
	}
	if len(r.Ratios) != 2 {
		return r, fmt.Errorf("record: %d of 2 ratios could be measured: is nft here?", len(r.Ratios))
	}
	return r, nil
}
