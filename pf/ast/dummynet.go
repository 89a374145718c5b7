package ast

import "weir/pf/token"

// Dummynet is FreeBSD's dnpipe or dnqueue: the pipe or queue of dummynet for packets in
// the rule's direction, and then the one for the other direction.
type Dummynet struct {
	token.Span
	Queue   bool   // dnqueue
	Numbers []Word // one or two
}
