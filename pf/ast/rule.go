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

// Directions; AnyDirection stands in a rule that gives none.
const (
	AnyDirection Direction = iota
	In
	Out
)

// Family is an address family.
type Family uint8

// Families; AnyFamily stands in a rule that gives none.
const (
	AnyFamily Family = 0
	Inet      Family = 4
	Inet6     Family = 6
)

// String is the family's word in a rule; empty for none.
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

// Rule is a pass, block or match rule. A clause that is not there is nil or
// zero.
type Rule struct {
	token.Span
	Origin     token.Span // in an expanded rule: the list element that made it
	Action     Action
	Direction  Direction
	Quick      bool
	Family     Family
	Anchor     *Anchor // the rule is an anchor
	Return     *Return // of block; nil: as set block-policy says
	Log        *Log
	On         []Interface
	FamilySpan token.Span // of inet or inet6; invalid if it follows from an address
	Protos     []Proto
	From, To   Endpoint
	User       []Owner
	Group      []Owner
	Flags      *Flags
	ICMP       []ICMP
	State      *State
	AllowOpts  token.Span // of the word
	Label      *Word
	MoreLabels []Word // FreeBSD takes several
	Identifier *Word  // ridentifier of FreeBSD, tracker of pfSense: a number
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

// ReturnKind says how a block rule answers.
type ReturnKind uint8

// Kinds of answers.
const (
	Drop       ReturnKind = iota
	ReturnAll             // return: TCP by a reset, all else by an ICMP error
	ReturnRST             // return-rst: TCP only
	ReturnICMP            // return-icmp, return-icmp6: all by an ICMP error
)

// Return is what a block rule does with the sender of a packet.
type Return struct {
	token.Span
	Kind  ReturnKind
	TTL   uint8   // of return-rst; 0: not given
	Code  *Number // of the ICMP error "unreachable"; nil: not given
	Code6 *Number // of the ICMPv6 error
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

// AnyInterface is the name of all interfaces that are no loopback.
const AnyInterface = "any"

// Proto is one protocol of a "proto" clause.
type Proto struct {
	Word
	Number uint8 // known after resolving
}

// Endpoint is what "from" or "to" says.
type Endpoint struct {
	Hosts []Host // none: any
	Ports []Port
	OS    []Word // of "from" only: the sender's operating systems
}

// HostKind says how the text of a host is meant.
type HostKind uint8

// Kinds of hosts.
const (
	HostAny        HostKind = iota
	HostName                // an address, an interface, self or a host name, as written
	HostPrefix              // an address or network; HostName becomes this by resolving
	HostTable               // <Name>
	HostDynamic             // (Name)
	HostRange               // Name - LastName; by resolving, Prefix is the first address and Last the last
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
	Bits      int    // what stands behind the slash; -1 for nothing
	Prefix    netip.Prefix
	Zone      string     // the interface that a link-local address belongs to
	Via       string     // of a next hop as FreeBSD writes it, (Via host): the interface that leads to it
	LastName  string     // of a range as written
	Last      netip.Addr // of a range
}

// PortOp is an operator on ports.
type PortOp uint8

// Operators; AnyPort stands where no port is asked for.
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
	Low, High Number // High for the last three operators only
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
	Implied   bool // the default of rules that keep state, not written
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
