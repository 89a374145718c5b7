package forward

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"weir/internal/bench/report"
	"weir/internal/bench/traffic"
	"weir/internal/textout"
)

// WriteText prints the report for people at a terminal.
func (r *Report) WriteText(w io.Writer) error {
	out := &textout.Lines{W: w}
	out.Line("%s", r.Machine)
	for _, c := range r.cases() {
		out.Line("")
		out.Line("%s", c)
		t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "  path\thook\t  Mpps\tspread\tns/frame\tnet ns\tnew/s\t")
		for _, row := range r.rowsOf(c) {
			fmt.Fprintf(t, "  %s\t%s\t%6s\t%5.1f %%\t%8s\t%6s\t%s\t\n", row.Path, row.Hook, report.Figure(row.Mpps.Median()),
				row.Mpps.Spread()*100, report.Figure(row.costs().Median()), figure(row.NetNS), figure(row.NewPerS))
		}
		out.Err = cmp.Or(out.Err, t.Flush())
		r.writeRatios(out, c)
	}
	r.writeScaling(out)
	out.Line("")
	for _, s := range r.Skipped {
		out.Line("skipped: %s: %s", s.Path, s.Reason)
	}
	for _, n := range r.Notes {
		out.Line("note: %s", n)
	}
	out.Line("%s", r.Control)
	out.Line("%s", caveat)
	return out.Err
}

// caveat is shown below every table.
const caveat = "A veth pair flatters XDP: frames move on without a socket buffer, which the kernel's paths have to allocate\n" +
	"and free. On network cards ratios are smaller. A flowtable, which not every kernel has, would be nftables' best case."

// writeRatios prints what the run proves, which is nothing if its control failed.
func (r *Report) writeRatios(out *textout.Lines, c traffic.Case) {
	if !r.Control.OK {
		return
	}
	for _, ratio := range r.Ratios {
		if ratio.Case != c {
			continue
		}
		text := fmt.Sprintf("  %s : %s = %.2f in frames%s", ratio.Of, ratio.To, ratio.Mpps, reached(ratio.Mpps, ratio.Floor))
		if ratio.NetNS != nil {
			text += fmt.Sprintf(", %.3f in net ns", *ratio.NetNS)
		}
		if ratio.NewPerS != nil {
			text += fmt.Sprintf(", %.*f in new connections%s", digits(ratio.NewFloor), *ratio.NewPerS, reached(*ratio.NewPerS, ratio.NewFloor))
		}
		if ratio.MoreNS != nil {
			text += fmt.Sprintf(", %+.1f ns a frame", *ratio.MoreNS)
		}
		why := doubt(ratio.Test)
		if why != "" {
			text += "; " + why
		}
		if more := doubt(ratio.NewTest); more != "" && more != why {
			text += "; in new connections " + more
		}
		out.Line("%s", text)
	}
}

// reached says whether a ratio reaches its floor, if it has one.
func reached(ratio float64, floor *float64) string {
	switch {
	case floor == nil:
		return ""
	case ratio < *floor:
		return fmt.Sprintf(" (floor %.2f: missed)", *floor)
	}
	return fmt.Sprintf(" (floor %.2f: holds)", *floor)
}

// digits returns how many digits a ratio with this floor has.
func digits(floor *float64) int {
	if floor != nil {
		return 2
	}
	return 1
}

// writeScaling prints what more cores bring, with the same reservation.
func (r *Report) writeScaling(out *textout.Lines) {
	if !r.Control.OK {
		return
	}
	var last traffic.Case
	for _, s := range r.Scaling {
		if s.Case != last {
			out.Line("")
			out.Line("%s, to %d", s.Case, s.Than)
			last = s.Case
		}
		text := fmt.Sprintf("  %s: %.2f times the frames", s.Path, s.Mpps)
		if why := doubt(s.Test); why != "" {
			text += "; " + why
		}
		out.Line("%s", text)
	}
}

// cases returns the measured cases in order. Rows of paths without an egress have another
// sink. The case is the one with the kernel's sink.
func (r *Report) cases() []traffic.Case {
	var found []traffic.Case
	for _, s := range r.sections {
		found = append(found, s.c)
	}
	return found
}

func (r *Report) rowsOf(c traffic.Case) []Row {
	for _, s := range r.sections {
		if s.c == c {
			return r.Rows[s.from:s.to]
		}
	}
	return nil
}
