package cli

import (
	"io"

	"weir/internal/netif"
)

// Env is what a command may touch besides its arguments.
type Env struct {
	Stdin  io.Reader
	Stdout io.Writer // data
	Stderr io.Writer // messages and errors
	Netns  string    // --netns as given; commands run inside it already
}

// enter joins the network namespace that --netns names.
func (e *Env) enter() error {
	if e.Netns == "" {
		return nil
	}
	path, err := netif.NamespacePath(e.Netns)
	if err != nil {
		return &UsageError{err}
	}
	return netif.Enter(path)
}
