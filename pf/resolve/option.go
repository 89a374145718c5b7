package resolve

import (
	"weir/pf/ast"
	"weir/pf/diag"
)

// MostStates is the largest limit of states: a packet's mark has 26 bits for the
// number of its state (docs/packet-path.md).
const MostStates = 1<<26 - 1

// defaults are the values in pf.conf(5), seconds and states.
func defaults() Options {
	return Options{
		MaxStates:    100_000,
		ImplicitPass: true,
		Timeouts: Timeouts{
			TCPFirst: 120, TCPOpening: 30, TCPEstablished: 86400, TCPClosing: 900, TCPFinWait: 45, TCPClosed: 90,
			UDPFirst: 60, UDPSingle: 30, UDPMultiple: 60,
			ICMPFirst: 20, ICMPError: 10,
			OtherFirst: 60, OtherSingle: 30, OtherMultiple: 60,
			Frag: 60, Interval: 10, SrcTrack: 0, TCPTSDiff: 30,
		},
	}
}

// named gives the timeout of that name in pf.conf(5), nil if there is none.
func (t *Timeouts) named(name string) *uint32 {
	switch name {
	case "tcp.first":
		return &t.TCPFirst
	case "tcp.opening":
		return &t.TCPOpening
	case "tcp.established":
		return &t.TCPEstablished
	case "tcp.closing":
		return &t.TCPClosing
	case "tcp.finwait":
		return &t.TCPFinWait
	case "tcp.closed":
		return &t.TCPClosed
	case "tcp.tsdiff":
		return &t.TCPTSDiff
	case "udp.first":
		return &t.UDPFirst
	case "udp.single":
		return &t.UDPSingle
	case "udp.multiple":
		return &t.UDPMultiple
	case "icmp.first":
		return &t.ICMPFirst
	case "icmp.error":
		return &t.ICMPError
	}
	return t.namedOther(name)
}

func (t *Timeouts) namedOther(name string) *uint32 {
	switch name {
	case "other.first":
		return &t.OtherFirst
	case "other.single":
		return &t.OtherSingle
	case "other.multiple":
		return &t.OtherMultiple
	case "frag":
		return &t.Frag
	case "interval":
		return &t.Interval
	case "src.track":
		return &t.SrcTrack
	case "adaptive.start":
		return &t.AdaptiveStart
	case "adaptive.end":
		return &t.AdaptiveEnd
	}
	return nil
}

func (r *resolver) timeout(s *ast.Timeout) {
	for _, item := range s.Items {
		if item.Name.Text == "adaptive.start" || item.Name.Text == "adaptive.end" {
			r.adaptive[item.Name.Text] = item
		}
		if target := r.options.Timeouts.named(item.Name.Text); target != nil {
			*target = item.Count
		}
	}
	r.out.Stmts = append(r.out.Stmts, s)
}

func (r *resolver) limit(s *ast.Limit) {
	for _, item := range s.Items {
		switch {
		case item.Count == 0:
			r.faults.Errorf(item.Value.Span, "the limit of %s must be 1 at least", item.Name.Text)
		case item.Count > MostStates:
			r.faults.Errorf(item.Value.Span, "the limit of %s must be %d at most", item.Name.Text, MostStates)
		}
		r.options.MaxStates = item.Count
	}
	r.out.Stmts = append(r.out.Stmts, s)
}

// checkAdaptive fills in the adaptive timeouts that are not set: as in pf, 60
// and 120 per cent of the limit of states.
func (r *resolver) checkAdaptive() {
	t := &r.options.Timeouts
	start, startSet := r.adaptive["adaptive.start"]
	end, endSet := r.adaptive["adaptive.end"]
	if startSet && endSet && t.AdaptiveStart == 0 && t.AdaptiveEnd == 0 {
		return
	}
	limit := uint64(r.options.MaxStates)
	if !startSet {
		t.AdaptiveStart = uint32(limit * 6 / 10)
	}
	if !endSet {
		t.AdaptiveEnd = uint32(min(limit*12/10, 1<<32-1))
	}
	if t.AdaptiveStart < t.AdaptiveEnd || !startSet && !endSet {
		return
	}
	at, other := end, start
	if !endSet {
		at, other = start, end
	}
	d := diag.Diagnostic{Span: at.Name.Span.To(at.Value.Span), Message: "adaptive.end must be greater than adaptive.start"}
	if startSet && endSet {
		d.Related = []diag.Related{{Span: other.Name.Span.To(other.Value.Span)}}
	}
	r.faults.Add(d)
}

func (r *resolver) skip(s *ast.Skip) {
	for _, i := range s.Interfaces {
		r.options.Skip = append(r.options.Skip, i.Name)
		r.known(ast.Word{Span: i.Span, Text: i.Name})
	}
	r.out.Stmts = append(r.out.Stmts, s)
}
