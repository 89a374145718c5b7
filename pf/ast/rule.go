package ast

import (
	"net/netip"

	"weir/pf/token"
)

// Action is what a rule does with the packet: the first word of the rule.
type Action uint8

// The three actions of pf.
const (
	Pass Action = iota
	Block
	Match
)

// Direction is a packet's direction through an interface, as seen by the firewall.
type Direction uint8

// Directions. AnyDirection means that the rule gives none.
const (
	AnyDirection Direction = iota
	In
	Out
)

// Family is an address family.
type Family uint8

// Families. AnyFamily means that the rule gives none.
const (
	AnyFamily Family = 0
	Inet      Family = 4
	Inet6     Family = 6
)

// String returns the family's word in a rule, or "".
func (f Family) String() string {
	switch f {
	case Inet:
		return "inet"
	case Inet6:
		return "inet6"
	}
	return ""
}

// Of returns the family of an address.
func Of(a netip.Addr) Family {
	switch {
	case a.Is4():
		return Inet
	case a.Is6():
		return Inet6
	}
	return AnyFamily
}

// Rule is a pass, block or match rule. A missing clause is nil or zero.
type Rule struct {
	token.Span
	Origin     token.Span // in an expanded rule: the list element that made it
	Action     Action
	Direction  Direction
	Quick      bool
	Family     Family
	Anchor     *Anchor // the rule is an anchor
	Return     *Return // with block; nil: as in set block-policy
	Log        *Log
	On         []Interface
	FamilySpan token.Span // place of inet or inet6; invalid if it follows from an address
	Protos     []Proto
	From, To   Endpoint
	User       []Owner
	Group      []Owner
	Flags      *Flags
	ICMP       []ICMP
	State      *State
	AllowOpts  token.Span // of the word
	Label      *Word
	MoreLabels []Word // FreeBSD allows several
	Identifier *Word  // FreeBSD's ridentifier or pfSense's tracker: a number
	Dummynet   *Dummynet
	Tag        *Word
	Tagged     *Tagged
	Nat        *Pool
	Rdr        *Pool
	Binat      *Pool // expands to a rule with Nat and one with Rdr
	AfTo       *AfTo
	Route      *Route
	Filter
}

// ReturnKind is how a block rule answers.
type ReturnKind uint8

// Kinds of answers.
const (
	Drop       ReturnKind = iota
	ReturnAll             // return: a reset for TCP, an ICMP error for everything else
	ReturnRST             // return-rst: TCP only
	ReturnICMP            // return-icmp, return-icmp6: an ICMP error for everything
)

// Return is how a block rule answers the sender of a packet.
type Return struct {
	token.Span
	Kind  ReturnKind
	TTL   uint8   // TTL of return-rst; 0: not given
	Code  *Number // code of the ICMP error "unreachable"; nil: not given
	Code6 *Number // code of the ICMPv6 error
}

// Log is the "log" clause.
type Log struct {
	token.Span
	All     bool   // log (all)
	Matches bool   // log (matches)
	User    bool   // log (user)
	To      *Count // log (to pflogN); nil for pflog0
}

// Interface is one name of an "on" clause or of set skip on.
type Interface struct {
	token.Span
	Not     bool
	Name    string
	RDomain *Count // a routing domain instead of a name
}

// AnyInterface is the name for all interfaces except loopbacks.
const AnyInterface = "any"

// Proto is one protocol of a "proto" clause.
type Proto struct {
	Word
	Number uint8 // known after resolving
}

// Endpoint is the content of "from" or "to".
type Endpoint struct {
	Hosts []Host // none: any
	Ports []Port
	OS    []Word // only in "from": the sender's operating systems
}

// HostKind is the kind of a host's text.
type HostKind uint8

// Kinds of hosts.
const (
	HostAny        HostKind = iota
	HostName                // an address, interface, self or host name, as written
	HostPrefix              // an address or network; resolving turns HostName into this
	HostTable               // <Name>
	HostDynamic             // (Name)
	HostRange               // Name - LastName; resolving sets Prefix to the first address and Last to the last
	HostNoRoute             // no-route
	HostURPFFailed          // urpf-failed
	HostRouteLabel          // route "Name"
)

// Host is an address in a rule or a table.
type Host struct {
	token.Span
	Kind      HostKind
	Not       bool
	Network   bool   // :network
	Broadcast bool   // :broadcast
	Peer      bool   // :peer
	NoAlias   bool   // :0
	Weight    uint16 // its share of a pool; 0: not given
	Name      string // without modifiers
	Bits      int    // number after the slash; -1: none
	Prefix    netip.Prefix
	Zone      string     // interface of a link-local address
	Via       string     // interface of FreeBSD's next hop (Via host)
	LastName  string     // last name of a range as written
	Last      netip.Addr // last address of a range
}

// PortOp is an operator on ports.
type PortOp uint8

// Operators. AnyPort means no condition on the port.
const (
	AnyPort PortOp = iota
	PortEqual
	PortNotEqual
	PortLess
	PortLessEqual
	PortGreater
	PortGreaterEqual
	PortRange   // a:b, both included
	PortInside  // a >< b, both excluded
	PortOutside // a <> b: below a or above b
)

// Port is one condition of a "port" clause.
type Port struct {
	token.Span
	Op        PortOp
	Low, High Number // High only for the last three operators
}

// Number is a number that may be written as a name.
type Number struct {
	Word
	Value uint16 // known after resolving
}

// Flags is the "flags" clause; Mask 0 is "flags any".
type Flags struct {
	token.Span
	Set, Mask uint8
	Implied   bool // default of rules that keep state, not written
}

// ICMP is one element of an icmp-type or icmp6-type clause.
type ICMP struct {
	token.Span
	Family Family // Inet for icmp-type, Inet6 for icmp6-type
	Type   Number
	Code   *Number
}

// Tagged is "tagged" or "! tagged".
type Tagged struct {
	token.Span
	Not  bool
	Name Word
}
