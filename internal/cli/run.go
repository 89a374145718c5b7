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
)

var (
	errNoFile = errors.New("-f is empty: name a rule file")
	errNoPort = errors.New("--management takes a port from 1 to 65535")
)

func newRunCommand(env *Env) *cobra.Command {
	var file, hook, ahead string
	var management uint16
	var orBlock, noDNS, asJSON bool
	var macros macrosFlag
	c := &cobra.Command{
		Use:   "run",
		Short: "judge and forward packets by the rules in a file, as a daemon in the foreground",
		Long: `run loads the rules, attaches weir to every interface of the network namespace
and switches forwarding on. It stays in the foreground and follows the machine:
interfaces, addresses, routes, neighbours.

The end of the daemon, also by SIGKILL, ends nothing else: packets go on being
judged. A second run takes over from the first without losing one. weir stop
ends it all.

A file that does not load ends the start and changes nothing. Without -f and
without ` + daemon.DefaultFile + ` the rules in force stay, if an earlier
daemon has left any; else everything is blocked but lo and the management port
to this box. With --or-block the same holds for a file that is missing, wrong or
refused by the kernel; unless the kernel refused it, it is read and tried again
when the machine changes, whose interfaces and addresses may be still to come,
and every few seconds. weir load ends it. The start then asks no DNS: hosts in the
file must stand in /etc/hosts, or be remembered from the rules in force. The tries
after it ask, but at boot everything is blocked by then, also what this box asks.

--hook auto takes XDP on physical cards and TCX elsewhere, also where a driver
refuses XDP. --hook xdp takes XDP on every device that may have it, and a driver
that refuses ends the start, unless --or-block is given.

--prefetch auto has packets that come in at XDP looked at twice from 49,152 states
on: then states come from memory many at a time, which saves more than it costs.

With --json each message is an object, one a line: time, level (info, warning or
error), message, and its details; what is wrong or doubtful in the rule file is in
diagnostics, as "weir check --json" prints it. Of a start that fails the last says
why.`,
		Args: usageArgs(func(c *cobra.Command, args []string) error {
			if err := noArgs(c, args); err != nil {
				return fmt.Errorf("%w; -f names the rule file", err)
			}
			return nil
		}),
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
			if err := setWays(cfg, hook, ahead); err != nil {
				return &UsageError{err}
			}
			if asJSON {
				cfg.Log = slog.New(newJSONVoice(env.Stdout))
			}
			cfg.File, cfg.Optional = file, !c.Flags().Changed("file")
			cfg.Management, cfg.OrBlock, cfg.NoDNS, cfg.Macros = management, orBlock, noDNS, macros
			err = daemon.Run(c.Context(), cfg)
			if errors.Is(err, context.Canceled) {
				err = errors.New("interrupted while it started")
			}
			if asJSON && err != nil {
				return saidInJSON(cfg.Log, file, err)
			}
			return err
		},
	}
	c.Flags().StringVarP(&file, "file", "f", daemon.DefaultFile, "rule `file`")
	c.Flags().BoolVarP(&noDNS, "no-dns", "N", false, noDNSUsage)
	c.Flags().VarP(&macros, "define", "D", macrosUsage)
	c.Flags().StringVar(&hook, "hook", string(daemon.Auto), "where packets are judged as they come in: auto, xdp or tcx")
	c.Flags().StringVar(&ahead, "prefetch", string(daemon.PrefetchAuto), "look at packets twice at XDP, for when states are too many for the caches: auto, on or off")
	c.Flags().BoolVar(&orBlock, "or-block", false, "start also with a file that does not load: with the rules in force or, without any, all blocked but the management port")
	c.Flags().Uint16Var(&management, "management", daemon.DefaultManagement, "TCP `port` of this box that stays open while no rules are loaded")
	c.Flags().BoolVar(&asJSON, "json", false, "print messages as JSON, one object a line")
	return c
}

// setWays sets where packets are judged, and how often they are looked at there.
func setWays(cfg *daemon.Config, hook, ahead string) (err error) {
	if cfg.Mode, err = daemon.ParseMode(hook); err != nil {
		return err
	}
	cfg.Prefetch, err = daemon.ParsePrefetch(ahead)
	return err
}

// saidInJSON says an error that ends the daemon, and returns its exit status.
func saidInJSON(log *slog.Logger, file string, err error) error {
	if diagnostics(slog.AnyValue(err)) != nil {
		log.Error("the rules do not load", "file", file, "error", err)
	} else {
		log.Error("weir run has failed", "error", err)
	}
	return &StatusError{status(err)}
}

func newStopCommand(env *Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "stop",
		Short: "end the daemon, detach from every interface and give back what was found",
		Args:  usageArgs(noArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := env.daemonConfig()
			if err != nil {
				return err
			}
			a, err := daemon.Stop(c.Context(), cfg)
			if err != nil {
				return err
			}
			if asJSON {
				return env.printJSON(a)
			}
			fmt.Fprintf(env.Stdout, "weir: detached from every interface; %s\n", a)
			return nil
		},
	}
	jsonFlag(c, &asJSON)
	return c
}

// runConfig is daemonConfig for a daemon that is to run here.
func (e *Env) runConfig() (*daemon.Config, error) {
	if err := needBPF(); err != nil {
		return nil, err
	}
	return e.daemonConfig()
}

// daemonConfig is what the daemon's commands have in common.
func (e *Env) daemonConfig() (*daemon.Config, error) {
	if err := needRoot(); err != nil {
		return nil, err
	}
	folder, err := e.folder()
	if err != nil {
		return nil, err
	}
	return &daemon.Config{
		Folder: folder, Version: version(), Mode: daemon.Auto,
		Log: slog.New(newVoice(e.Stderr)),
	}, nil
}

// folder is the run folder of the network namespace.
func (e *Env) folder() (rundir.Folder, error) {
	if err := needRoot(); err != nil {
		return "", err
	}
	cookie, err := netif.Cookie()
	if err != nil {
		return "", err
	}
	return rundir.FolderOf(cookie), nil
}
