package ast

import "weir/pf/token"

// StateKind says what a rule does with the connections that it keeps state of.
type StateKind uint8

// Kinds of states.
const (
	PlainState     StateKind = iota // keep state
	ModulatedState                  // modulate state: TCP sequence numbers are made better
	SynproxyState                   // synproxy state: the handshake is made in the server's place
)

// State is "keep state", "modulate state", "synproxy state" or "no state".
type State struct {
	token.Span
	Keep    bool // false: no state
	Kind    StateKind
	Options []StateOption
}

// StateOptionKind says what a StateOption limits or does, in the order in which
// pfctl prints them.
type StateOptionKind uint8

// Kinds of options of states.
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
	StateTimeout                                // a timeout of N seconds, or states for adaptive ones
	stateOptionKindsLast = StateTimeout
)

var stateOptionNames = [stateOptionKindsLast + 1]string{
	"max", "no-sync", "source-track", "max-src-states", "max-src-conn", "max-src-conn-rate", "max-src-nodes",
	"overload", "if-bound", "floating", "sloppy", "pflow", "allow-related", "timeout",
}

// String is the word that the option starts with; "timeout" for timeouts.
func (k StateOptionKind) String() string { return stateOptionNames[k] }

// StateOption is one option of a state, or of set state-defaults. Fields that
// its kind does not have are zero.
type StateOption struct {
	token.Span
	Kind    StateOptionKind
	Name    string // of a timeout
	N       uint32
	Seconds uint32
	Track   Track
	Table   string
	Flush   Flush
}

// Track says for which rules together source addresses are counted.
type Track uint8

// Extents of source tracking.
const (
	TrackUnsaid Track = iota // source-track alone
	TrackRule                // of this rule
	TrackGlobal              // of all rules with source-track global
)

// Flush says what becomes of the states of an address that is over a limit.
type Flush uint8

// Kinds of flushing.
const (
	FlushNone   Flush = iota
	FlushRule         // flush: those of the rule go
	FlushGlobal       // flush global: all go
)
