package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/fw/control"
	"weir/internal/fw/dataplane"
	"weir/internal/fw/pktrecord"
)

func newLogCommand(env *Env) *cobra.Command {
	var form packetForm
	var limit uint64
	var pflog string
	c := &cobra.Command{
		Use:   "log",
		Short: "show the packets that rules with log match",
		Long: `log shows logged packets from now on, in the form of tcpdump on pflog: one line for
each packet, crossing and rule. A rule with log logs the packet that makes a state,
every packet that keeps no state, and every packet that it blocks. A rule with
log (all) logs every packet of its states, in both directions.

A line names the rule by number, file and line, then the reason, the verdict, the
direction and the interface. The packet follows: incoming packets as they arrived,
outgoing ones with the addresses and ports that they leave with. The reason "state"
marks what log (all) adds. "old" marks a rule that is no longer in force.

-i pflogN shows only what rules with log (to pflogN) match; those that name none log to
pflog0. There are no such interfaces. A rule with log (user) adds the user whose socket
sends the packet, or that it is for. Later packets of its state have none.

-w writes pcapng for tcpdump and Wireshark. The comments of a packet say what the
line says:

    weir log -w - | tcpdump -nr -

Any number of logs may run at once. Records pass through a ring of 2 MiB. Records
that find no room, or that nobody reads in time, are counted as lost. Logging never
delays or drops a packet.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := form.check(env.Stdout); err != nil {
				return err
			}
			only, err := pflogNumber(pflog)
			if err != nil {
				return err
			}
			return env.log(c.Context(), &form, limit, only)
		},
	}
	formFlags(c, &form)
	c.Flags().StringVarP(&pflog, "interface", "i", "", "only what rules log to `pflogN`")
	c.Flags().Uint64VarP(&limit, "count", "c", 0, "stop after this number of `records`")
	return c
}

// pflogNumber returns the number of pflogN; nil if there is no name.
func pflogNumber(name string) (*int, error) {
	if name == "" {
		return nil, nil
	}
	digits, ok := strings.CutPrefix(name, "pflog")
	n, err := strconv.ParseUint(digits, 10, 8)
	if !ok || err != nil {
		return nil, &UsageError{fmt.Errorf("%q is not pflog and a number up to 255", name)}
	}
	number := int(n)
	return &number, nil
}

// log prints logged packets until ctx ends: those that rules log to pflog only, or all if it
// is nil.
func (e *Env) log(ctx context.Context, form *packetForm, limit uint64, pflog *int) error {
	shown, err := shownInterfaces(control.AnyInterface)
	if err != nil {
		return err
	}
	v := packetView{
		form: form, file: pktrecord.Form{Snap: dataplane.LogBytes + etherHeader, Interfaces: shown}, limit: limit,
		begun: "reading what rules log",
	}
	if pflog != nil {
		v.wants = func(r *pktrecord.Record) bool { return r.Rule != nil && r.Rule.Pflog == *pflog }
	}
	return e.show(ctx, &v, func(ctx context.Context, c *control.Client) (io.ReadCloser, error) { return c.Log(ctx) })
}
