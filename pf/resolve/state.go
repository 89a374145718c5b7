package resolve

import (
	"cmp"
	"slices"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// state returns a rule's complete state options: its own, those of set state-defaults and
// set state-policy, and those that follow from others. It returns nil if pfctl prints
// nothing: for pass rules that keep state without options, and for other rules that keep
// none.
func (r *resolver) state(in *ast.Rule) *ast.State {
	switch {
	case in.State != nil && !in.State.Keep:
		if in.Action != ast.Pass {
			return nil // this is the default anyway
		}
		return in.State
	case in.Action != ast.Pass:
		return nil
	}
	out := &ast.State{Span: in.Span, Keep: true, Options: r.stateDefaults}
	if in.State != nil {
		*out = *in.State
	}
	r.unenforcedState(in)
	r.checkSynproxy(in)
	out.Options = r.stateOptions(out.Options)
	if out.Kind == ast.PlainState && len(out.Options) == 0 {
		return nil
	}
	return out
}

// plainState drops modulate state and synproxy state if the protocol is not TCP, because
// only TCP has sequence numbers and handshakes.
func plainState(s *ast.State) *ast.State {
	if s == nil || s.Kind == ast.PlainState {
		return s
	}
	plain := *s
	plain.Kind = ast.PlainState
	if len(plain.Options) == 0 {
		return nil
	}
	return &plain
}

// unenforcedState reports what is not enforced of the rule's state. For options of set
// state-defaults that is reported there.
func (r *resolver) unenforcedState(in *ast.Rule) {
	s := in.State
	if s == nil {
		return
	}
	switch {
	case s.Kind == ast.ModulatedState:
		r.faults.Warnf(s.Span, "modulate state is keep state here: sequence numbers stay as their end has chosen them, which is at random in all present systems (RFC 6528)")
	case s.Kind == ast.SynproxyState && in.Direction != ast.Out:
		r.faults.Warnf(s.Span, "synproxy state is keep state here: the server does the handshake itself")
	}
	r.unenforcedOptions(s.Options)
}

// unenforcedOptions reports which state options are not enforced. No state is sent to
// other machines.
func (r *resolver) unenforcedOptions(options []ast.StateOption) {
	for i := range options {
		switch o := &options[i]; o.Kind {
		case ast.StateFloating, ast.StateNoSync, ast.StateMax, ast.StateSourceTrack, ast.StateMaxSrcStates,
			ast.StateMaxSrcConn, ast.StateMaxSrcConnRate, ast.StateMaxSrcNodes, ast.StateOverload, ast.StateSloppy, ast.StateIfBound:
		case ast.StateTimeout:
			if !enforcedTimeout(o.Name) {
				r.withoutEffect(o.Span, sctpTimeouts)
			}
		case ast.StatePflow:
			if !r.pflowAt.IsValid() {
				r.pflowAt = o.Span
			}
		case ast.StateAllowRelated:
			r.withoutEffect(o.Span, "allow-related has no effect: the other addresses of an SCTP association need rules of their own")
		default:
			r.faults.Unenforced(o.Span, "state option "+o.Kind.String())
		}
	}
}

// sctpTimeouts is the warning about FreeBSD's timeouts of SCTP.
const sctpTimeouts = "sctp.* has no effect: states of SCTP have the timeouts other"

// withoutEffect warns about something that is accepted and changes nothing here. Only the
// first of several such warnings is printed.
func (r *resolver) withoutEffect(at token.Span, message string) {
	r.faults.Add(diag.Diagnostic{Severity: diag.Warning, Span: at, Message: message, Kind: message})
}

// checkSynproxy checks what synproxy state and modulate state are combined with.
func (r *resolver) checkSynproxy(in *ast.Rule) {
	s := in.State
	if s == nil || s.Kind == ast.PlainState {
		return
	}
	if s.Kind == ast.SynproxyState && in.Direction != ast.In {
		r.faults.Warnf(s.Span, "synproxy state is for incoming packets; for outgoing ones it is keep state")
	}
	if sloppy := stateOption(s.Options, ast.StateSloppy); sloppy != nil {
		r.faults.Errorf(sloppy.Span, "sloppy is allowed only after keep state")
	}
}

func stateOption(options []ast.StateOption, kind ast.StateOptionKind) *ast.StateOption {
	i := slices.IndexFunc(options, func(o ast.StateOption) bool { return o.Kind == kind })
	if i < 0 {
		return nil
	}
	return &options[i]
}

// stateOptions checks options against each other. It returns them in pfctl's order and
// with pfctl's additions.
func (r *resolver) stateOptions(given []ast.StateOption) []ast.StateOption {
	r.checkOptions(given)
	out := slices.DeleteFunc(slices.Clone(given), func(o ast.StateOption) bool {
		return o.Kind == ast.StateFloating || o.Kind == ast.StateSourceTrack ||
			o.N == 0 && (o.Kind == ast.StateMax || o.Kind == ast.StateTimeout)
	})
	if track := sourceTrack(given); track != nil {
		out = append(out, *track)
	}
	if bound := stateOption(given, ast.StateIfBound) != nil; r.ifBound && !bound && stateOption(given, ast.StateFloating) == nil {
		out = append(out, ast.StateOption{Kind: ast.StateIfBound})
	} else if r.endsIfBound && !bound {
		out = append(out, ast.StateOption{Kind: ast.StateFloating})
	}
	out = adaptTimeouts(out)
	slices.SortStableFunc(out, func(a, b ast.StateOption) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(timeoutOrder(a.Name), timeoutOrder(b.Name)))
	})
	return out
}

// perRule are the limits that count each rule's sources separately.
var perRule = []ast.StateOptionKind{ast.StateMaxSrcNodes, ast.StateMaxSrcConn, ast.StateMaxSrcConnRate}

func (r *resolver) checkOptions(options []ast.StateOption) {
	track := stateOption(options, ast.StateSourceTrack)
	for _, kind := range perRule {
		o := stateOption(options, kind)
		if o != nil && track != nil && track.Track == ast.TrackGlobal {
			r.conflict(o.Span, kind.String()+" counts the sources of one rule, not of all", track.Span)
		}
	}
	overload := stateOption(options, ast.StateOverload)
	if overload != nil {
		r.resolve(&ast.Host{Span: overload.Span, Kind: ast.HostTable, Name: overload.Table}, ruleHost)
	}
	if overload != nil && stateOption(options, ast.StateMaxSrcConn) == nil && stateOption(options, ast.StateMaxSrcConnRate) == nil {
		r.faults.Errorf(overload.Span, "overload needs max-src-conn or max-src-conn-rate")
	}
}

// sourceTrack returns the extent of source tracking that the options imply, or nil.
func sourceTrack(options []ast.StateOption) *ast.StateOption {
	track := stateOption(options, ast.StateSourceTrack)
	if track == nil && stateOption(options, ast.StateMaxSrcStates) == nil && !slices.ContainsFunc(options, isPerRule) {
		return nil
	}
	out := ast.StateOption{Kind: ast.StateSourceTrack, Track: ast.TrackGlobal}
	if track != nil {
		out.Span = track.Span
	}
	if track != nil && track.Track == ast.TrackRule || slices.ContainsFunc(options, isPerRule) {
		out.Track = ast.TrackRule
	}
	return &out
}

func isPerRule(o ast.StateOption) bool { return slices.Contains(perRule, o.Kind) }

// adaptTimeouts adds the timeouts that follow from limits: adaptive ones from max, and
// from max-src-conn-rate how long sources are remembered.
func adaptTimeouts(options []ast.StateOption) []ast.StateOption {
	adaptive := func(o ast.StateOption) bool { return o.Name == "adaptive.start" || o.Name == "adaptive.end" }
	if most := stateOption(options, ast.StateMax); most != nil && !slices.ContainsFunc(options, adaptive) {
		for _, t := range []ast.StateOption{
			{Kind: ast.StateTimeout, Name: "adaptive.start", N: most.N / 10 * 6},
			{Kind: ast.StateTimeout, Name: "adaptive.end", N: uint32(min(uint64(most.N)/10*12, 1<<32-1))},
		} {
			if t.N > 0 {
				options = append(options, t)
			}
		}
	}
	rate := stateOption(options, ast.StateMaxSrcConnRate)
	if rate == nil {
		return options
	}
	i := slices.IndexFunc(options, func(o ast.StateOption) bool { return o.Name == "src.track" })
	switch {
	case i < 0:
		return append(options, ast.StateOption{Kind: ast.StateTimeout, Name: "src.track", N: rate.Seconds})
	case options[i].N < rate.Seconds:
		options[i].N = rate.Seconds
	}
	return options
}

// timeoutNames are the timeouts of states in pfctl's order.
var timeoutNames = []string{
	"tcp.first", "tcp.opening", "tcp.established", "tcp.closing", "tcp.finwait", "tcp.closed",
	"sctp.first", "sctp.opening", "sctp.established", "sctp.closing", "sctp.closed",
	"udp.first", "udp.single", "udp.multiple", "icmp.first", "icmp.error",
	"other.first", "other.single", "other.multiple", "adaptive.start", "adaptive.end", "src.track", "tcp.tsdiff",
}

func timeoutOrder(name string) int { return slices.Index(timeoutNames, name) }
