package view

import (
	"errors"
	"io/fs"
	"time"

	"weir/internal/fw/rundir"
)

// PfctlZero is what the counters were when pfctl -z or -F info was told to clear them. weir
// itself never clears a counter: others read them, too.
type PfctlZero struct {
	Rules map[uint32]RuleCounts `json:"rules,omitempty"` // by global id
	Info  *InfoCounts           `json:"info,omitempty"`
}

// RuleCounts is what a rule has counted.
type RuleCounts struct {
	Evaluations uint64 `json:"evaluations"`
	Packets     uint64 `json:"packets"`
	Bytes       uint64 `json:"bytes"`
	RuleCrossings
	StateCreations uint64 `json:"state_creations"`
}

// InfoCounts is what pfctl -s info shows.
type InfoCounts struct {
	Since    time.Time         `json:"since"`
	Searches uint64            `json:"searches"`
	Inserts  uint32            `json:"inserts"`
	Removals uint32            `json:"removals"`
	Counters map[string]uint64 `json:"counters"`
}

// ReadPfctlZero reads the record of a folder. Without one, nothing was cleared.
func ReadPfctlZero(f rundir.Folder) (*PfctlZero, error) {
	z := &PfctlZero{}
	if err := rundir.ReadJSON(f.PfctlZero(), z); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return z, nil
}

// SetRules records what rules have counted.
func (z *PfctlZero) SetRules(rules []Rule) {
	z.Rules = make(map[uint32]RuleCounts, len(rules))
	for i := range rules {
		r := &rules[i]
		z.Rules[r.id] = RuleCounts{r.Evaluations, r.Packets, r.Bytes, r.RuleCrossings, r.StateCreations}
	}
}

// Subtract takes from rules what they had counted before. The counters of a rule are in different
// maps, so each may have begun anew alone.
func (z *PfctlZero) Subtract(rules []Rule) {
	for i := range rules {
		r := &rules[i]
		was := z.Rules[r.id]
		r.Evaluations = later(r.Evaluations, was.Evaluations)
		r.Packets = later(r.Packets, was.Packets)
		r.Bytes = later(r.Bytes, was.Bytes)
		r.PacketsIn = later(r.PacketsIn, was.PacketsIn)
		r.BytesIn = later(r.BytesIn, was.BytesIn)
		r.PacketsOut = later(r.PacketsOut, was.PacketsOut)
		r.BytesOut = later(r.BytesOut, was.BytesOut)
		r.StateCreations = later(r.StateCreations, was.StateCreations)
	}
}
