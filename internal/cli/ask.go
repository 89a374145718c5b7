package cli

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// asker returns a function that asks the user at the terminal. It returns nil if there is
// no terminal.
func (e *Env) asker() func(what string) bool {
	in, ok := e.Stdin.(*os.File)
	if !ok || !isTerminal(in) || !isTerminal(e.Stderr) {
		return nil
	}
	return func(what string) bool {
		fmt.Fprintf(e.Stderr, "weir: %s\nGo on? [y/N] ", what)
		answer, _ := bufio.NewReader(in).ReadString('\n')
		return strings.EqualFold(strings.TrimSpace(answer), "y")
	}
}
