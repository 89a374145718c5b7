package resolve

import (
	"strings"

	"weir/pf/ast"
)

// Limits holds what the state options of a rule limit. 0 means that there is no limit.
type Limits struct {
	Max           uint32 // states of the rule
	Sources       uint32 // max-src-nodes
	SourceStates  uint32 // max-src-states: states of one source
	Connections   uint32 // max-src-conn: connections of one source
	Rate, Seconds uint32 // max-src-conn-rate: connections of one source in so many seconds
	Tracking      Tracking
	Overload      string // the table for sources that open too many connections; "": none
	Flush         ast.Flush
	Sloppy        bool     // TCP's sequence numbers are not tested
	Timeouts      Timeouts // of the rule's states and sources; 0: as for all
}

// Tracking is which rules count the states of a source together.
type Tracking uint8

// Kinds of tracking.
const (
	NoTracking  Tracking = iota
	TrackByRule          // each rule for itself
	TrackByAll           // all rules with this kind
)

// lowerLimits returns the limits in a rule's complete state options.
func lowerLimits(s *ast.State) Limits {
	var l Limits
	if s == nil {
		return l
	}
	for i := range s.Options {
		o := &s.Options[i]
		switch o.Kind {
		case ast.StateMax:
			l.Max = o.N
		case ast.StateMaxSrcNodes:
			l.Sources = o.N
		case ast.StateMaxSrcStates:
			l.SourceStates = o.N
		case ast.StateMaxSrcConn:
			l.Connections = o.N
		case ast.StateMaxSrcConnRate:
			l.Rate, l.Seconds = o.N, o.Seconds
		case ast.StateSourceTrack:
			l.Tracking = TrackByAll
			if o.Track == ast.TrackRule {
				l.Tracking = TrackByRule
			}
		case ast.StateOverload:
			l.Overload, l.Flush = o.Table, o.Flush
		case ast.StateSloppy:
			l.Sloppy = true
		case ast.StateTimeout:
			if target := l.Timeouts.named(o.Name); target != nil {
				*target = o.N
			}
		}
	}
	return l
}

// enforcedTimeout reports whether a rule's own timeout is enforced.
func enforcedTimeout(name string) bool { return !strings.HasPrefix(name, "sctp.") }
