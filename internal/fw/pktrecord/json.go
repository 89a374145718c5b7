package pktrecord

import (
	"encoding/json"
	"fmt"
	"io"

	"weir/internal/fw/reason"
)

// form is a record as it is printed: with the packet in words, and without a verdict if
// there is none yet.
type form struct {
	*Record
	Verdict string         `json:"verdict,omitempty"`
	Reason  *reason.Reason `json:"reason,omitempty"`
	Packet  string         `json:"packet"`
}

// PrintJSON writes the record as JSON on one line.
func (r *Record) PrintJSON(w io.Writer) error {
	f := form{Record: r, Verdict: r.Verdict, Packet: Summary(r.Data, r.L3)}
	if r.Kind != Before {
		f.Reason = &r.Reason
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // rules contain many < and >
	if err := e.Encode(f); err != nil {
		return fmt.Errorf("print a record: %w", err)
	}
	return nil
}
