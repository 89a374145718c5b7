package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"weir/internal/fw/control"
	"weir/internal/fw/shaper"
	"weir/internal/units"
	"weir/pf/parser"
)

func newQoSRateCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "rate INTERFACE [in | out] RATE",
		Short: "set the rate of an interface's queues for a while",
		Long: `rate sets the rate of the root queue of an interface at once, under traffic: for what
leaves it, or with in for what comes in. The queues below follow: what the file gives as a
percentage of the rate stays that part of it, rates in bits and shares stay as they are. No
packet waits or is lost for the change, and all counts go on.

RATE is as in the file, such as 20M, and may be more than the file's: from 8K to 100G. It stays
until it is set again, until a file with other rates is loaded, and over a restart of the
daemon. The word rules sets that of the file again.

weir queues shows what is set. weir qos autorate sets rates all the time.

It needs the daemon (weir run), which sets the rate.`,
		Example: "  weir qos rate wan0 in 40M\n  weir qos rate wan0 in rules",
		Args:    qosRateArgs,
		RunE:    func(c *cobra.Command, args []string) error { return env.qosRate(c.Context(), args) },
	}
}

func qosRateArgs(_ *cobra.Command, args []string) error {
	if len(args) < 2 || len(args) > 3 || len(args) == 3 && args[1] != "in" && args[1] != "out" {
		return errors.New("name an interface, perhaps in or out, and a rate")
	}
	return nil
}

func (e *Env) qosRate(ctx context.Context, args []string) error {
	r := &control.QueueRate{Interface: args[0], In: args[1] == "in"}
	if text := args[len(args)-1]; text != "rules" {
		bits, err := lineRate(text)
		if err != nil {
			return &UsageError{err}
		}
		r.Rate = bits / 8
	}
	folder, err := e.daemonFolder()
	if err != nil {
		return err
	}
	set, err := control.NewClient(folder).SetQueueRate(ctx, r)
	if err != nil {
		return err
	}
	if r.Rate == 0 {
		fmt.Fprintf(e.Stderr, "weir: %s has the rate of the rules, %sbit/s\n", treeName(r.Interface, r.In), units.Short(float64(set.Rate)*8))
		return nil
	}
	fmt.Fprintf(e.Stderr, "weir: %s has %sbit/s; the rules say %s\n", treeName(r.Interface, r.In), units.Short(float64(set.Rate)*8), units.Short(float64(set.OfRules)*8))
	return nil
}

func treeName(name string, in bool) string {
	s := shaper.Shaper{Interface: name, In: in}
	return s.Name()
}

// lineRate reads the rate of a line in bit/s.
func lineRate(text string) (uint64, error) {
	bits, err := bandwidth(text)
	if err == nil && (bits < 8*shaper.MinRate || bits > 8*shaper.MaxRate) {
		return 0, fmt.Errorf("%s: a rate is from 8K to 100G", text)
	}
	return bits, err
}

// bandwidth reads a rate in bit/s, as in a file of rules, but no percentage.
func bandwidth(text string) (uint64, error) {
	bits, percent, problem := parser.BitRate(text)
	switch {
	case problem != "":
		return 0, errors.New(problem)
	case percent > 0:
		return 0, fmt.Errorf("%q is not a bandwidth, such as 10M", text)
	}
	return bits, nil
}
