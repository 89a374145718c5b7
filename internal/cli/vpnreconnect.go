package cli

import (
	"github.com/spf13/cobra"

	"weir/internal/vpn/keeper"
)

func newVPNReconnectCommand(env *Env) *cobra.Command {
	var on string
	c := &cobra.Command{
		Use:   "reconnect PEER",
		Short: "agree on other keys with a peer of a WireGuard tunnel",
		Long: `reconnect begins a handshake with a peer, where it was last seen. With the kernel's WireGuard the handshake
comes with the next packet, and the keys of before are forgotten at once. Interface, addresses and routes
stay as they are, and so do other peers.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			folder, err := env.daemonFolder()
			if err != nil {
				return err
			}
			return keeper.Reconnect(c.Context(), folder, args[0], on)
		},
	}
	c.Flags().StringVar(&on, "on", "", "the tunnel's `interface`, if several have a peer of that name")
	return c
}
