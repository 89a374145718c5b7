package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/host/doctor"
)

// newAffinityCommand makes `weir affinity`.
func newAffinityCommand(env *Env) *cobra.Command {
	var from string
	interval := time.Second
	c := &cobra.Command{
		Use:   "affinity",
		Short: "show which core serves which queues",
		Long: `affinity prints tables. The first lists the cores with their load, the receive queues
whose interrupts they serve, the queues that RPS spreads to them, and, for another
firewall, the instances that run on them, and workers of tunnels (weir vpn affinity has
more of these). The second lists the receive queues with
their interrupts, the cores allowed for them, the cores that served them while affinity
watched, and their share of the interface's packets. If there are PPPoE sessions, a third
lists the device, queue and cores of each. affinity changes nothing; set and auto do, and
revert undoes it.`,
		Example: `  weir affinity
  weir affinity auto --confirm 60s
  weir affinity --from box.bundle --json`,
	}
	c.Flags().DurationVar(&interval, "interval", interval, "`time` to watch")
	c.Flags().StringVar(&from, "from", "", "read a `file` of weir doctor --collect instead of this machine; -: standard input")
	c.AddCommand(newAffinitySetCommand(env), newAffinityAutoCommand(env), newAffinityConfirmCommand(env), newAffinityRevertCommand(env))
	return printing(env, c, func(ctx context.Context, _ []string) (*doctor.Affinity, error) {
		if interval < leastInterval || interval > longestInterval {
			return nil, &UsageError{fmt.Errorf("affinity: --interval %s: want %s to %s", interval, leastInterval, longestInterval)}
		}
		read := func() (*doctor.Snapshot, error) { return env.snapshot(ctx, interval) }
		if from != "" {
			read = func() (*doctor.Snapshot, error) {
				return interruptible(ctx, func() (*doctor.Snapshot, error) { return env.readSnapshot(from) })
			}
		}
		s, err := read()
		if err != nil {
			return nil, err
		}
		a := doctor.Affinities(s)
		if from != "" && len(a.Cores)+len(a.Queues) == 0 {
			err = &UsageError{fmt.Errorf("%s: %w: it names neither cores nor queues", from, doctor.ErrForeign)}
		}
		return a, err
	}, func(a *doctor.Affinity) error { return a.Print(env.Stdout) })
}
