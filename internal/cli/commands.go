package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Commands returns the tree of all commands for documentation. It is not meant to be run:
// it has no input, and its output is discarded.
func Commands() *cobra.Command {
	return newRootCommand(&Env{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard})
}
