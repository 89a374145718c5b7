package ast

import "weir/pf/token"

// PPPoE is an interface that a PPPoE session makes.
type PPPoE struct {
	token.Span
	Name     Word
	On       Word // the interface that carries the session
	User     *Word
	Password *Word // a file, or a variable of the daemon's environment
	FromEnv  bool  // Password is such a variable
	Service  *Word
	AC       *Word
	HostUniq *Word // in hexadecimal
	MTU      *Count
	Auth     []Word // how the password may be proven; none: in any way
	Family   Family // the only one to ask for; AnyFamily: both
	Priority *Count // PCP of the frames with control packets, on a VLAN
	Renew    *Word  // the time of day at which a new session is made: hours and minutes
	DNS      *Word  // who is told of the name servers: resolved
	NoRoute  bool   // no default route leads there
	NoMSS    bool   // max-mss is left to the rules
	Prefix   *Delegation
	NoPass   bool  // what Prefix needs is left to the rules
	Script   *Word // is run when the session comes and goes
}

// Delegation asks the provider for an IPv6 prefix, for the hosts of other interfaces.
type Delegation struct {
	token.Span
	Length *Count // of the prefix to ask for; nil: the provider chooses
	To     []DelegationLink
}

// DelegationLink is an interface that has a /64 of a prefix.
type DelegationLink struct {
	Word
	Subnet *Count // its number within the prefix; nil: the first that is free
}
