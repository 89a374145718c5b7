// Command manual writes the manual pages of weir's commands into a folder, one page for
// each, for make install. It is a separate program so that the formatter is not part of
// weir.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"weir/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manual FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "manual: %v\n", err)
		os.Exit(1)
	}
}

// write writes weir.8 and weir-COMMAND.8.
func write(folder string) error {
	root := cli.Commands()
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Title: "WEIR", Section: "8", Source: "weir", Manual: "weir"}
	if err := doc.GenManTree(root, header, folder); err != nil {
		return fmt.Errorf("write the manual pages into %s: %w", folder, err)
	}
	return nil
}
