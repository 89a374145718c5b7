package cli

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"weir/internal/host/tune"
)

// newTuneApplyCommand makes `weir tune apply`.
func newTuneApplyCommand(env *Env) *cobra.Command {
	var f tuneFlags
	var m measureFlags
	var confirm time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use:   "apply [KEY...]",
		Args:  cobra.ArbitraryArgs,
		Short: "make the changes of weir tune plan; weir tune revert undoes them",
		Long: `apply makes the changes that plan prints with the same flags and keys. It writes the
old values to a journal first and reads each new value back. An error restores
everything. The values are kept for the next boot: sysctls in
/etc/sysctl.d/90-weir-tune.conf, cards and cores in .link files of systemd and by the
unit weir-tune.service. A second apply changes nothing. Changing queues, rings or
pause frames takes a card's link down for some seconds.

With --confirm, apply waits. Unless weir tune confirm comes from another session in
time, it restores all values. It also does so after a hangup, an interrupt or a
termination (after kill -9, run weir tune revert). Unconfirmed values are not kept
for the boot. The exit status is 1 unless the change was confirmed.

With --measure, each change is measured alone, and kept only if it is proven at 95 %
to help. A short weir bench measures what a lab can show. The host's own counters,
under its own load, measure cards and cores: packets per CPU time, and losses. Each
round has the old value, the old value again as a control, and the new one, in random
order. What cannot be measured is listed, and set only if you name its key.

In a network namespace, apply changes only what belongs to it, and keeps nothing for
the boot.`,
		Example: `  weir tune apply --confirm 60s
  weir tune apply net.ipv4.tcp_slow_start_after_idle
  weir tune apply --measure
  weir tune apply --confirm 60s nic.eth1.queues nic.eth1.irqs`,
		RunE: func(c *cobra.Command, keys []string) error {
			if c.Flags().Changed("confirm") && (confirm < time.Second || confirm > time.Hour) {
				return &UsageError{fmt.Errorf("--confirm %v: want 1s to 1h", confirm)}
			}
			if err := m.check(c, f.root); err != nil {
				return err
			}
			host, plan, err := f.plan(true, keys)
			if err != nil {
				return err
			}
			if m.on {
				return env.measure(c.Context(), host, plan, &m, len(keys) > 0, asJSON)
			}
			return env.apply(c.Context(), host, plan, confirm, asJSON)
		},
	}
	f.add(c)
	c.Flags().DurationVar(&confirm, "confirm", 0, "restore everything after this `time` unless weir tune confirm comes")
	m.add(c)
	jsonFlag(c, &asJSON)
	return c
}

// apply makes a plan's changes and prints them.
func (e *Env) apply(ctx context.Context, host *tune.Host, plan *tune.Plan, confirm time.Duration, asJSON bool) error {
	if confirm == 0 || len(plan.Changes) == 0 {
		e.warnOfLinks(host, plan)
	}
	if err := e.makeChanges(ctx, "tune", host, plan, confirm); err != nil {
		return fmt.Errorf("tune: %w", err)
	}
	if asJSON {
		return e.printJSON(plan.Changes)
	}
	e.printChanges(plan)
	return nil
}

// makeChanges makes a plan's changes. With a time to confirm, they last only until the
// time is over or the session ends. name is the command's name.
func (e *Env) makeChanges(ctx context.Context, name string, host *tune.Host, plan *tune.Plan, confirm time.Duration) error {
	if confirm == 0 || len(plan.Changes) == 0 {
		return host.Apply(plan)
	}
	ctx, stop := signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	signal.Ignore(unix.SIGPIPE) // a reader that stops must not end the trial, nor hide how it ended
	if _, err := fmt.Fprintf(e.Stderr, "weir: %s: type weir %[1]s confirm in another session within %[2]v\n", name, confirm); err != nil {
		return fmt.Errorf("nothing is changed, because the output with the instructions to confirm cannot be written: %w", err)
	}
	return host.Try(ctx, plan, confirm)
}

// warnOfLinks names the cards whose links a plan takes down for a moment. A user who is
// logged in through one of them may not come back.
func (e *Env) warnOfLinks(host *tune.Host, plan *tune.Plan) {
	var cards []string
	for i := range plan.Changes {
		if c := &plan.Changes[i]; c.Flaps() && !slices.Contains(cards, c.Card) {
			cards = append(cards, c.Card)
		}
	}
	if len(cards) > 0 && host.Root == "" {
		fmt.Fprintf(e.Stderr, "weir: tune: links go down for some seconds: %s; --confirm 60s puts all back where one does not return\n", strings.Join(cards, ", "))
	}
}

func (e *Env) printChanges(plan *tune.Plan) {
	if len(plan.Changes) == 0 {
		fmt.Fprintln(e.Stdout, "nothing to change")
	}
	for _, c := range plan.Changes {
		fmt.Fprintf(e.Stdout, "%s = %s\n", c.Key, c.To)
	}
}

// onHost makes a command do something with the host, which needs root.
func onHost(c *cobra.Command, do func(*tune.Host) error) *cobra.Command {
	var f tuneFlags
	f.addRoot(c)
	c.RunE = func(*cobra.Command, []string) error {
		host, err := f.host(true)
		if err != nil {
			return err
		}
		if err := do(host); err != nil {
			return fmt.Errorf("tune: %w", err)
		}
		return nil
	}
	return c
}

// newTuneConfirmCommand makes `weir tune confirm`.
func newTuneConfirmCommand(env *Env) *cobra.Command {
	return keeping(env, &cobra.Command{
		Use:   "confirm",
		Short: "keep the changes of weir tune apply --confirm",
	}, (*tune.Host).Confirm)
}

// keeping makes a command keep settings, and print them with --json.
func keeping(env *Env, c *cobra.Command, keep func(*tune.Host) ([]tune.Kept, error)) *cobra.Command {
	var asJSON bool
	jsonFlag(c, &asJSON)
	return onHost(c, func(host *tune.Host) error {
		kept, err := keep(host)
		if asJSON && kept != nil {
			err = errors.Join(env.printJSON(kept), err)
		}
		return err
	})
}

// newTuneRevertCommand makes `weir tune revert`.
func newTuneRevertCommand(env *Env) *cobra.Command {
	var all, asJSON bool
	c := &cobra.Command{
		Use:   "revert",
		Short: "undo everything that weir tune has set",
		Long: `revert restores the old value of each key that weir tune has set, and removes the
journal and the boot files. If somebody changed a key since, or the administrator's
files set it now, revert leaves it and says so; --all restores these too.`,
	}
	c.Flags().BoolVar(&all, "all", false, "also restore keys that somebody else has changed since")
	jsonFlag(c, &asJSON)
	return onHost(c, func(host *tune.Host) error {
		restored, err := host.Revert(all)
		if asJSON {
			return errors.Join(env.printJSON(append([]tune.Restored{}, restored...)), err)
		}
		for _, r := range restored {
			env.printRestored(r)
		}
		if err == nil && len(restored) == 0 {
			fmt.Fprintln(env.Stdout, "weir tune has set nothing")
		}
		return err
	})
}

func (e *Env) printRestored(r tune.Restored) {
	switch {
	case r.Kept != "":
		fmt.Fprintf(e.Stdout, "%s stays %s: %s (before weir it was %s)\n", r.Key, r.Found, r.Kept, r.To)
	case r.Found != "":
		fmt.Fprintf(e.Stdout, "%s = %s (somebody had set it to %s)\n", r.Key, r.To, r.Found)
	default:
		fmt.Fprintf(e.Stdout, "%s = %s\n", r.Key, r.To)
	}
}

// newTuneRestoreCommand makes `weir tune restore`, which the unit runs at boot.
func newTuneRestoreCommand(env *Env) *cobra.Command {
	return keeping(env, &cobra.Command{
		Use:   "restore",
		Short: "set cards and cores again after a restart",
		Long: `restore is for the unit weir-tune.service, which sets cards and cores again at boot.
It does not set unconfirmed values. It names what the host does not have, sets the
rest, and then exits with status 1.`,
	}, (*tune.Host).Restore)
}

// newTuneStatusCommand makes `weir tune status`.
func newTuneStatusCommand(env *Env) *cobra.Command {
	var f tuneFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "status",
		Short: "print what weir tune has set and what changed since; exit status 1 if something did",
		RunE: func(*cobra.Command, []string) error {
			host, err := f.host(false)
			if err != nil {
				return err
			}
			s, err := host.Status()
			if err != nil {
				return err
			}
			err = env.print(asJSON, s, s.WriteText)
			if s.Drift > 0 || s.CutOff {
				return errors.Join(err, ErrSilent)
			}
			return err
		},
	}
	f.addRoot(c)
	jsonFlag(c, &asJSON)
	return c
}
