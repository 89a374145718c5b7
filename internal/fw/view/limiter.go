package view

import (
	"fmt"

	"weir/internal/fw/dataplane"
	"weir/internal/textout"
)

// A Limiter is a limiter of the rules in force, or one that still counts states.
type Limiter struct {
	Kind     string  `json:"kind"` // state, source
	ID       uint8   `json:"id"`
	Name     string  `json:"name"`
	Limit    uint32  `json:"limit"` // states; of a source limiter those of one source. 0: the rules no longer define it
	States   uint32  `json:"states"`
	Entries  uint32  `json:"entries,omitempty"` // of a source limiter: the most sources
	Sources  uint32  `json:"sources,omitempty"`
	Admitted uint64  `json:"admitted"` // states
	Refused  Refused `json:"refused"`
}

// Refused counts packets that a limiter has refused.
type Refused struct {
	Limit   uint64 `json:"limit"`
	Rate    uint64 `json:"rate"`
	Entries uint64 `json:"entries,omitempty"`
}

func limitersOf(all []dataplane.Limiter) []Limiter {
	var shown []Limiter
	for i := range all {
		l := &all[i]
		kind := "state"
		if l.Source {
			kind = "source"
		}
		shown = append(shown, Limiter{
			Kind: kind, ID: l.ID, Name: l.Name, Limit: l.Limit, States: l.States, Entries: l.Entries, Sources: l.Sources,
			Admitted: l.Admitted, Refused: Refused{l.Full, l.Fast, l.Crowded},
		})
	}
	return shown
}

func (l *Limiter) print(p *textout.Lines) {
	limit := fmt.Sprintf("limit %d", l.Limit)
	if l.Limit == 0 {
		limit = "no longer defined"
	}
	text := fmt.Sprintf("states %d, admitted %d, refused %d by limit, %d by rate", l.States, l.Admitted, l.Refused.Limit, l.Refused.Rate)
	if l.Kind == "source" {
		text += fmt.Sprintf(", %d by entries; sources %d of %d", l.Refused.Entries, l.Sources, l.Entries)
	}
	p.Line("  %s limiter %s id %d: %s, %s", l.Kind, l.Name, l.ID, limit, text)
}
