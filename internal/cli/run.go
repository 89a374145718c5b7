package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"weir/internal/fw/daemon"
	"weir/internal/fw/rundir"
	"weir/internal/host/netif"
	"weir/pf/source"
)

var (
	errNoFile = errors.New("-f is empty: name a rule file")
	errNoPort = errors.New("--management takes a port from 1 to 65535")
)

const runHelp = `run loads the rules, attaches weir to every interface of the network namespace
and turns forwarding on. It stays in the foreground and follows changes of
interfaces, addresses, routes and neighbours.

If the daemon ends, even by SIGKILL, packets are still filtered and forwarded. A
second run takes over from the first and loses no packet. weir stop removes weir.

A file with an error ends the start and changes nothing. Without -f, and if
` + daemon.DefaultFile + ` does not exist, the rules of the last daemon stay
in force. If there are none, that ends the start, too.

With --or-block, weir starts even if the file is missing, wrong or refused by the
kernel: the rules in force stay. If there are none, weir blocks everything but lo and
the management port. It then retries every few seconds and whenever the machine
changes, because interfaces and addresses may appear later. It does not retry a
file that the kernel refused. A weir load ends the retries. The first try asks no
DNS: hosts must be in /etc/hosts or known from the rules in force. Later tries do
ask, but at boot everything is blocked by then, DNS included.

--hook auto uses XDP on physical cards, and TCX elsewhere or if the driver refuses
XDP. --hook xdp uses XDP on every device that allows it; if a driver refuses, the
start fails, unless --or-block is given.

--prefetch auto makes XDP prefetch packets if there are 49,152 states or more.
States are then read from memory many at a time, which saves more than it costs.

--steer has one core go on with all packets of a line that the kernel holds (engine queue), so that
cores do not wait for each other; several lines have several cores. XDP hands the packets over. It
costs half as much CPU again, so measure whether it helps on a machine of many cores (docs/queues.md).

A weir of another version takes over with all connections. If it cannot keep them
all, it says how many will be lost and asks. If nobody can answer, it changes nothing
and ends with status 1; --lose-states starts it all the same.

With --json, each message is one object on one line: time, level (info, warning or
error), message and details. Errors and warnings of the rule file are in
diagnostics, as "weir check --json" prints them. If the start fails, the last
message says why.`

func newRunCommand(env *Env) *cobra.Command {
	var file, hook, prefetch string
	var management uint16
	var orBlock, noDNS, asJSON, loseStates, steer bool
	var macros macrosFlag
	var without source.Without
	c := &cobra.Command{
		Use:   "run",
		Short: "run the firewall: load the rules and stay in the foreground as the daemon",
		Long:  runHelp,
		Args: func(c *cobra.Command, args []string) error {
			if err := noArgs(c, args); err != nil {
				return fmt.Errorf("%w; -f names the rule file", err)
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if file == "" {
				return &UsageError{errNoFile}
			}
			if management == 0 {
				return &UsageError{errNoPort}
			}
			cfg, err := env.runConfig()
			if err != nil {
				return err
			}
			if err := setHookAndPrefetch(cfg, hook, prefetch); err != nil {
				return &UsageError{err}
			}
			if asJSON {
				cfg.Log = slog.New(newJSONVoice(env.Stdout))
			}
			cfg.File, cfg.Optional = file, !c.Flags().Changed("file")
			cfg.Management, cfg.OrBlock, cfg.NoDNS, cfg.Macros = management, orBlock, noDNS, macros
			cfg.LoseStates, cfg.Without, cfg.Steer = loseStates, without, steer
			if !asJSON {
				cfg.Ask = env.asker()
			}
			err = daemon.Run(c.Context(), cfg)
			if errors.Is(err, context.Canceled) {
				err = errors.New("interrupted while it started")
			}
			if asJSON && err != nil {
				return logAsJSON(cfg.Log, file, err)
			}
			return err
		},
	}
	c.Flags().StringVarP(&file, "file", "f", daemon.DefaultFile, "rule `file`")
	c.Flags().BoolVarP(&noDNS, "no-dns", "N", false, noDNSUsage)
	c.Flags().VarP(&macros, "define", "D", macrosUsage)
	c.Flags().Var(&without, "without", withoutUsage)
	c.Flags().StringVar(&hook, "hook", string(daemon.Auto), "the hook for incoming packets: auto, xdp or tcx")
	c.Flags().StringVar(&prefetch, "prefetch", string(daemon.PrefetchAuto), "prefetch packets at XDP, for more states than the caches hold: auto, on or off")
	c.Flags().BoolVar(&steer, "steer", false, "have one core go on with all packets of a line that the kernel holds")
	c.Flags().BoolVar(&orBlock, "or-block", false, "start even if the file does not load: keep the rules in force, or block everything but the management port")
	c.Flags().Uint16Var(&management, "management", daemon.DefaultManagement, "TCP `port` of this box that stays open if no rules are loaded")
	c.Flags().BoolVar(&loseStates, "lose-states", false, "start even if the connections of another version of weir cannot be kept")
	c.Flags().BoolVar(&asJSON, "json", false, "print messages as JSON, one object per line")
	return c
}

// setHookAndPrefetch sets the hook and the use of prefetching.
func setHookAndPrefetch(cfg *daemon.Config, hook, prefetch string) (err error) {
	if cfg.Mode, err = daemon.ParseMode(hook); err != nil {
		return err
	}
	cfg.Prefetch, err = daemon.ParsePrefetch(prefetch)
	return err
}

// logAsJSON logs the error that ends the daemon, and returns its exit status.
func logAsJSON(log *slog.Logger, file string, err error) error {
	if diagnostics(slog.AnyValue(err)) != nil {
		log.Error("the rules do not load", "file", file, "error", err)
	} else {
		log.Error("weir run has failed", "error", err)
	}
	return &StatusError{status(err)}
}

func newStopCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "stop",
		Short: "end the daemon, detach from every interface and restore the settings",
	}
	return printing(env, c, func(ctx context.Context, _ []string) (*daemon.Afterwards, error) {
		cfg, err := env.daemonConfig()
		if err != nil {
			return nil, err
		}
		return daemon.Stop(ctx, cfg)
	}, func(a *daemon.Afterwards) error {
		_, err := fmt.Fprintf(env.Stdout, "weir: detached from every interface; %s\n", a)
		return err
	})
}

// runConfig returns the daemonConfig for a daemon in this process.
func (e *Env) runConfig() (*daemon.Config, error) {
	if err := needBPF(); err != nil {
		return nil, err
	}
	return e.daemonConfig()
}

// daemonConfig returns what all commands of the daemon need.
func (e *Env) daemonConfig() (*daemon.Config, error) {
	folder, err := e.daemonFolder()
	if err != nil {
		return nil, err
	}
	return &daemon.Config{
		Folder: folder, Version: version(), Mode: daemon.Auto,
		Log: slog.New(newVoice(e.Stderr)),
	}, nil
}

// daemonFolder is folder for commands that change something.
func (e *Env) daemonFolder() (rundir.Folder, error) {
	if err := needRoot(); err != nil {
		return "", err
	}
	return e.folder()
}

// folder returns the run folder of the network namespace.
func (e *Env) folder() (rundir.Folder, error) {
	if needRoot() != nil {
		return "", errNotReader
	}
	cookie, err := netif.Cookie()
	if err != nil {
		return "", err
	}
	return rundir.FolderOf(cookie), nil
}
