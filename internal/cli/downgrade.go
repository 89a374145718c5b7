package cli

import (
	"github.com/spf13/cobra"

	"weir/internal/fw/daemon"
)

func newDowngradeCommand(env *Env) *cobra.Command {
	var g daemon.Downgrade
	c := &cobra.Command{
		Use:   "downgrade",
		Short: "hand all connections over to an older version of weir",
		Long: `An older weir cannot read the states of this version: without help it would start
with none, and every connection would have to begin again.

downgrade keeps a copy of the states as an older version stores them, and waits.
Meanwhile, in another terminal, install the older weir and start it: weir run, or
systemctl restart weir. It takes over from this version as from any other daemon,
and downgrade ends. If you interrupt it before, nothing has changed. Leave "set limit
states" in the rule file as it is: with another limit, busy connections may break.

--layout names how the older version stores states. Without it, that is the last
version before this one with another layout.`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := env.runConfig()
			if err != nil {
				return err
			}
			cfg.Ask = env.asker()
			ctx, done := outlive(c.Context())
			defer done()
			return g.Run(ctx, cfg)
		},
	}
	c.Flags().Uint32Var(&g.Layout, "layout", 0, "`number` of the older version's layout; 0: the one before this version's")
	c.Flags().BoolVar(&g.LoseStates, "lose-states", false, "go on even if not all connections can be kept")
	return c
}
