package ast

import (
	"time"

	"weir/pf/token"
)

// Queue is the definition of a queue: OpenBSD's, or a queue of FreeBSD's ALTQ.
type Queue struct {
	token.Span
	Name       Word
	On         []Interface
	Direction  Direction // after on: In for what comes in there. AnyDirection: not given, which is Out for a root
	Parent     *Word
	Flows      uint16     // 0: not given
	Quantum    uint16     // bytes; 0: not given
	Bandwidth  *Bandwidth // nil: not given
	Min, Max   *Bandwidth
	Default    token.Span // of the word
	QueueLimit *uint16    // qlimit, packets
	Priority   *Count
	Own        OwnQueue

	ALTQ ALTQ // of FreeBSD's queues
}

// OwnQueue is what weir's queues have beyond pf's.
type OwnQueue struct {
	Fair     Fairness
	FairAt   token.Span // where it stands
	ECN      token.Span // of the word
	RTT      *Time
	Link     []Word // kinds of lines
	Overhead *Signed
	MPU      *Count
	Line     token.Span // of the first of link, overhead and mpu
	Engine   Engine
	Modem    token.Span // of the word: a modem with a queue of its own is behind the interface
	Held     token.Span // of the first of engine and modem
}

// Engine is what keeps a tree of queues within its rates.
type Engine uint8

// The engines.
const (
	EngineNotGiven Engine = iota
	EngineAuto            // weir chooses one of the others
	EnginePhantom         // counts what a queue would hold, and holds nothing
	EngineQueue           // the kernel's queues, which hold packets
)

// EngineWords are the words after engine.
var EngineWords = [...]string{EngineAuto: "auto", EnginePhantom: "phantom", EngineQueue: "queue"}

// Fairness is between whom a queue shares its packets.
type Fairness uint8

// The kinds of fairness.
const (
	FairNotGiven Fairness = iota
	FairHostFlow          // between hosts, then between a host's connections
	FairFlow              // between connections
	FairHost              // between hosts
)

// FairWords are the words after fair.
var FairWords = [...]string{FairHostFlow: "host-flow", FairFlow: "flow", FairHost: "host"}

// Time is a length of time.
type Time struct {
	token.Span
	For time.Duration
}

// Signed is a number that may be negative.
type Signed struct {
	token.Span
	N int32
}

// ALTQ is what FreeBSD's queues have besides bandwidth and qlimit. It is zero for
// OpenBSD's.
type ALTQ struct {
	Scheduler *Scheduler
	Bucket    *uint32 // tbrsize, bytes
	Queues    []Word  // queues that share this one
}

// Discipline is FreeBSD's altq on: how an interface's queues are scheduled. Its Name,
// Parent and similar fields are zero.
type Discipline struct {
	token.Span
	Queue Queue
}

// Scheduler is cbq, priq, hfsc, fairq or codel with its options.
type Scheduler struct {
	token.Span
	Name    Word
	Options []SchedulerOption
}

// SchedulerOption is a word and its values, which may be in parentheses.
type SchedulerOption struct {
	Name   Word
	Values []Word
	Listed bool // the values are in parentheses
}

// Bandwidth is a number of bits per second, or a share of the parent's.
type Bandwidth struct {
	token.Span
	Rate    uint64 // bits per second
	Percent uint8  // 0: Rate is used
	Burst   *Burst // nil: none
}

// Burst is the bandwidth for the first milliseconds of traffic.
type Burst struct {
	Rate uint64 // bits per second
	For  uint32 // milliseconds
}
