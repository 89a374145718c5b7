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
	Auth     []Word // how the password may be proven; none: by CHAP or PAP
	Family   Family // the only one to ask for; AnyFamily: both
	NoRoute  bool   // no default route leads there
	NoMSS    bool   // max-mss is left to the rules
	Script   *Word  // is run when the session comes and goes
}
