package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/host/doctor"
)

// newAffinityCommand is "weir affinity".
func newAffinityCommand(env *Env) *cobra.Command {
	var asJSON bool
	var from string
	interval := time.Second
	c := &cobra.Command{
		Use:   "affinity",
		Short: "which core works for which queues, and which cores for each queue",
		Long: `affinity prints tables. The first has each core with its load, the receive
queues whose interrupts come to it, those that RPS spreads to it, and, of another
firewall, the instances that run on it. The second has each receive queue with its
interrupt, the cores that this may go to, those that it went to while affinity
watched, and its part of the interface's packets. Where there are PPPoE sessions, a
third has the device that each runs over, with the queue and the cores by which it
comes. It changes nothing; set and auto do, and revert puts back.`,
		Example: `  weir affinity
  weir affinity auto --confirm 60s
  weir affinity --from box.bundle --json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if interval < leastInterval || interval > longestInterval {
				return &UsageError{fmt.Errorf("affinity: --interval %s: from %s to %s", interval, leastInterval, longestInterval)}
			}
			read := func() (*doctor.Snapshot, error) { return env.snapshot(c.Context(), interval) }
			if from != "" {
				read = func() (*doctor.Snapshot, error) {
					return attended(c.Context(), func() (*doctor.Snapshot, error) { return env.readSnapshot(from) })
				}
			}
			s, err := read()
			if err != nil {
				return err
			}
			a := doctor.Affinities(s)
			if from != "" && len(a.Cores)+len(a.Queues) == 0 {
				return &UsageError{fmt.Errorf("%s: %w: it tells neither of cores nor of queues", from, doctor.ErrForeign)}
			}
			if asJSON {
				return env.printJSON(a)
			}
			return a.Print(env.Stdout)
		},
	}
	c.Flags().DurationVar(&interval, "interval", interval, "`time` to watch")
	c.Flags().StringVar(&from, "from", "", "read what a `file` of weir doctor --collect holds instead of this machine; -: standard input")
	jsonFlag(c, &asJSON)
	c.AddCommand(newAffinitySetCommand(env), newAffinityAutoCommand(env), newAffinityConfirmCommand(env), newAffinityRevertCommand(env))
	return c
}
