package compare

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"weir/internal/bench/report"
	"weir/internal/bench/traffic"
	"weir/internal/host/hostinfo"
	"weir/internal/stats"
)

// Source is the part of a report that can be compared.
type Source struct {
	Name    string           `json:"name"` // file name
	Command string           `json:"command,omitempty"`
	Started time.Time        `json:"started,omitzero"`
	Machine hostinfo.Machine `json:"machine"`
	Sketch  bool             `json:"sketch,omitempty"`
	Control *stats.Control   `json:"control,omitempty"`

	measurements []report.Measurement
	rows         []row // rows of forward
}

// row is the result of "weir bench forward" for one path in one case.
type row struct {
	Path string `json:"path"`
	Hook string `json:"hook"`
	traffic.Case
	Mpps    stats.Sample `json:"mpps"`
	NewPerS stats.Sample `json:"new_per_s_runs"` // nil if none were opened
}

// Read reads a report of any subcommand of weir bench.
func Read(name string, r io.Reader) (*Source, error) {
	var file struct {
		Source
		Measurements []report.Measurement `json:"measurements"`
		Rows         []row                `json:"rows"`
	}
	if err := json.NewDecoder(r).Decode(&file); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: it is empty", name)
	} else if err != nil {
		return nil, fmt.Errorf("read %s: it is no report of weir bench: %w", name, err)
	}
	s := &file.Source
	s.Name, s.measurements, s.rows = name, file.Measurements, file.Rows
	if len(s.measurements) == 0 && len(s.rows) == 0 {
		return nil, fmt.Errorf("read %s: it has no measurements; --json of a command of weir bench writes them", name)
	}
	for _, m := range s.measurements {
		if m.Better != report.Higher && m.Better != report.Lower {
			return nil, fmt.Errorf("read %s: measurement %q: better is %q, want %s or %s", name, m.Name, m.Better, report.Higher, report.Lower)
		}
	}
	return s, nil
}

// ErrUntrusted means that a report proves nothing.
var ErrUntrusted = errors.New("its control failed")

// trusted returns an error if a report proves nothing.
func (s *Source) trusted() error {
	if s.Control != nil && !s.Control.OK {
		return fmt.Errorf("%s proves nothing: %w: %s", s.Name, ErrUntrusted, s.Control.Why)
	}
	return nil
}

// fromRows converts forward's rows to measurements, for reports without a list of
// measurements.
func (s *Source) fromRows() []report.Measurement {
	var all []report.Measurement
	for _, r := range s.rows {
		name := fmt.Sprintf("%s at %s, %s", r.Path, r.Hook, r.Case)
		all = append(all, report.Measurement{Name: name, Unit: "Mpps", Better: report.Higher, Runs: r.Mpps})
		if len(r.NewPerS) > 0 {
			all = append(all, report.Measurement{Name: name + ": new connections", Unit: "/s", Better: report.Higher, Runs: r.NewPerS})
		}
	}
	return all
}

// differences returns how two machines differ, or nothing if they agree in all that is
// known to matter.
func differences(a, b hostinfo.Machine) []string {
	var found []string
	for _, p := range []struct{ what, a, b string }{
		{"CPU", a.CPU, b.CPU},
		{"cores", fmt.Sprint(a.Cores), fmt.Sprint(b.Cores)},
		{"memory", fmt.Sprintf("%d MiB", a.Memory), fmt.Sprintf("%d MiB", b.Memory)},
		{"kernel", a.Kernel, b.Kernel},
		{"governor", a.Governor, b.Governor},
		{"mitigations", answers(a), answers(b)},
	} {
		if p.a != p.b {
			found = append(found, fmt.Sprintf("%s: %s / %s", p.what, cmp.Or(p.a, "none"), cmp.Or(p.b, "none")))
		}
	}
	return found
}

func answers(m hostinfo.Machine) string {
	var all []string
	for name, answer := range m.Mitigations {
		all = append(all, name+": "+answer)
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}
