package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersionCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version of weir and the Go it was built with",
		RunE:  func(*cobra.Command, []string) error { return printVersion(env) },
	}
}

func printVersion(env *Env) error {
	_, err := fmt.Fprintln(env.Stdout, version())
	return err
}

// release is the version that the Makefile sets. It is empty in other builds.
var release string

// version returns the release, or else the module's version or the commit, if the build
// knows them.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "weir (unknown build)"
	}
	if release != "" {
		return fmt.Sprintf("weir %s %s", release, info.GoVersion)
	}
	name := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			name = s.Value[:min(12, len(s.Value))]
		}
	}
	return fmt.Sprintf("weir %s %s", name, info.GoVersion)
}
