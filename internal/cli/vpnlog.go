package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/vpn/keeper"
)

func newVPNLogCommand(env *Env) *cobra.Command {
	var follow, asJSON bool
	c := &cobra.Command{
		Use:   "log [INTERFACE]",
		Short: "print what has happened to tunnels: engines, keys, handshakes, endpoints, MTU, errors",
		Long: `log prints what has happened to the tunnels since weir vpn run began: which engine works, keys and
peers that changed, handshakes and those that failed, where peers are, the path MTU, and errors. It
remembers the last 4,000 events; the same one again within a minute is counted, not printed again.

-f goes on with what happens from now on, also after weir vpn run has begun anew. With --json it
prints one object in each line.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			only := ""
			if len(args) > 0 {
				only = args[0]
			}
			return env.tunnelLog(c.Context(), only, follow, asJSON)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what happens from now on")
	jsonFlag(c, &asJSON)
	return c
}

// logPause is the time between two looks at a log that is followed.
const logPause = 300 * time.Millisecond

// tunnelLog prints the log of tunnels.
func (env *Env) tunnelLog(ctx context.Context, only string, follow, asJSON bool) error {
	folder, err := env.daemonFolder()
	if err != nil {
		return err
	}
	var began time.Time
	for after := uint64(0); ; {
		log, err := keeper.ReadLog(ctx, folder, after)
		again := follow && errors.Is(err, keeper.ErrNotRunning) && !began.IsZero()
		if err != nil && !again {
			if follow && ctx.Err() != nil {
				return nil
			}
			return err
		}
		if err == nil && !began.IsZero() && !log.Began.Equal(began) && after > 0 { // another process counts anew
			began, after = log.Began, 0
			continue
		}
		if err == nil {
			began = log.Began
			if n := len(log.Events); n > 0 {
				after = log.Events[n-1].Number
			}
			if err := env.printEvents(log.Events, only, follow, asJSON); err != nil {
				return err
			}
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(logPause):
		}
	}
}

func (env *Env) printEvents(all []keeper.Event, only string, follow, asJSON bool) error {
	chosen := []keeper.Event{}
	for i := range all {
		if only == "" || all[i].Interface == only {
			chosen = append(chosen, all[i])
		}
	}
	switch {
	case asJSON && follow:
		lines := json.NewEncoder(env.Stdout)
		for i := range chosen {
			if err := lines.Encode(&chosen[i]); err != nil {
				return err
			}
		}
		return nil
	case asJSON:
		return env.printJSON(chosen)
	}
	for i := range chosen {
		printEvent(env.Stdout, &chosen[i])
	}
	return nil
}

func printEvent(w io.Writer, e *keeper.Event) {
	who := e.Interface
	if e.Peer != "" {
		who += " " + e.Peer
	}
	fmt.Fprintf(w, "%s %s: %s: %s", e.Time.Format(time.DateTime), who, e.Kind, e.Text)
	if e.Times > 1 {
		fmt.Fprintf(w, " (%d times, until %s)", e.Times, e.Last.Format(time.TimeOnly))
	}
	fmt.Fprintln(w)
}
