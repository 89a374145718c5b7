package ast

import "weir/pf/token"

// StateKind is how a rule treats the connections that it keeps state for.
type StateKind uint8

// Kinds of states.
const (
	PlainState     StateKind = iota // keep state
	ModulatedState                  // modulate state: TCP sequence numbers are made unpredictable
	SynproxyState                   // synproxy state: the firewall does the handshake in place of the server
)

// State is "keep state", "modulate state", "synproxy state" or "no state".
type State struct {
	token.Span
	Keep    bool // false: no state
	Kind    StateKind
	Options []StateOption
}

// StateOptionKind is what a StateOption limits or does, in pfctl's printing order.
type StateOptionKind uint8

// Kinds of state options.
const (
	StateMax             StateOptionKind = iota // max N
	StateNoSync                                 // no-sync
	StateSourceTrack                            // source-track, with Track
	StateMaxSrcStates                           // max-src-states N
	StateMaxSrcConn                             // max-src-conn N
	StateMaxSrcConnRate                         // max-src-conn-rate N/Seconds
	StateMaxSrcNodes                            // max-src-nodes N
	StateOverload                               // overload <Table>, with Flush
	StateIfBound                                // if-bound
	StateFloating                               // floating
	StateSloppy                                 // sloppy
	StatePflow                                  // pflow
	StateAllowRelated                           // allow-related, FreeBSD's
	StateTimeout                                // a timeout: N in seconds, or in states for adaptive ones
	stateOptionKindsLast = StateTimeout
)

var stateOptionNames = [stateOptionKindsLast + 1]string{
	"max", "no-sync", "source-track", "max-src-states", "max-src-conn", "max-src-conn-rate", "max-src-nodes",
	"overload", "if-bound", "floating", "sloppy", "pflow", "allow-related", "timeout",
}

// String returns the option's first word, or "timeout" for timeouts.
func (k StateOptionKind) String() string { return stateOptionNames[k] }

// StateOption is one option of a state, or of set state-defaults. Fields that its kind
// does not use are zero.
type StateOption struct {
	token.Span
	Kind    StateOptionKind
	Name    string // name of a timeout
	N       uint32
	Seconds uint32
	Track   Track
	Table   string
	Flush   Flush
}

// Track is the set of rules that count source addresses together.
type Track uint8

// Extents of source tracking.
const (
	TrackUnsaid Track = iota // source-track alone
	TrackRule                // this rule
	TrackGlobal              // all rules with source-track global
)

// Flush is what happens to the states of an address above a limit.
type Flush uint8

// Kinds of flushing.
const (
	FlushNone   Flush = iota
	FlushRule         // flush: remove the rule's states
	FlushGlobal       // flush global: remove all its states
)
