package gate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"time"

	"weir/internal/bench/forward"
	"weir/internal/bench/paths"
	"weir/internal/stats"
)

// Ratio is how many frames one path forwards for each of another in the same
// run.
type Ratio struct {
	Of    string  `json:"of"`
	To    string  `json:"to"`
	Flows int     `json:"flows"`
	Mpps  float64 `json:"mpps"` // of the medians
}

// is tells that a run measured this ratio.
func (r Ratio) is(found forward.Ratio) bool {
	return found.Of == r.Of && found.To == r.To && found.Flows == r.Flows
}

// Name is "weir : redirect".
func (r Ratio) Name() string { return r.Of + " : " + r.To }

// Record are the ratios that hold on one kind of CPU.
type Record struct {
	CPU      string    `json:"cpu"`
	Kernel   string    `json:"kernel"`
	Recorded time.Time `json:"recorded"`
	Command  string    `json:"command"`
	Ratios   []Ratio   `json:"ratios"`
}

// File are the records of several machines.
type File struct {
	Records []Record `json:"records"`
}

// ReadFile reads records. The error is fs.ErrNotExist where there are none.
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

// Put replaces what was recorded for a CPU.
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

// For finds what a machine's ratios are compared with. Where its CPU has no
// record it is the one that lies lowest under the limit of its machine, weir :
// redirect, and same is false.
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

// limit is the ratio of weir to a bare redirect; infinite if it is not recorded.
func (r *Record) limit() float64 {
	for _, v := range r.Ratios {
		if v.Of == paths.Weir && v.To == paths.Redirect {
			return v.Mpps
		}
	}
	return math.Inf(1)
}

// recordOf makes a record of several runs: the median of each ratio.
func recordOf(runs []*forward.Report) Record {
	found := map[Ratio]stats.Sample{}
	var order []Ratio
	for _, run := range runs {
		for _, r := range run.Ratios {
			key := Ratio{Of: r.Of, To: r.To, Flows: r.Flows}
			if !watched(key) {
				continue
			}
			if found[key] == nil {
				order = append(order, key)
			}
			found[key] = append(found[key], r.Mpps)
		}
	}
	first := runs[0]
	record := Record{CPU: first.Machine.CPU, Kernel: first.Machine.Kernel, Recorded: first.Started, Command: "weir bench gate --record"}
	for _, key := range order {
		key.Mpps = stats.Round(found[key].Median())
		record.Ratios = append(record.Ratios, key)
	}
	return record
}
