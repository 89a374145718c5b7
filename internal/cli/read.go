package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"weir/internal/fw/daemon"
	"weir/internal/fw/dataplane"
	"weir/internal/fw/view"
	"weir/internal/host/netif"
)

// reader opens the view for the commands that read. If weir does not run, the error
// says so in one sentence.
func (e *Env) reader() (*view.View, error) {
	folder, err := e.folder()
	if err != nil {
		return nil, err
	}
	r, err := view.Open(folder)
	if errors.Is(err, dataplane.ErrNotLoaded) {
		return nil, errNothingLoaded
	}
	return r, err
}

var errNothingLoaded = errors.New("nothing is loaded: weir does not run in this network namespace; weir run starts it")

// jsonFlag adds --json to a command.
func jsonFlag(c *cobra.Command, asJSON *bool) {
	c.Flags().BoolVar(asJSON, "json", false, "print JSON")
}

// printing makes a command print what read returns, as text or, with --json, as JSON.
func printing[T any](env *Env, c *cobra.Command, read func(ctx context.Context, args []string) (T, error), text func(T) error) *cobra.Command {
	var asJSON bool
	jsonFlag(c, &asJSON)
	c.RunE = func(c *cobra.Command, args []string) error {
		v, err := read(c.Context(), args)
		if err != nil {
			return err
		}
		if asJSON {
			return env.printJSON(v)
		}
		return text(v)
	}
	return c
}

func newRulesCommand(env *Env) *cobra.Command {
	var verbose, pid int
	c := &cobra.Command{
		Use:   "rules",
		Short: "print the rules in force; -v adds their counters, -vv their numbers",
	}
	c.Flags().CountVarP(&verbose, "verbose", "v", "print evaluations, packets, bytes and states too; twice: also the rule numbers that weir states uses")
	return printing(env, c, func(context.Context, []string) (rules []view.Rule, err error) {
		r, err := env.reader()
		if err != nil {
			return nil, err
		}
		defer r.Close()
		rules, pid, err = r.Rules()
		return rules, err
	}, func(rules []view.Rule) error { return view.PrintRules(env.Stdout, rules, verbose, pid) })
}

func newSourcesCommand(env *Env) *cobra.Command {
	var verbose bool
	c := &cobra.Command{
		Use:   "sources",
		Short: "print the addresses that rules with source-track count, or that keep a pool's address; -v adds ages and rules",
	}
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "print age, rule, and whether a source has too many connections")
	return printing(env, c, func(context.Context, []string) ([]view.Source, error) {
		r, err := env.reader()
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return r.AllSources()
	}, func(sources []view.Source) error { return view.PrintSources(env.Stdout, sources, verbose) })
}

func newInfoCommand(env *Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "info",
		Short: "print status and counters; exit status 1 until rules are loaded and in use",
		RunE: func(*cobra.Command, []string) error {
			info, err := env.info()
			if err != nil {
				return err
			}
			err = env.print(asJSON, info, info.Print)
			if err == nil && !info.Ready() {
				return ErrSilent
			}
			return err
		},
	}
	jsonFlag(c, &asJSON)
	return c
}

func (e *Env) info() (*view.Info, error) {
	r, err := e.reader()
	if errors.Is(err, errNothingLoaded) {
		return view.Disabled(), nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.Info()
}

func newInterfacesCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "interfaces",
		Short: "print each interface, its hook, and why this hook; of tunnels also the engine, and why this one",
	}
	return printing(env, c, func(ctx context.Context, _ []string) (*view.Interfaces, error) {
		folder, err := env.folder()
		if err != nil {
			return nil, err
		}
		all, err := view.ReadInterfaces(folder, chooseHook)
		if err != nil {
			return nil, err
		}
		if all.Tunnels, err = engines(ctx, folder); err != nil {
			return nil, err
		}
		all.ForeignDrops, err = daemon.ForeignDrops()
		return all, err
	}, func(all *view.Interfaces) error { return all.Print(env.Stdout) })
}

// chooseHook names the hook that `weir run` would choose for an interface without weir.
func chooseHook(l *netif.Link) string {
	c := daemon.Choose(l, daemon.Auto)
	if c.Hook == daemon.NoHook {
		return c.Why
	}
	return fmt.Sprintf("weir does not run; it would use %s: %s", c.Hook, c.Why)
}
