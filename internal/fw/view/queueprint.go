package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/htb"
	"weir/internal/units"
)

// A QueueForm is how queues are printed.
type QueueForm struct {
	Verbose bool // shares, what is borrowed, connections and the timer
	Short   bool // a line for each queue, with short numbers, as pftop has it
	Flat    bool // not as trees: they are sorted
}

// Print prints the queues with the rates that Measure has set.
func (q *Queues) Print(w io.Writer, form QueueForm) error {
	if len(q.Trees) == 0 {
		_, err := fmt.Fprintln(w, "the rules define no queues")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for i := range q.Trees {
		tree := &q.Trees[i]
		columns := queueColumns(form)
		fmt.Fprint(t, tree.title(form))
		for _, c := range columns {
			fmt.Fprint(t, "\t", c.title)
		}
		fmt.Fprintln(t)
		for k := range tree.Queues {
			one := &tree.Queues[k]
			indent := one.Level + 1
			if form.Flat {
				indent = 1
			}
			fmt.Fprint(t, strings.Repeat("  ", indent), one.Name)
			for _, c := range columns {
				if tree.knows(c.title) {
					fmt.Fprint(t, "\t", c.value(one))
				} else {
					fmt.Fprint(t, "\t-")
				}
			}
			fmt.Fprintln(t)
		}
		if tree.SetBy != "" {
			fmt.Fprintf(t, "  rate set %s: %s of %s\n", tree.SetBy, bitRate(float64(tree.Rate)), bitRate(float64(tree.OfRules)))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if !form.Short {
		if err := q.printEngines(w); err != nil {
			return err
		}
	}
	if form.Verbose {
		if err := q.printWhy(w); err != nil {
			return err
		}
		if err := q.printConnections(w); err != nil {
			return err
		}
	}
	return q.tell(w, form)
}

// knows reports whether a column is known of a tree. If the kernel holds its packets, it counts neither the hosts nor the
// bytes that it drops, and a bfifo no connections.
func (t *QueueTree) knows(column string) bool {
	switch column {
	case "HOSTS", "LOST", "DROP_B":
		return t.Holds == ""
	case "CONNECTIONS":
		return !htb.OnlyFIFO(t.Holds)
	}
	return true
}

// title returns what heads the lines of a tree: "wan0 out", with -v also how it works.
func (t *QueueTree) title(form QueueForm) string {
	title := t.Interface + " out"
	if t.In {
		title = t.Interface + " in"
	}
	if form.Verbose && t.Engine != "" {
		title += " (" + t.Engine + ")"
	}
	return title
}

// printEngines says what keeps each tree within its rates.
func (q *Queues) printEngines(w io.Writer) error {
	for i := range q.Trees {
		t := &q.Trees[i]
		if t.Absent {
			if _, err := fmt.Fprintf(w, "%s: not in force: %s does not exist\n", t.title(QueueForm{}), t.Interface); err != nil {
				return err
			}
			continue
		}
		if t.Engine == "" {
			continue
		}
		engine := t.Engine
		if t.Holds != "" {
			engine += " (" + t.Holds + ")"
		}
		if t.Core != "" {
			engine += " on core " + t.Core
		}
		if _, err := fmt.Fprintf(w, "%s: engine %s: %s; %s\n", t.title(QueueForm{}), engine, t.Why, t.Cost); err != nil {
			return err
		}
	}
	return nil
}

// A queueColumn is a value of each queue.
type queueColumn struct {
	title string
	value func(*Queue) string
}

// queueColumns returns the columns of a form.
func queueColumns(form QueueForm) []queueColumn {
	number := func(of func(*Queue) uint64) func(*Queue) string {
		return func(q *Queue) string {
			if form.Short {
				return units.Short(float64(of(q)))
			}
			return fmt.Sprint(of(q))
		}
	}
	share := queueColumn{"SHARE", func(q *Queue) string { return bitRate(float64(q.Share)) }}
	rate := queueColumn{"RATE", func(q *Queue) string { return bitRate(q.Rate) }}
	borrowed := queueColumn{"BORROWED", func(q *Queue) string { return bitRate(q.Borrowed) }}
	packets := queueColumn{"PACKETS", number(func(q *Queue) uint64 { return q.Packets })}
	bytes := queueColumn{"BYTES", number(func(q *Queue) uint64 { return q.Sent })}
	drops := queueColumn{"DROPPED", number(func(q *Queue) uint64 { return q.Drops })}
	lost := queueColumn{"LOST", number(func(q *Queue) uint64 { return q.Lost })}
	marked := queueColumn{"MARKED", number(func(q *Queue) uint64 { return q.Marked })}
	backlog := queueColumn{"BACKLOG", number(func(q *Queue) uint64 { return q.Backlog })}
	hosts := queueColumn{"HOSTS", number(func(q *Queue) uint64 { return uint64(q.Hosts) })}
	connections := queueColumn{"CONNECTIONS", number(func(q *Queue) uint64 { return uint64(q.Connections) })}
	rtt := queueColumn{"RTT", func(q *Queue) string { return rttText(&q.RTT) }}
	switch {
	case form.Short:
		share.title, packets.title, drops.title, lost.title = "BW", "PKTS", "DROP_P", "DROP_B"
		backlog.title, borrowed.title = "QLEN_B", "BORROW"
		return []queueColumn{share, rate, packets, bytes, drops, lost, marked, backlog, borrowed, rtt}
	case form.Verbose:
		return []queueColumn{share, rate, borrowed, packets, bytes, drops, lost, marked, backlog, hosts, connections, rtt}
	}
	return []queueColumn{rate, packets, bytes, drops, marked, backlog, hosts, connections, rtt}
}

// rttText returns median and 99th percentile: "31/45ms".
func rttText(r *dataplane.QueueRTT) string {
	if r.Samples == 0 {
		return "-"
	}
	median, p99 := milliseconds(r.Median), milliseconds(r.P99)
	if r.P99 < 0.5 {
		return p99 + "ms"
	}
	return median + "/" + p99 + "ms"
}

// milliseconds writes a time whose part below a millisecond is not known.
func milliseconds(ms float64) string {
	if ms < 0.5 {
		return "<1"
	}
	return fmt.Sprintf("%.0f", ms)
}

// bitRate returns bytes per second as bit/s.
func bitRate(bytes float64) string { return units.Short(bytes * 8) }

// printWhy says why the queues have dropped packets.
func (q *Queues) printWhy(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	any := false
	for i := range q.Trees {
		for k := range q.Trees[i].Queues {
			queue := &q.Trees[i].Queues[k]
			if queue.Why == (dataplane.QueueDrops{}) {
				continue
			}
			if !any {
				fmt.Fprintln(t, "\nDROPPED\tFULL\tYOUNG\tDEAF\tTOLD")
				any = true
			}
			fmt.Fprintf(t, "%s %s\t%d\t%d\t%d\t%d\n", q.Trees[i].title(QueueForm{}), queue.Name, queue.Why.Full, queue.Why.Young, queue.Why.Deaf, queue.Why.Told)
		}
	}
	return t.Flush()
}

// printConnections prints the connections that the queues show, those of a queue together.
func (q *Queues) printConnections(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	any := false
	for i := range q.Trees {
		for k := range q.Trees[i].Queues {
			queue := &q.Trees[i].Queues[k]
			for n := range queue.Top {
				if !any {
					fmt.Fprintln(t, "\nQUEUE\tRATE\tGIVEN\tBACKLOG\tPACKETS\tBYTES\tDROPPED\tLOST\tHOST\tCONNECTION")
					any = true
				}
				c := &queue.Top[n]
				fmt.Fprintf(t, "%s %s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", q.Trees[i].title(QueueForm{}), queue.Name, bitRate(c.Rate), bitRate(float64(c.Given)),
					c.Backlog, c.Packets, c.Bytes, c.Lost.Packets, c.Lost.Bytes, c.host(), c.what())
			}
		}
	}
	return t.Flush()
}

func (c *QueueConnection) host() string {
	if !c.Host.IsValid() {
		return "-"
	}
	return c.Host.String()
}

// what returns what a count counts.
func (c *QueueConnection) what() string {
	switch {
	case c.Way != "":
		return c.Way
	case c.Kind == dataplane.QueueOfHost:
		return "all of the host"
	case c.Kind == dataplane.QueueOfStateless:
		return "without a state"
	case c.Kind == dataplane.QueueOfRest:
		return "all that have no count of their own"
	}
	return "its state is gone"
}

// tell says how the timer does, and what keeps the queues from doing what they should.
func (q *Queues) tell(w io.Writer, form QueueForm) error {
	shared := uint64(0)
	for i := range q.Trees {
		for k := range q.Trees[i].Queues {
			shared += q.Trees[i].Queues[k].Shared
		}
	}
	var lines []string
	switch cost := q.timerCost(); {
	case form.Verbose:
		lines = append(lines, "", q.timer(), q.room())
	case cost != "" && !form.Short:
		lines = append(lines, "timer: "+cost)
	}
	if shared > 0 {
		lines = append(lines, fmt.Sprintf("%d packets shared a counter with other connections, because there were too many connections", shared))
	}
	if q.Timer.Unserved > 0 {
		lines = append(lines, fmt.Sprintf("the timer came too late %d times; %v of the lines' time was lost", q.Timer.Late, q.Timer.Unserved.Round(time.Millisecond)))
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// room says what the queues need of memory.
func (q *Queues) room() string {
	return fmt.Sprintf("memory: %s MiB, with counts for %s", units.Digits(float64(q.Room.Bytes)/(1<<20), 2), units.Plural(int(q.Room.Connections), "connection"))
}

// timer says how the timer does.
func (q *Queues) timer() string {
	t := &q.Timer
	each := time.Duration(0)
	if t.Runs > 0 {
		each = t.Spent / time.Duration(t.Runs)
	}
	text := fmt.Sprintf("timer: %d runs, %v each, the longest %v, %d late; looks at %s, %d with backlog", t.Runs,
		each.Round(10*time.Nanosecond), t.Longest.Round(100*time.Nanosecond), t.Late, units.Plural(int(t.Active), "connection"), t.Busy)
	if cost := q.timerCost(); cost != "" {
		text += "; " + cost
	}
	return text
}

// timerCost says what the timer takes for each packet; "": it is not known, or no packets are counted.
func (q *Queues) timerCost() string {
	switch counted := slices.ContainsFunc(q.Trees, func(t QueueTree) bool { return t.Holds == "" && !t.Absent }); {
	case q.TimerCost > 0:
		return units.Digits(q.TimerCost, 2) + " ns for each packet"
	case q.Measured && counted:
		return fmt.Sprintf("too few packets to say what it takes for each (%s in a second at least)", units.Plural(leastPackets, "packet"))
	}
	return ""
}
