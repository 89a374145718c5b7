package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/bench/option"
	"weir/internal/bench/remote"
	"weir/internal/bench/report"
)

// clientFlags holds the flags of `weir bench client` that are not options of the
// measurement itself.
type clientFlags struct {
	key, router string
	seconds     float64
	port        uint16
	rates       []string
}

// newBenchClientCommand makes `weir bench client`.
func newBenchClientCommand(env *Env) *cobra.Command {
	o := remote.Defaults()
	f := clientFlags{seconds: o.Seconds.Seconds(), rates: []string{"10M"}}
	var out reportFlags
	c := &cobra.Command{
		Use:   "client HOST",
		Short: "measure between this machine and one with weir bench server, or iperf3 -s",
		Long: `client measures between this machine and HOST, where weir bench server waits. It
measures TCP with one and with several connections, UDP at given rates, to HOST (up),
from it (down) and both at once, the round-trip times of an idle and of a loaded path,
and what both machines did meanwhile. With --iperf3 the other side is a stock
iperf3 -s. Cases run in random order. The first case is measured twice as a control. If
the two differ by more than 5 %, there is no verdict and the exit status is 1.

Below the figures is what weir doctor says about this machine, or about --router,
during the first run.

A benchmark fills the links to HOST. Unless HOST is this machine or in the same lab of
weir lab, confirm that it is yours with --yes-i-own HOST. Only TCP and UDP sent by the
kernel are used, and UDP is always paced.`,
		Example: `  weir bench client 192.0.2.7 --yes-i-own 192.0.2.7 --key bench.key
  weir bench client localhost --key - --proto udp --rate 10M,100M --frame 64,1518
  weir bench client 192.0.2.7 --yes-i-own 192.0.2.7 --iperf3 --html result.html`,
		Args: exactly(1, "bench client: name one host, on which weir bench server or iperf3 -s runs"),
		RunE: func(c *cobra.Command, args []string) error {
			o.Host = args[0]
			check := func() error { return f.apply(env, &o) }
			b := &benchmark{name: "client", check: check, rootless: true, locks: true,
				run: func(ctx context.Context) (*report.Document, error) {
					x := examination{router: o.Router, name: cmp.Or(o.RouterName, "this machine")}
					o.Loaded = func(omitted, span time.Duration) { x.begin(ctx, omitted, span) }
					d, err := remote.Client(ctx, o)
					if d != nil {
						x.join(d)
					}
					if foreign := new(remote.NotOursError); errors.As(err, &foreign) {
						err = &UsageError{err}
					}
					return d, err
				}}
			return b.do(c.Context(), env, &out)
		},
	}
	f.add(c, &o)
	out.add(c)
	return c
}

func (f *clientFlags) add(c *cobra.Command, o *remote.Options) {
	s := c.Flags()
	s.Uint16Var(&f.port, "port", 0, fmt.Sprintf("`port` of the server (default %d, with --iperf3 %d)", remote.DefaultPort, remote.IPerf3Port))
	s.StringVar(&f.key, "key", "", "`file` with the server's key; -: the first line of standard input")
	s.StringVar(&o.Owned, "yes-i-own", "", "confirm that you may load another machine, `HOST`, and the network to it")
	s.BoolVar(&o.IPerf3, "iperf3", false, "the other side is a stock iperf3 -s")
	s.StringSliceVar(&o.Protocols, "proto", o.Protocols, "`tcp|udp`")
	s.StringSliceVar(&o.Directions, "direction", o.Directions, "`up|down|both`; both: at the same time")
	s.IntSliceVar(&o.Connections, "connections", o.Connections, "`number` of TCP connections in each direction")
	s.Var(&o.TCPRate, "tcp-rate", "most bits per second of TCP in each direction; 0: no bound")
	s.StringSliceVar(&f.rates, "rate", f.rates, "`rates` of UDP in each direction in bits per second, counted by whole frames")
	s.IntSliceVar(&o.Frames, "frame", o.Frames, "`bytes` of a UDP frame with its checksum, 64 to 1518; IPv6 needs 84")
	s.IntVar(&o.Runs, "runs", o.Runs, "`number` of runs of each case")
	s.Float64Var(&f.seconds, "seconds", f.seconds, "`seconds` that are counted in each run, rounded up to whole ones")
	s.StringVar(&f.router, "router", "", "`NAMESPACE|local` in which a router runs; its links, and weir's drops, are shown beside the figures")
}

// apply turns the flags into options. It reads the key last.
func (f *clientFlags) apply(env *Env, o *remote.Options) (err error) {
	o.Seconds = time.Duration(f.seconds * float64(time.Second))
	o.Progress, o.Command, o.Program = env.Stderr, benchCommand(), version()
	o.Rates = o.Rates[:0]
	for _, text := range f.rates {
		r, err := option.ParseRate(text)
		if err != nil {
			return fmt.Errorf("--rate: %w", err)
		}
		o.Rates = append(o.Rates, r)
	}
	switch {
	case f.port != 0:
		o.Port = f.port
	case o.IPerf3:
		o.Port = remote.IPerf3Port
	}
	if err := o.Check(); err != nil {
		return err
	}
	if o.Router, o.RouterName, err = routerOf(f.router); err != nil {
		return err
	}
	if o.IPerf3 {
		if f.key != "" {
			return errors.New("iperf3 knows no key: leave --key or --iperf3 out")
		}
		return nil
	}
	switch f.key {
	case "":
		return errors.New("--key is missing: a file with the key that weir bench server has, or - to give the key by standard input")
	case "-":
		o.Key, err = remote.ReadKeyLine(env.Stdin)
	default:
		o.Key, err = remote.ReadKey(f.key)
	}
	return err
}
