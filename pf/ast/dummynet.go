package ast

import "weir/pf/token"

// Dummynet is FreeBSD's dnpipe or dnqueue: the pipe or queue of dummynet that
// packets in the rule's direction go through, and then that of the others.
type Dummynet struct {
	token.Span
	Queue   bool   // dnqueue
	Numbers []Word // one or two
}
