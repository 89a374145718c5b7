package ruleset

import (
	"fmt"

	"weir/pf/token"
)

// An Error says why rules cannot be compiled.
type Error struct {
	Rule int       // number of the rule that caused it
	Pos  token.Pos // of that rule
	Text string    // of that rule
	What string
}

func (e *Error) Error() string {
	return fmt.Sprintf("compile rule %d (%s): %s", e.Rule, e.Text, e.What)
}
