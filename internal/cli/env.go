package cli

import "io"

// Env is what a command may touch besides its arguments.
type Env struct {
	Stdin  io.Reader
	Stdout io.Writer // data
	Stderr io.Writer // messages and errors
	Netns  string    // --netns as given; commands run inside it already
}
