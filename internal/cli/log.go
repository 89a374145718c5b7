package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"weir/internal/fw/control"
	"weir/internal/fw/dataplane"
	"weir/internal/fw/pktrecord"
)

func newLogCommand(env *Env) *cobra.Command {
	var form packetForm
	var limit uint64
	c := &cobra.Command{
		Use:   "log",
		Short: "show the packets that rules with log match",
		Long: `log shows packets as rules log them, from now on: one line for each packet,
crossing and rule that logs, in the form of tcpdump on pflog. A rule with log
logs the packet that makes a state, each packet where no state is kept, and each
that it blocks; one with log (all) every packet of its states, both ways.

A line tells the rule by its number, file and line, then why, what was done,
direction and interface, and the packet: going in as it came, going out with the
addresses and ports that it leaves with. "state" in the place of why is what log
(all) adds. A rule of a ruleset that is not in force any more is an old one.

With -w, pcapng is written, which tcpdump and Wireshark read; a packet's comments
tell what the line does:

    weir log -w - | tcpdump -nr -

Any number of logs may run at a time. Records go through a ring of 2 MiB. What
finds no room there, or comes faster than this command is read, is counted as
lost; no packet is delayed or dropped for it.`,
		Args: usageArgs(noArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := form.check(env.Stdout); err != nil {
				return err
			}
			return env.log(c.Context(), &form, limit)
		},
	}
	formFlags(c, &form)
	c.Flags().Uint64VarP(&limit, "count", "c", 0, "end after so many `records`")
	return c
}

// log prints what rules log until ctx ends.
func (e *Env) log(ctx context.Context, form *packetForm, limit uint64) error {
	shown, err := shownInterfaces(control.AnyInterface)
	if err != nil {
		return err
	}
	v := packetView{
		form: form, file: pktrecord.Form{Snap: dataplane.LogBytes + etherHeader, Interfaces: shown}, limit: limit,
		begun: "reading what rules log",
	}
	return e.show(ctx, &v, func(ctx context.Context, c *control.Client) (io.ReadCloser, error) { return c.Log(ctx) })
}
