package ast

import "weir/pf/token"

// Timeout is set timeout.
type Timeout struct {
	token.Span
	Items []Setting
}

// Limit is set limit.
type Limit struct {
	token.Span
	Items []Setting
}

// Setting is a name with its number.
type Setting struct {
	Name  Word
	Value Word
	Count uint32 // Value as a number
}

// Option is a set statement with a name and at most one word: optimization,
// ruleset-optimization, state-policy, loginterface, debug, fingerprints, from FreeBSD
// require-order, fail-policy and keepcounters, and table-store and pfctl-may-open, which pf
// does not have.
type Option struct {
	token.Span
	Name, Value Word
}

// BlockPolicy is set block-policy.
type BlockPolicy struct {
	token.Span
	Policy Word
}

// ImplicitPass is set implicit-pass, which pf does not have.
type ImplicitPass struct {
	token.Span
	Yes bool
}

// MarkMask is set mark-mask, which pf does not have: weir's own bits of a packet's mark.
type MarkMask struct {
	token.Span
	Mask uint32
}

// Skip is set skip on.
type Skip struct {
	token.Span
	Interfaces []Interface
}

// InterfaceGroup is set interface-group, which pf does not have. There ifconfig adds an
// interface to a group.
type InterfaceGroup struct {
	token.Span
	Name       Word
	Interfaces []Interface
}

// Gateway is set gateway, which pf does not have: how a next hop of route-to and reply-to is
// watched.
type Gateway struct {
	token.Span
	Address Word
	Monitor Word // none, arp or ping
	Target  Word // of ping, if it is not the gateway
	Kill    bool // states that lead to it end when it is down
}

// PFlow is set pflow, which pf does not have: a collector that hears of the connections of
// rules with pflow. There ifconfig or pflowctl names it.
type PFlow struct {
	token.Span
	To      Word
	Port    Word
	Number  uint16 // of Port
	Source  Word   // the address that it is told from; empty: the kernel chooses
	Version Word   // 5, or 10 for IPFIX; empty: 5
}

// Spread is set spread, which pf does not have: whether the frames that come in by an interface are handed
// to other cores.
type Spread struct {
	token.Span
	Interface Word
	Mode      Word  // auto, off or cores
	Cores     []int // those that they may be handed to; empty: any
}

// HostID is set hostid.
type HostID struct {
	token.Span
	ID uint32
}

// Reassemble is set reassemble.
type Reassemble struct {
	token.Span
	Yes  bool
	NoDF token.Span // of the word no-df
}

// Syncookies is set syncookies.
type Syncookies struct {
	token.Span
	Mode      Word
	Marks     token.Span // of the list in parentheses
	High, Low uint8      // start and end, percent of the states; 0: not given
}

// StateDefaults is set state-defaults: the state options of rules without any.
type StateDefaults struct {
	token.Span
	Options []StateOption
}
