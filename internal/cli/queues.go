package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/fw/view"
)

// queuePause is the time over which the rates of queues are measured.
const queuePause = time.Second

// queueTop is how many connections of each queue -v prints unless --top says otherwise.
const queueTop = 5

// queuesTask is what weir queues is asked for.
type queuesTask struct {
	follow, json, verbose bool
	sort                  string
	top                   int
}

func newQueuesCommand(env *Env) *cobra.Command {
	t := &queuesTask{}
	c := &cobra.Command{
		Use:   "queues",
		Short: "show the queues of the rules, with rates, drops and backlog",
		Long: `queues prints the queues of each interface and direction. Rates are measured for a second.
Bytes are those on the line, with what packets take beyond their headers.

Dropped packets are those for which their connection's queue had no room; lost are their bytes.
Marked ones told their receiver of congestion instead (ECN). The backlog is what connections
have sent beyond their share; no packet waits. Hosts and connections are those with a backlog.

RTT is the median and the 99th percentile of the round-trip times of TCP in the last 8 to 16
seconds: from where a segment passes the queue until its acknowledgement comes back. For what
leaves that is the way beyond the interface, for what comes in the way behind the box.

-v also prints what each queue gets if all want as much as they can get (share), what it has
got beyond that because others wanted less (borrowed), and the connections with the greatest
backlog in each queue, the sender first: what each gets at present (given), the host in whose
share it is, and the packets that it has lost since the queues were loaded. Its packets and bytes
are those of its state. A connection that has sent nothing for a moment is not shown. At the end
it says how the timer of the queues does, and how much memory the queues take.

The last lines say which engine each tree has, why, and what it costs, and what the timer takes
for each packet; weir bench measures what the packet itself takes. With the engine queue the
kernel holds the packets: bytes are then those of frames, and the backlog is what waits. The
kernel does not count hosts and the bytes of dropped packets, and a bfifo no connections: -
stands for that. docs/queues.md has more.

-f prints again every second until it is interrupted, in the form of pftop's queue view: a line
for each queue, with short numbers. BW is its share, QLEN_B its backlog in bytes. pf's suspends
have no place here: no queue is ever suspended. --sort prints the queues of each interface with
the largest value first, and chooses the connections of -v by it. With -f and --json
each second is a line with one object.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if t.sort != "" && !slices.Contains(view.QueueOrders, t.sort) {
				return &UsageError{fmt.Errorf("--sort takes %s, not %q", strings.Join(view.QueueOrders, ", "), t.sort)}
			}
			if t.top < 0 {
				return &UsageError{errors.New("--top takes a number of connections")}
			}
			return env.queues(c.Context(), t)
		},
	}
	c.Flags().BoolVarP(&t.follow, "follow", "f", false, "print again every second until interrupted")
	c.Flags().BoolVarP(&t.verbose, "verbose", "v", false, "print shares, connections and the timer too")
	c.Flags().StringVar(&t.sort, "sort", "", "print the largest first, by `what`: "+strings.Join(view.QueueOrders, ", "))
	c.Flags().IntVar(&t.top, "top", queueTop, "with -v: so many connections of each queue")
	jsonFlag(c, &t.json)
	return c
}

// queues prints the queues once, or with --follow again and again.
func (e *Env) queues(ctx context.Context, t *queuesTask) error {
	r, err := e.reader()
	if err != nil {
		return err
	}
	defer r.Close()
	read := r.Queues
	if t.verbose {
		read = r.QueuesInFull
	}
	before, err := read()
	if err != nil {
		return err
	}
	measured := !t.json || t.verbose || t.follow || t.sort == "rate"
	for {
		now := before
		if measured && (t.follow || len(before.Trees) > 0) {
			if !pause(ctx, queuePause) {
				return nil
			}
			if now, err = read(); err != nil {
				return err
			}
		}
		if t.follow && !t.json && isTerminal(e.Stdout) {
			fmt.Fprint(e.Stdout, "\x1b[H\x1b[2J")
		}
		if err := e.printQueues(t, now, &before); err != nil || !t.follow {
			return err
		}
		before = now
	}
}

// printQueues prints queues with their rates since before. It leaves now as it is.
func (e *Env) printQueues(t *queuesTask, now view.Queues, before *view.Queues) error {
	shown := now.Copy()
	shown.Measure(before)
	shown.Sort(t.sort)
	shown.KeepTop(t.top, t.sort)
	if t.json {
		return e.printFollowed(shown, t.follow)
	}
	err := shown.Print(e.Stdout, view.QueueForm{Verbose: t.verbose, Short: t.follow, Flat: t.sort != ""})
	if t.follow && err == nil {
		_, err = fmt.Fprintln(e.Stdout)
	}
	return err
}
