package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/fw/control"
)

func newGatewaysCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "gateways",
		Short: "show the gateways that rules choose, and which are down",
		Long: `gateways shows the gateways that route-to and reply-to name, and how they are watched.
The daemon asks each once a second: by ARP or Neighbor Discovery, or by pings through it.

    set gateway 192.0.2.1 monitor ping 198.51.100.9     # or arp (the default), or none
    set gateway 192.0.2.1 monitor arp states kill       # or keep (the default)

A gateway is down if it leaves five requests in a row without an answer, or six of thirty.
It is up again after ten answers in a row. Rules with several gateways do not choose one
that is down, unless all are. Its connections stay, or are ended with states kill.

Pings leave by the gateway whatever the routes say. The rules must pass them, as all that
the box sends: pass out inet proto icmp from self.`,
	}
	return printing(env, c, func(ctx context.Context, _ []string) ([]control.Gateway, error) {
		folder, err := env.daemonFolder()
		if err != nil {
			return nil, err
		}
		return control.NewClient(folder).Gateways(ctx)
	}, func(all []control.Gateway) error { return printGateways(env.Stdout, all, time.Now()) })
}

func printGateways(w io.Writer, all []control.Gateway, now time.Time) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "the rules name no gateway")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "GATEWAY\tINTERFACE\tMONITOR\tSTATE\tFOR\tLOSS\tRTT\tSTATES\tWHY")
	for i := range all {
		g := &all[i]
		monitor := g.Monitor
		if g.Target.IsValid() {
			monitor += " " + g.Target.String()
		}
		since, loss, rtt, states := "-", "-", "-", "keep"
		if !g.Since.IsZero() {
			since = now.Sub(g.Since).Round(time.Second).String()
		}
		if g.Monitor != "none" {
			loss = fmt.Sprintf("%.0f%%", 100*g.Loss)
		}
		if g.RTT > 0 {
			rtt = fmt.Sprintf("%.2f ms", g.RTT.Seconds()*1000)
		}
		if g.Kill {
			states = "kill"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", g.Address, dash(g.Interface), monitor, g.State, since, loss, rtt, states, g.Why)
	}
	return t.Flush()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
