package resolve

import (
	"fmt"
	"strings"

	"weir/pf/ast"
	"weir/pf/diag"
)

// defaults returns the values in pf.conf(5), in seconds and states.
func defaults() Options {
	return Options{
		MaxStates:    100_000,
		MaxSources:   10_000,
		ImplicitPass: true,
		MarkMask:     DefaultMarkMask,
		Timeouts: Timeouts{
			TCPFirst: 120, TCPOpening: 30, TCPEstablished: 86400, TCPClosing: 900, TCPFinWait: 45, TCPClosed: 90,
			UDPFirst: 60, UDPSingle: 30, UDPMultiple: 60,
			ICMPFirst: 20, ICMPError: 10,
			OtherFirst: 60, OtherSingle: 30, OtherMultiple: 60,
			Frag: 60, Interval: 10, SrcTrack: 0, TCPTSDiff: 30,
		},
	}
}

// Reset gives pf's options their defaults, as pfctl -F Reset does. Those that only weir has
// stay, and so do those that rules have taken over.
func (o *Options) Reset() {
	d := defaults()
	d.adapt(true, true)
	o.Timeouts, o.MaxStates, o.MaxSources = d.Timeouts, d.MaxStates, d.MaxSources
	o.MaxTables, o.MaxTableEntries = d.MaxTables, d.MaxTableEntries
	o.Skip = nil
}

// adapt sets adaptive timeouts to their defaults, which depend on the limit of states.
func (o *Options) adapt(start, end bool) {
	limit := uint64(o.MaxStates)
	if start {
		o.Timeouts.AdaptiveStart = uint32(limit * 6 / 10)
	}
	if end {
		o.Timeouts.AdaptiveEnd = uint32(min(limit*12/10, 1<<32-1))
	}
}

// named returns the timeout with that name in pf.conf(5), or nil.
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

// optimizations are the timeouts of set optimization, in seconds, as in
// pf.conf(5).
var optimizations = map[string]Timeouts{
	"normal": {
		TCPFirst: 120, TCPOpening: 30, TCPEstablished: 86400, TCPClosing: 900,
		TCPFinWait: 45, TCPClosed: 90, TCPTSDiff: 30,
	},
	"satellite": {
		TCPFirst: 180, TCPOpening: 35, TCPEstablished: 86400, TCPClosing: 905,
		TCPFinWait: 50, TCPClosed: 95, TCPTSDiff: 60,
	},
	"conservative": {
		TCPFirst: 3600, TCPOpening: 900, TCPEstablished: 432000, TCPClosing: 3600,
		TCPFinWait: 600, TCPClosed: 180, TCPTSDiff: 60,
	},
	"aggressive": {
		TCPFirst: 30, TCPOpening: 5, TCPEstablished: 18000, TCPClosing: 60,
		TCPFinWait: 30, TCPClosed: 30, TCPTSDiff: 10,
	},
}

// optimization sets the timeouts of TCP. It replaces earlier values of set timeout, and
// later ones replace it.
func (r *resolver) optimization(name string) {
	switch name {
	case "default":
		name = "normal"
	case "high-latency":
		name = "satellite"
	}
	from, to := optimizations[name], &r.options.Timeouts
	to.TCPFirst, to.TCPOpening, to.TCPEstablished = from.TCPFirst, from.TCPOpening, from.TCPEstablished
	to.TCPClosing, to.TCPFinWait, to.TCPClosed = from.TCPClosing, from.TCPFinWait, from.TCPClosed
	to.TCPTSDiff = from.TCPTSDiff
}

func (r *resolver) timeout(s *ast.Timeout) {
	for _, item := range s.Items {
		switch name := item.Name.Text; {
		case strings.HasPrefix(name, "sctp."):
			r.withoutEffect(item.Name.Span, sctpTimeouts)
			continue
		case name == "adaptive.start", name == "adaptive.end":
			r.adaptive[name] = item
		}
		if target := r.options.Timeouts.named(item.Name.Text); target != nil {
			*target = item.Count
		}
	}
}

// checkAdaptive fills in the adaptive timeouts that are not set: as in pf, 60
// and 120 per cent of the limit of states. As in pf, an end that is not above the start turns
// them off.
func (r *resolver) checkAdaptive() {
	t := &r.options.Timeouts
	start, startSet := r.adaptive["adaptive.start"]
	end, endSet := r.adaptive["adaptive.end"]
	if startSet && endSet && t.AdaptiveStart == 0 && t.AdaptiveEnd == 0 {
		return
	}
	r.options.adapt(!startSet, !endSet)
	if t.AdaptiveStart < t.AdaptiveEnd || !startSet && !endSet {
		return
	}
	at, other := end, start
	if !endSet {
		at, other = start, end
	}
	d := diag.Diagnostic{
		Severity: diag.Warning, Span: at.Name.Span.To(at.Value.Span),
		Message: fmt.Sprintf("timeouts do not adapt: adaptive.end (%d) is not greater than adaptive.start (%d)", t.AdaptiveEnd, t.AdaptiveStart),
	}
	if startSet && endSet {
		d.Related = []diag.Related{{Span: other.Name.Span.To(other.Value.Span)}}
	}
	r.faults.Add(d)
	t.AdaptiveStart, t.AdaptiveEnd = 0, 0
}
