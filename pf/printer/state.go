package printer

import (
	"fmt"
	"strings"

	"weir/pf/ast"
)

// state prints a rule's state clause, if it has one.
func state(c *clauses, s *ast.State) {
	switch {
	case s == nil:
		return
	case !s.Keep:
		c.add("no state")
		return
	}
	c.add([...]string{
		ast.PlainState: "keep state", ast.ModulatedState: "modulate state", ast.SynproxyState: "synproxy state",
	}[s.Kind])
	if len(s.Options) > 0 {
		c.add("(" + stateOptions(s.Options) + ")")
	}
}

// stateOptions prints options separated by commas.
func stateOptions(options []ast.StateOption) string {
	texts := make([]string, len(options))
	for i := range options {
		texts[i] = stateOption(&options[i])
	}
	return strings.Join(texts, ", ")
}

func stateOption(o *ast.StateOption) string {
	switch o.Kind {
	case ast.StateTimeout:
		return fmt.Sprintf("%s %d", o.Name, o.N)
	case ast.StateMax, ast.StateMaxSrcStates, ast.StateMaxSrcConn, ast.StateMaxSrcNodes:
		return fmt.Sprintf("%s %d", o.Kind, o.N)
	case ast.StateMaxSrcConnRate:
		return fmt.Sprintf("%s %d/%d", o.Kind, o.N, o.Seconds)
	case ast.StateSourceTrack:
		return o.Kind.String() + [...]string{ast.TrackUnsaid: "", ast.TrackRule: " rule", ast.TrackGlobal: " global"}[o.Track]
	case ast.StateOverload:
		return "overload <" + word(o.Table) + ">" +
			[...]string{ast.FlushNone: "", ast.FlushRule: " flush", ast.FlushGlobal: " flush global"}[o.Flush]
	}
	return o.Kind.String()
}
