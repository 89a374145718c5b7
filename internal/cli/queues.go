package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/fw/view"
)

// queuePause is the time over which the rates of queues are measured.
const queuePause = time.Second

func newQueuesCommand(env *Env) *cobra.Command {
	var follow, asJSON bool
	c := &cobra.Command{
		Use:   "queues",
		Short: "show the queues of the rules, with rates, drops and backlog",
		Long: `queues prints the queues of each interface and direction. Rates are measured for a second.
Bytes are those on the line, with what packets take beyond their headers.

Dropped packets are those for which their connection's queue had no room. Marked ones told
their receiver of congestion instead (ECN). The backlog is what connections have sent beyond
their share; no packet waits. Hosts and connections are those with a backlog.

-f prints again every second until it is interrupted.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return env.queues(c.Context(), follow, asJSON) },
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "print again every second until interrupted")
	jsonFlag(c, &asJSON)
	return c
}

func (e *Env) queues(ctx context.Context, follow, asJSON bool) error {
	r, err := e.reader()
	if err != nil {
		return err
	}
	defer r.Close()
	before, err := r.Queues()
	if err != nil {
		return err
	}
	if asJSON {
		return e.printJSON(before)
	}
	for {
		if len(before.Trees) > 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(queuePause):
			}
		}
		var now view.Queues
		if now, err = r.Queues(); err != nil {
			return err
		}
		if err := now.Print(e.Stdout, &before); err != nil || !follow {
			return err
		}
		before = now
	}
}
