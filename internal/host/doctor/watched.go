package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Watched holds what programs in the kernel counted, in all network namespaces. They stop
// by themselves: the span is the wished one, however late doctor reads.
type Watched struct {
	Seconds    float64           `json:"seconds"`
	Cores      map[int]CoreWatch `json:"cores"`
	Runs       uint64            `json:"runs"`        // runs of the programs
	OwnSeconds float64           `json:"own_seconds"` // time that the programs took on all cores, without the cost of calling them
}

// CoreWatch is the count of one core.
type CoreWatch struct {
	Softirqs map[string]float64 `json:"softirqs"` // seconds, by the names of /proc/softirqs
	Received map[string]Polled  `json:"received"` // by interface; "backlog" is the stack's own queue, "other namespaces" is all interfaces outside this one
}

// Polled is how often a core polled an interface's queues (napi_poll), and what it took.
// With most drivers it includes frames that XDP keeps.
type Polled struct {
	Polls   uint64 `json:"polls"`
	Packets uint64 `json:"packets"`
}

// watched returns a core's line of the kernel's counts; "" if there are none.
func (v *view) watched(c *core) string {
	if v.Watched == nil || v.Watched.Seconds <= 0 {
		return ""
	}
	w, known := v.Watched.Cores[c.ID]
	if !known {
		return ""
	}
	const most = 3
	var parts []string
	spent := func(name string) float64 { return w.Softirqs[name] / v.Watched.Seconds }
	names := slices.SortedFunc(maps.Keys(w.Softirqs), func(a, b string) int {
		return cmp.Or(cmp.Compare(spent(b), spent(a)), strings.Compare(a, b))
	})
	for _, name := range names[:min(len(names), most)] {
		parts = append(parts, name+" "+percent(spent(name)))
	}
	text := fmt.Sprintf("%s, counted in the kernel: %s", c.name(), strings.Join(parts, ", "))
	parts = nil
	from := slices.SortedFunc(maps.Keys(w.Received), func(a, b string) int {
		return cmp.Or(cmp.Compare(w.Received[b].Packets, w.Received[a].Packets), strings.Compare(a, b))
	})
	for _, name := range from[:min(len(from), most)] {
		if p := w.Received[name]; p.Packets > 0 {
			parts = append(parts, name+" "+packetRate(p.Packets, v.Watched.Seconds))
		}
	}
	if len(parts) > 0 {
		text += "; it received " + strings.Join(parts, ", ")
	}
	return text
}
