package view

import (
	"fmt"
	"io"

	"weir/internal/fw/shaper"
)

// PrintPf prints the queues as pfctl -s queue does, of one interface or of all, with the rates that
// the file says. verbose adds what they have counted.
func (q *Queues) PrintPf(w io.Writer, only string, verbose bool) error {
	for i := range q.Trees {
		t := &q.Trees[i]
		if only != "" && only != t.Interface {
			continue
		}
		for k := range t.Queues {
			if _, err := io.WriteString(w, t.Queues[k].pf(t, verbose)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (q *Queue) pf(t *QueueTree, verbose bool) string {
	where, bandwidth, limits := " parent "+q.Parent, pfSaid(&q.said.Bandwidth), ""
	if q.Level == 0 {
		where, bandwidth = " on "+t.Interface, pfRate(t.Rate)
		if t.In {
			where += " in"
		}
	}
	if q.Level > 0 {
		if q.said.Min.Bytes > 0 {
			limits = ", min " + pfSaid(&q.said.Min)
		}
		if q.said.Max.Bytes > 0 {
			limits += ", max " + pfSaid(&q.said.Max)
		}
	}
	line := "queue " + q.Name + where + " bandwidth " + bandwidth + limits
	if q.Default {
		line += " default"
	}
	line += "\n"
	if verbose {
		line += fmt.Sprintf("  [ pkts: %10d  bytes: %10d  dropped pkts: %6d bytes: %6d ]\n", q.Packets, q.Sent, q.Drops, q.Lost)
	}
	return line
}

// pfSaid writes a rate with its burst, as the file says it.
func pfSaid(r *shaper.Rate) string {
	text := pfRate(r.Bytes)
	if r.Percent > 0 {
		text = fmt.Sprintf("%d%%", r.Percent)
	}
	if r.For > 0 {
		text += fmt.Sprintf(" burst %s for %dms", pfRate(r.Burst), r.For.Milliseconds())
	}
	return text
}

// pfRate writes bytes per second as bits, in the largest unit that keeps the number whole, as pfctl does.
func pfRate(bytes uint64) string {
	bits, unit := bytes*8, 0
	for ; bits >= 1000 && bits%1000 == 0 && unit < 3; unit++ {
		bits /= 1000
	}
	if unit == 0 {
		return fmt.Sprint(bits)
	}
	return fmt.Sprintf("%d%c", bits, " KMG"[unit])
}
