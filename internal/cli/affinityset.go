package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/host/affinity"
	"weir/internal/host/doctor"
	"weir/internal/host/tune"
	"weir/internal/vpn/keeper"
)

// placing holds the flags of the commands that change affinities.
type placing struct {
	confirm          time.Duration
	dryRun, asJSON   bool
	keepQueues, auto bool
	interval         time.Duration
}

const confirmText = `The old values are written to a journal before any change. Each new value is read
back, and an error restores everything. weir affinity revert restores the values from
before the first change. Nothing is kept for the next boot.

With --confirm, the command waits. Unless weir affinity confirm comes from another
session in time, it restores everything. It also does so after a hangup, an interrupt
or a termination (after kill -9, run weir affinity revert). The exit status is 1 unless
the change was confirmed.`

func (p *placing) add(c *cobra.Command) {
	c.Flags().DurationVar(&p.confirm, "confirm", 0, "restore everything after this `time` unless weir affinity confirm comes")
	c.Flags().BoolVar(&p.dryRun, "dry-run", false, "print what would change and why, but change nothing")
	jsonFlag(c, &p.asJSON)
}

func (p *placing) check(c *cobra.Command) error {
	if c.Flags().Changed("confirm") && (p.confirm < time.Second || p.confirm > time.Hour) {
		return &UsageError{fmt.Errorf("affinity: --confirm %v: want 1s to 1h", p.confirm)}
	}
	if p.auto && (p.interval < leastInterval || p.interval > longestInterval) {
		return &UsageError{fmt.Errorf("affinity: --interval %s: want %s to %s", p.interval, leastInterval, longestInterval)}
	}
	return nil
}

// newAffinitySetCommand makes `weir affinity set`.
func newAffinitySetCommand(env *Env) *cobra.Command {
	var p placing
	c := &cobra.Command{
		Use:   "set WHAT=CORES...",
		Short: "assign cores to a queue, an interrupt or an interface",
		Long: `set assigns cores:

  eth1:3=2         cpu2 receives queue 3 of eth1: its interrupt goes there, or its
                   receiving thread (threaded NAPI)
  eth1=0-3         all queues of eth1 in turn, one core each
  irq41=2          an interrupt of a card
  eth1:0/rps=0-3   the stack spreads the flows of queue 0 over these cores (RPS);
                   none: over none
  eth1:0/xps=0     these cores send by queue 0 (XPS); none: any
  eth1/threaded=on eth1 receives in threads that the scheduler moves; or off
  eth1/queues=4    eth1 uses four queues; the link goes down for a moment
  wg0:1=3          worker 1 of a tunnel of weir vpn run, until the next boot; wg0=0-3:
                   its workers in turn, one core each

` + confirmText,
		Example: `  weir affinity set eth1:3=2 --confirm 60s
  weir affinity set wan0:0/rps=1-3`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, words []string) error {
			if err := p.check(c); err != nil {
				return err
			}
			return env.placeWords(c.Context(), &p, words)
		},
	}
	p.add(c)
	return c
}

func (e *Env) placeWords(ctx context.Context, p *placing, words []string) error {
	s, err := e.snapshot(ctx, leastInterval)
	if err != nil {
		return err
	}
	changes, err := affinity.Parse(words, s)
	if err != nil {
		return &UsageError{fmt.Errorf("affinity: %w", err)}
	}
	if p.dryRun {
		return e.printPlaced(changes, p.asJSON)
	}
	return e.carryOut(ctx, p, changes, nil)
}

// printPlaced prints changes.
func (e *Env) printPlaced(changes []tune.Change, asJSON bool) error {
	if asJSON {
		return e.printJSON(append([]tune.Change{}, changes...))
	}
	for i := range changes {
		fmt.Fprintf(e.Stdout, "%s = %s\n", changes[i].Key, cmp.Or(changes[i].To, "none"))
	}
	return nil
}

// newAffinityAutoCommand makes `weir affinity auto`.
func newAffinityAutoCommand(env *Env) *cobra.Command {
	p := placing{auto: true, interval: 2 * time.Second}
	c := &cobra.Command{
		Use:   "auto",
		Short: "assign queues to cores as doctor advises",
		Long: `auto watches the load (--interval) and then gives busy queues cores of their own: on
the card's NUMA node, one hyper-thread of each core, no isolated core. A card that
uses fewer queues than it has and than there are cores gets more queues. This takes
its link down for a moment; --keep-queues skips it. If a device has few queues for the
cores (a veth, PPPoE, an old card), the stack spreads its flows (RPS). If nobody has
chosen which cores send on which queue, each core gets its own (XPS). What is even
enough stays: a second auto changes nothing.

` + confirmText,
		Example: `  weir affinity auto --dry-run
  weir affinity auto --confirm 60s`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := p.check(c); err != nil {
				return err
			}
			return env.placeAll(c.Context(), &p)
		},
	}
	p.add(c)
	c.Flags().DurationVar(&p.interval, "interval", p.interval, "`time` to watch the load")
	c.Flags().BoolVar(&p.keepQueues, "keep-queues", false, "keep the number of queues, so no link goes down")
	return c
}

func (e *Env) placeAll(ctx context.Context, p *placing) error {
	s, err := e.snapshot(ctx, p.interval)
	if err != nil {
		return err
	}
	plan := doctor.PlanSpread(s, p.keepQueues)
	if p.dryRun {
		return e.printSpread(plan, s.IRQs, p.asJSON)
	}
	for _, note := range plan.Notes {
		fmt.Fprintln(e.Stderr, "weir: affinity:", note)
	}
	if len(plan.Queues) == 0 {
		return e.carryOut(ctx, p, affinity.Changes(plan.Places, s.IRQs), nil)
	}
	// If the queues change, so do load and interrupts.
	again := func() ([]tune.Change, error) {
		s, err := e.snapshot(ctx, p.interval)
		if err != nil {
			return nil, err
		}
		return affinity.Changes(doctor.PlanSpread(s, p.keepQueues).Places, s.IRQs), nil
	}
	return e.carryOut(ctx, p, affinity.Changes(plan.Queues, s.IRQs), again)
}

// printSpread prints a plan with its reasons.
func (e *Env) printSpread(plan *doctor.Spread, irqs []doctor.IRQ, asJSON bool) error {
	if asJSON {
		return e.printJSON(plan)
	}
	for _, c := range affinity.Changes(slices.Concat(plan.Queues, plan.Places), irqs) {
		fmt.Fprintf(e.Stdout, "%s: %s → %s: %s\n", c.Key, cmp.Or(c.From, "none"), cmp.Or(c.To, "none"), c.Why)
	}
	if len(plan.Queues) > 0 {
		fmt.Fprintln(e.Stdout, "the settings of the new queues are planned when these exist")
	}
	if len(plan.Queues)+len(plan.Places) == 0 {
		fmt.Fprintln(e.Stdout, "nothing to change")
	}
	for _, note := range plan.Notes {
		fmt.Fprintln(e.Stdout, "note:", note)
	}
	return nil
}

// carryOut makes the changes and prints them. again is as in tune's PlanOf.
func (e *Env) carryOut(ctx context.Context, p *placing, changes []tune.Change, again func() ([]tune.Change, error)) error {
	return e.onAffinities(ctx, func(h *tune.Host) error {
		plan, err := h.PlanOf(changes, again)
		if errors.Is(err, fs.ErrNotExist) {
			return &UsageError{err}
		}
		if err != nil {
			return err
		}
		if err := e.makeChanges(ctx, "affinity", h, plan, p.confirm); err != nil {
			return err
		}
		if len(plan.Changes) == 0 && !p.asJSON {
			fmt.Fprintln(e.Stdout, "nothing to change")
		}
		return e.printPlaced(plan.Changes, p.asJSON)
	})
}

// newAffinityConfirmCommand makes `weir affinity confirm`.
func newAffinityConfirmCommand(env *Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "confirm",
		Short: "keep the changes of weir affinity set or auto --confirm",
		RunE: func(c *cobra.Command, _ []string) error {
			return env.onAffinities(c.Context(), func(h *tune.Host) error {
				kept, err := h.Confirm()
				if asJSON && kept != nil {
					err = errors.Join(env.printJSON(kept), err)
				}
				return err
			})
		},
	}
	jsonFlag(c, &asJSON)
	return c
}

// newAffinityRevertCommand makes `weir affinity revert`.
func newAffinityRevertCommand(env *Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "revert",
		Short: "undo all changes of weir affinity",
		Long: `revert restores the value of each setting from before weir's first change. It skips
queues and devices that are gone. A card that is down may hide its interrupts and
threads: then these stay in the journal for another revert, and this one fails.`,
		RunE: func(c *cobra.Command, _ []string) error {
			return env.onAffinities(c.Context(), func(h *tune.Host) error {
				restored, err := h.Revert(true)
				restored = slices.DeleteFunc(restored, func(r tune.Restored) bool { return r.Same })
				if asJSON {
					return errors.Join(env.printJSON(append([]tune.Restored{}, restored...)), err)
				}
				for _, r := range restored {
					r.To = cmp.Or(r.To, "none")
					env.printRestored(r)
				}
				if err == nil && len(restored) == 0 {
					fmt.Fprintln(env.Stdout, "there is nothing to undo")
				}
				return err
			})
		},
	}
	jsonFlag(c, &asJSON)
	return c
}

func (e *Env) onAffinities(ctx context.Context, do func(*tune.Host) error) error {
	if err := needRoot(); err != nil {
		return err
	}
	folder, err := e.folder()
	if err != nil {
		return err
	}
	h, err := affinity.Open()
	if err != nil {
		return fmt.Errorf("affinity: %w", err)
	}
	h.Workers = keeper.Placer{Context: context.WithoutCancel(ctx), Folder: folder} // what is put back, too, when ctx ends
	if err := errors.Join(do(h), h.Close()); err != nil {
		return fmt.Errorf("affinity: %w", err)
	}
	return nil
}
