package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/autorate"
	"weir/internal/fw/control"
	"weir/internal/fw/rundir"
	"weir/internal/fw/view"
	"weir/internal/units"
)

// qosAutorate holds the flags of qos autorate.
type qosAutorate struct {
	iface, device string
	bounds        [2][3]string // by direction: min, base, max
	hosts         []string
	delay         time.Duration
	dryRun        bool
	log           string
}

func newQoSAutorateCommand(env *Env) *cobra.Command {
	o := &qosAutorate{}
	c := &cobra.Command{
		Use:   "autorate",
		Short: "follow a line whose rate varies",
		Long: `autorate gives the queues of an interface the rate that its line has now. It is for lines
whose rate varies: LTE and 5G, TV cable, satellite. It runs until it is interrupted; then
the queues have the rates of the file again. It needs the daemon (weir run), which sets the rates.

It asks some hosts by ICMP, 20 times a second in all, and looks five times a second at how
long their answers take and at what the queues carry:

    packets wait for more than --delay            the rate goes down to below what the line carries
    probes are lost while the rate is used        likewise
    the rate is used, and nothing waits           it goes up: slowly where packets had to wait
    little is sent, so nothing is known           it goes to the base rate, 5% a second
    no host answers, but packets come in          likewise: the hosts are silent, not the line
    no host answers, and nothing comes in         it stays

The rate is always within its bounds. Base is the file's rate, min a quarter of base, and max
the same as base, unless flags say otherwise. A direction without queues is left alone.

Hosts should be near the line's far end and answer pings at this pace, such as the resolvers
of the provider; three or more, so that one that is slow itself is outvoted. It is not asked
for a minute then. Hosts that answer requests for their time (ICMP timestamp) say which
direction packets wait in; others only that they wait, and then each direction that is used is
reduced. The rules must pass the probes:
pass out on wan0 inet proto icmp from self

With --log each decision that changes a rate is a line of comma-separated values, and one a
second in any case; rates are in Mbit/s, delays in milliseconds above the least. gnuplot
shows it:

    set datafile separator ","; set key autotitle columnhead; set y2tics
    plot "log.csv" using 2:3 with lines, "" using 2:4 with lines, "" using 2:5 axes x1y2 with lines

With --dry-run nothing is set: the log shows what would have been. If the line is too
slow then, it goes on down to the least rate, since nothing gets better.`,
		Example: `  weir qos autorate -i wan0 --probe 192.0.2.53,192.0.2.54,198.51.100.7 \
      --up-min 2M --up-max 30M --down-min 5M --down-max 150M`,
		Args: exactly(0, "qos autorate takes only flags"),
		RunE: func(c *cobra.Command, _ []string) error { return env.qosAutorate(c.Context(), o) },
	}
	f := c.Flags()
	f.StringVarP(&o.iface, "interface", "i", "", "`interface` with the queues")
	for d, direction := range autorate.Directions {
		for i, what := range []string{"min", "base", "max"} {
			f.StringVar(&o.bounds[d][i], direction+"-"+what, "", what+" `rate` "+direction+", such as 20M")
		}
	}
	f.StringSliceVar(&o.hosts, "probe", nil, "`hosts` to ask, with commas")
	f.StringVar(&o.device, "bind", "", "`device` that the probes leave by, instead of the interface; any: as the routes say")
	f.DurationVar(&o.delay, "delay", 30*time.Millisecond, "packets that take this much longer than the least have to wait")
	f.BoolVar(&o.dryRun, "dry-run", false, "set nothing")
	f.StringVar(&o.log, "log", "", "`file` to add the log to; - is standard output")
	return c
}

func (e *Env) qosAutorate(ctx context.Context, o *qosAutorate) error {
	if err := o.check(); err != nil {
		return &UsageError{err}
	}
	folder, err := e.daemonFolder()
	if err != nil {
		return err
	}
	v, err := e.reader()
	if err != nil {
		return err
	}
	defer v.Close()
	box := &queueBox{name: o.iface, view: v, client: control.NewClient(folder), folder: folder}
	f := &autorate.Follower{Device: o.device, DryRun: o.dryRun, Box: box, Say: e.helperLog(false)}
	f.Delay = o.delay
	trees, err := box.trees()
	if err != nil {
		return err
	}
	if f.Bounds, err = o.boundsOf(trees); err != nil {
		return err
	}
	if f.Hosts, err = lookUp(ctx, o.hosts); err != nil {
		return err
	}
	log, err := e.openLog(o.log)
	if err != nil {
		return err
	}
	defer log.Close()
	f.Log = log
	o.sayStart(f)
	return f.Run(ctx)
}

// sayStart says what is followed, and within which bounds.
func (o *qosAutorate) sayStart(f *autorate.Follower) {
	for d, b := range f.Bounds {
		if b.Max > 0 {
			f.Say.Info("following the line", "interface", o.iface, "direction", autorate.Directions[d], "min", bitRate(b.Min), "base", bitRate(b.Base), "max", bitRate(b.Max), "dry", o.dryRun)
		}
	}
}

func (o *qosAutorate) check() error {
	switch {
	case o.iface == "":
		return errors.New("--interface is missing")
	case len(o.hosts) == 0:
		return errors.New("--probe is missing: name three hosts or more")
	case len(o.hosts) > autorate.MaxHosts:
		return fmt.Errorf("--probe takes %d hosts at most", autorate.MaxHosts)
	case o.delay < time.Millisecond || o.delay > 10*time.Second:
		return errors.New("--delay is from 1ms to 10s")
	}
	switch o.device {
	case "":
		o.device = o.iface
	case "any":
		o.device = ""
	}
	return nil
}

// boundsOf returns the bounds of the trees, for which the flags may say nothing.
func (o *qosAutorate) boundsOf(trees [2]*view.QueueTree) (all [2]autorate.Bounds, err error) {
	if trees == [2]*view.QueueTree{} {
		return all, fmt.Errorf("the rules define no queues on %s", o.iface)
	}
	for d, tree := range trees {
		given := o.bounds[d]
		switch {
		case tree != nil:
			all[d], err = boundsOf(given, float64(tree.OfRules)*8)
		case given != [3]string{}:
			err = fmt.Errorf("the rules define no queues on %s for what goes %s", o.iface, autorate.Directions[d])
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// boundsOf returns the bounds of a direction whose rate in the rules is base.
func boundsOf(given [3]string, base float64) (b autorate.Bounds, err error) {
	var rates [3]float64
	for i, text := range given {
		if text == "" {
			continue
		}
		bits, err := lineRate(text)
		if err != nil {
			return b, &UsageError{err}
		}
		rates[i] = float64(bits)
	}
	b.Base = cmp.Or(rates[1], base)
	b.Min, b.Max = cmp.Or(rates[0], b.Base/4), cmp.Or(rates[2], b.Base)
	if b.Min > b.Base || b.Base > b.Max {
		return b, &UsageError{fmt.Errorf("min %s, base %s and max %s are not in this order", bitRate(b.Min), bitRate(b.Base), bitRate(b.Max))}
	}
	return b, nil
}

// bitRate writes bits per second: 20Mbit/s.
func bitRate(bits float64) string { return units.Short(bits) + "bit/s" }

// lookUp returns an address of each host.
func lookUp(ctx context.Context, names []string) (all []netip.Addr, err error) {
	for _, name := range names {
		addr, err := netip.ParseAddr(name)
		if err != nil {
			found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
			if err != nil {
				return nil, fmt.Errorf("look up --probe %s: %w", name, err)
			}
			addr = found[0]
		}
		all = append(all, addr.Unmap())
	}
	return all, nil
}

// openLog opens the log to add to it; "": it is thrown away.
func (e *Env) openLog(path string) (io.WriteCloser, error) {
	switch path {
	case "":
		return nopCloser{io.Discard}, nil
	case "-":
		return nopCloser{e.Stdout}, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return file, nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// A queueBox is this box, for autorate.
type queueBox struct {
	name   string
	view   *view.View
	client *control.Client
	folder rundir.Folder
}

// trees returns the interface's trees by direction; nil: it has none.
func (b *queueBox) trees() (found [2]*view.QueueTree, err error) {
	all, err := b.view.Queues()
	for i := range all.Trees {
		if t := &all.Trees[i]; t.Interface == b.name {
			found[directionOf(t.In)] = t
		}
	}
	return found, err
}

func directionOf(in bool) int {
	if in {
		return autorate.Down
	}
	return autorate.Up
}

// Traffic returns what the queues have done.
func (b *queueBox) Traffic() (t autorate.Traffic, err error) {
	trees, err := b.trees()
	for d, tree := range trees {
		if tree != nil {
			root := &tree.Queues[0]
			t.Rates[d], t.Passed[d], t.Offered[d] = float64(tree.Rate)*8, root.Sent, root.Sent+root.Lost
		}
	}
	return t, err
}

// SetRate sets the rate of a direction.
func (b *queueBox) SetRate(ctx context.Context, direction int, rate float64) error {
	_, err := b.client.SetQueueRate(ctx, &control.QueueRate{Interface: b.name, In: direction == autorate.Down, Rate: uint64(rate / 8), Autorate: true})
	return err
}

// Waits notes that something behind the interface holds packets.
func (b *queueBox) Waits(direction int, _ float64, d time.Duration) {
	if direction == autorate.Up {
		_ = b.folder.NoteModem(rundir.Modem{Interface: b.name, Delay: d, Time: time.Now()}) // it is a hint
	}
}
