package ast

import (
	"time"

	"weir/pf/token"
)

// Dummynet is FreeBSD's dnpipe or dnqueue: the pipe or queue of dummynet for packets in
// the rule's direction, and then the one for the other direction.
type Dummynet struct {
	token.Span
	Queue   bool   // dnqueue
	Numbers []Word // one or two
	Name    string // of the queue that it becomes; resolve sets it
}

// PacketPipe is macOS's rule that gives single packets a pipe, or none.
type PacketPipe struct {
	Rule        // without options
	No     bool // no dummynet
	Queue  bool // queue instead of pipe
	Number Word // of the pipe or queue
}

// DummynetDef is the configuration of a pipe, a queue or a scheduler of dummynet, as
// dnctl(8) and ipfw(8) read it.
type DummynetDef struct {
	token.Span
	Kind   Word // pipe, queue or sched
	Number Word
	Words  []string // after config, as they were written

	Bandwidth *Bandwidth // bw; nil: not given
	Pipe      *Word      // of a queue or a scheduler: the number of its pipe
	Weight    uint8      // of a queue; 0: not given
	Slots     uint32     // queue: packets; 0: not given, or in bytes
	Mask      token.Span // of mask, if each address has a pipe or queue of its own
	Delay     token.Span // of delay, if there is one
	Loss      token.Span // of plr, likewise
	ECN       bool
	Interval  time.Duration // of CoDel; 0: not given
}
