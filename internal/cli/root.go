package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/fw/control"
	"weir/internal/oracle/ruletest"
	"weir/pf/diag"
)

// Run runs the command that args name and returns the exit status: 0 done, 1 refused, 2
// wrong usage or a missing capability. Some commands have more. It prints errors to
// env.Stderr, on one line unless the error is a list of diagnostics.
func Run(ctx context.Context, env *Env, args []string) int {
	root := newRootCommand(env)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	say(env.Stderr, err)
	return status(err)
}

// say prints an error. A fault in a rule file begins with its place, so that editors find
// it.
func say(w io.Writer, err error) {
	var faults *diag.Failure
	var refusal *control.RefusedError
	var wrong ruletest.Faults
	var status *StatusError
	var asPfctl *pfctlError
	switch {
	case err == nil, errors.Is(err, ErrSilent), errors.As(err, &status):
	case errors.As(err, &faults), errors.As(err, &wrong), errors.As(err, &refusal) && refusal.Faults:
		fmt.Fprintln(w, err)
	case errors.As(err, &asPfctl):
		fmt.Fprintf(w, "pfctl: %v\n", err)
	default:
		fmt.Fprintf(w, "weir: %v\n", err)
	}
}

// newRootCommand joins the commands. Every usage error ends with status 2, whoever finds
// it.
func newRootCommand(env *Env) *cobra.Command {
	asked := false // the user asked for the version
	root := &cobra.Command{
		Use:           "weir",
		Short:         "a firewall and router that runs pf.conf rules in XDP and TCX",
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(c *cobra.Command, _ []string) error {
			if asked {
				return printVersion(env)
			}
			return c.Help()
		},
	}
	root.Flags().BoolVar(&asked, "version", false, "print the version, as weir version does")
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.PersistentFlags().StringVar(&env.Netns, "netns", "", "network namespace to act in: a `name` of ip netns, or a path")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if !c.Flags().Changed("netns") {
			return nil
		}
		return env.enter()
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		// If a misspelt command comes first, its flags are unknown only because
		// of that.
		if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 {
			err = knownCommand(c, args)
		}
		return &UsageError{plain(err)}
	})
	root.AddCommand(
		newCheckCommand(env), newRunCommand(env), newStopCommand(env), newDowngradeCommand(env), newLoadCommand(env), newConfirmCommand(env), newAnchorCommand(env),
		newRulesCommand(env), newStatesCommand(env), newSourcesCommand(env), newQueuesCommand(env), newGatewaysCommand(env), newPPPoECommand(env), newVPNCommand(env), newInfoCommand(env), newInterfacesCommand(env),
		newTableCommand(env), newKillCommand(env), newFlushCommand(env), newPfctlCommand(env),
		newLogCommand(env), newCaptureCommand(env), newFTPProxyCommand(env), newPortmapCommand(env), newQoSCommand(env), newDoctorCommand(env), newAffinityCommand(env),
		newTuneCommand(env), newBenchCommand(env), newLabCommand(env), newDemoCommand(env), newVersionCommand(env),
	)
	complete(root)
	root.SetHelpCommand(newHelpCommand(root))
	return root
}

// newHelpCommand makes `weir help`. Unlike cobra's, it refuses names that are no command.
func newHelpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "explain a command",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []string
			for _, c := range root.Commands() {
				names = append(names, c.Name())
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			switch {
			case c == root && len(args) > 0, err != nil:
				return &UsageError{knownCommand(root, args)}
			case len(rest) > 0:
				return &UsageError{fmt.Errorf("weir help %s: name one command", strings.Join(args, " "))}
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}

// knownCommand refuses a name that is no command, and suggests the nearest one.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = min(2, len(args[0])/2) // a short name is near to many
	if meant := c.SuggestionsFor(args[0]); len(meant) > 0 {
		return fmt.Errorf("unknown command %q; did you mean %q?", args[0], meant[0])
	}
	return fmt.Errorf("unknown command %q; %s --help lists the commands", args[0], c.CommandPath())
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no argument: %q", c.CommandPath(), args[0])
	}
	return nil
}

// plain returns the error for a flag whose value is no number, without the names of Go's
// functions.
func plain(err error) error {
	var number *strconv.NumError
	if !errors.As(err, &number) {
		return err
	}
	return errors.New(strings.Replace(err.Error(), number.Error(), number.Err.Error(), 1))
}

// exactly refuses another number of arguments.
func exactly(n int, refusal string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return errors.New(refusal)
		}
		return nil
	}
}

func oneFile(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("name one rule file")
	}
	if len(args) != 1 {
		return fmt.Errorf("name one rule file, not %d", len(args))
	}
	return nil
}

// complete adds what commands leave out. One without an argument check takes no argument,
// and one that does nothing itself prints its help. Errors of the check are usage errors.
func complete(c *cobra.Command) {
	check := c.Args
	switch {
	case check != nil:
	case c.HasSubCommands():
		check = knownCommand
	default:
		check = noArgs
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return &UsageError{err}
		}
		return nil
	}
	if c.RunE == nil {
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	for _, sub := range c.Commands() {
		complete(sub)
	}
}
