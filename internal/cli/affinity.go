package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/host/doctor"
)

// newAffinityCommand makes `weir affinity`.
func newAffinityCommand(env *Env) *cobra.Command {
	var asJSON bool
	var from string
	interval := time.Second
	c := &cobra.Command{
		Use:   "affinity",
		Short: "show which core serves which queues",
		Long: `affinity prints tables. The first lists the cores with their load, the receive queues
whose interrupts they serve, the queues that RPS spreads to them, and, for another
firewall, the instances that run on them. The second lists the receive queues with
their interrupts, the cores allowed for them, the cores that served them while affinity
watched, and their share of the interface's packets. If there are PPPoE sessions, a third
lists the device, queue and cores of each. affinity changes nothing; set and auto do, and
revert undoes it.`,
		Example: `  weir affinity
  weir affinity auto --confirm 60s
  weir affinity --from box.bundle --json`,
		RunE: func(c *cobra.Command, _ []string) error {
			if interval < leastInterval || interval > longestInterval {
				return &UsageError{fmt.Errorf("affinity: --interval %s: want %s to %s", interval, leastInterval, longestInterval)}
			}
			read := func() (*doctor.Snapshot, error) { return env.snapshot(c.Context(), interval) }
			if from != "" {
				read = func() (*doctor.Snapshot, error) {
					return interruptible(c.Context(), func() (*doctor.Snapshot, error) { return env.readSnapshot(from) })
				}
			}
			s, err := read()
			if err != nil {
				return err
			}
			a := doctor.Affinities(s)
			if from != "" && len(a.Cores)+len(a.Queues) == 0 {
				return &UsageError{fmt.Errorf("%s: %w: it names neither cores nor queues", from, doctor.ErrForeign)}
			}
			if asJSON {
				return env.printJSON(a)
			}
			return a.Print(env.Stdout)
		},
	}
	c.Flags().DurationVar(&interval, "interval", interval, "`time` to watch")
	c.Flags().StringVar(&from, "from", "", "read a `file` of weir doctor --collect instead of this machine; -: standard input")
	jsonFlag(c, &asJSON)
	c.AddCommand(newAffinitySetCommand(env), newAffinityAutoCommand(env), newAffinityConfirmCommand(env), newAffinityRevertCommand(env))
	return c
}
