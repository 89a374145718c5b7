package cli

import (
	"os"

	"github.com/spf13/cobra"

	"weir/internal/demo"
)

func newDemoCommand(env *Env) *cobra.Command {
	var quick bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "show a home gateway at work between two networks made for it, then measure it",
		Long: `demo builds a home gateway out of network namespaces, loads examples/gateway.conf
and uses it with ping, iperf3 and curl, under TCX and under XDP. Every line is a
check that can fail; the first that does ends the demo with status 1. Then it
measures weir beside nftables and the bare kernel. It needs root and leaves
nothing behind.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if os.Geteuid() != 0 {
				return errNotRoot
			}
			return demo.Run(c.Context(), demo.Options{Stdout: env.Stdout, Stderr: env.Stderr})
		},
	}
	c.Flags().BoolVar(&quick, "no-bench", false, "leave out the measurement")
	return c
}
