package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/bench/option"
	"weir/internal/bench/remote"
	"weir/internal/host/netif"
)

// routerLocal is the value of --router for the command's own namespace.
const routerLocal = "local"

// newBenchServerCommand makes `weir bench server`.
func newBenchServerCommand(env *Env) *cobra.Command {
	o := remote.ServerOptions{Limits: remote.DefaultLimits(), Life: time.Hour}
	data := option.Bytes(o.Limits.Data)
	var keyFile, router string
	c := &cobra.Command{
		Use:   "server",
		Short: "wait for weir bench client on another machine",
		Long: `server waits for a weir bench client on another machine and measures with it. The
client needs the server's key. Both prove by TLS 1.3 that they have it. Without --key,
the server makes a new key and prints it. The server limits rate, time and amount: a
client that asks for more gets what the limits allow, and is told. It serves one
client at a time. iperf3 carries the traffic: the server starts one at --data-port for
each run, for a client with the key only, and ends it with the run.
docs/bench-protocol.md describes the messages.`,
		Example: `  weir bench server
  weir bench server --key /root/bench.key --max-rate 100M --once`,
		RunE: func(c *cobra.Command, _ []string) error {
			o.Limits.Data, o.Program = uint64(data), version()
			if err := o.Limits.Check(); err != nil {
				return &UsageError{fmt.Errorf("bench server: %w", err)}
			}
			if _, _, err := net.SplitHostPort(o.Listen); err != nil {
				return &UsageError{fmt.Errorf("bench server: --listen %s: want ADDRESS:PORT, or :PORT for all addresses", o.Listen)}
			}
			if o.Life < 0 {
				return &UsageError{fmt.Errorf("bench server: --for %s: want a time, or 0 for ever", o.Life)}
			}
			var err error
			if o.Router, o.RouterName, err = routerOf(router); err != nil {
				return err
			}
			if err := env.serverKey(&o, keyFile); err != nil {
				return fmt.Errorf("bench server: --key: %w", err)
			}
			o.Log = func(format string, args ...any) { fmt.Fprintf(env.Stderr, "weir: "+format+"\n", args...) }
			if err := remote.Serve(c.Context(), o); err != nil {
				return fmt.Errorf("bench server: %w", err)
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&o.Listen, "listen", fmt.Sprintf(":%d", remote.DefaultPort), "`address` and port to listen on")
	f.Uint16Var(&o.DataPort, "data-port", 0, "`port` of TCP and UDP for the traffic (default: the one after --listen's)")
	f.StringVar(&keyFile, "key", "", "`file` with the key; it is made with a new one if there is none")
	f.Var(&o.Limits.Rate, "max-rate", "most bits per second in each direction; 0: no bound")
	f.DurationVar(&o.Limits.Run, "max-run", o.Limits.Run, "most `time` of one run")
	f.DurationVar(&o.Limits.Session, "max-session", o.Limits.Session, "most `time` of one client")
	f.Var(&data, "max-data", "most bytes of one client")
	f.IntVar(&o.Limits.Connections, "max-connections", o.Limits.Connections, "most TCP connections at once in each direction, a `number`")
	f.DurationVar(&o.Life, "for", o.Life, "the server ends after this `time`; 0: it does not")
	f.BoolVar(&o.Once, "once", false, "end after the first client")
	f.StringVar(&router, "router", "", "`NAMESPACE|local` in which a router runs; its links, and weir's drops, are shown beside the figures")
	return c
}

// serverKey finds or makes the key, and says how a client gets it.
func (e *Env) serverKey(o *remote.ServerOptions, file string) error {
	made := false
	if file == "" {
		o.Key = remote.NewKey()
	} else {
		var err error
		if o.Key, made, err = remote.OpenKey(file); err != nil {
			return err
		}
	}
	o.Ready = func(a netip.AddrPort) {
		port := ""
		if a.Port() != remote.DefaultPort {
			port = fmt.Sprintf(" --port %d", a.Port())
		}
		fmt.Fprintf(e.Stdout, "weir bench server listens on %s\n", a)
		switch {
		case file == "":
			fmt.Fprintf(e.Stdout, "on the other machine: weir bench client HOST%s --key -\nand give it this key: %s\n", port, o.Key)
		case made:
			fmt.Fprintf(e.Stdout, "wrote a new key to %s: copy it, then weir bench client HOST%s --key FILE\n", file, port)
		default:
			fmt.Fprintf(e.Stdout, "on the other machine: weir bench client HOST%s --key FILE\n", port)
		}
	}
	return nil
}

// routerOf returns the file of the namespace that --router names.
func routerOf(name string) (path, shown string, err error) {
	switch name {
	case "":
		return "", "", nil
	case routerLocal:
		return "", "this namespace", nil
	}
	if err := needRoot(); err != nil {
		return "", "", err
	}
	path, err = netif.NamespacePath(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = &UsageError{fmt.Errorf("--router: %w", err)}
	}
	return path, name, err
}
