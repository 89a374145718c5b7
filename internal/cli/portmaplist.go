package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/portmap"
)

func newPortmapListCommand(env *Env) *cobra.Command {
	var anchor, state string
	c := &cobra.Command{
		Use:   "list",
		Short: "print the ports that hosts have opened",
		Args:  exactly(0, "list takes only flags"),
	}
	c.Flags().StringVar(&anchor, "anchor", "portmap", "`path` of the server's anchor")
	c.Flags().StringVar(&state, "state", "", "the server's `file`, if it was given one")
	return printing(env, c, func(context.Context, []string) ([]portmap.Entry, error) {
		if state == "" {
			folder, err := env.folder()
			if err != nil {
				return nil, err
			}
			state = folder.Portmap(anchor)
		}
		return portmap.Entries(state)
	}, func(all []portmap.Entry) error {
		for i := range all {
			if err := printEntry(env, &all[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func printEntry(env *Env, e *portmap.Entry) error {
	for _, l := range e.Leases {
		ends := "until it is closed"
		if l.Seconds != nil {
			ends = "for " + (time.Duration(*l.Seconds) * time.Second).String()
		}
		description := ""
		if l.Description != "" {
			description = fmt.Sprintf("  %q", l.Description)
		}
		if _, err := fmt.Fprintf(env.Stdout, "%s %-5d -> %-21s %-7s %s%s\n", e.Protocol, e.Port, e.Host, l.By, ends, description); err != nil {
			return err
		}
	}
	return nil
}
