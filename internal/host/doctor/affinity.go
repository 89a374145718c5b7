package doctor

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"weir/internal/host/cpulist"
	"weir/internal/textout"
	"weir/internal/units"
)

// Affinity says what work each core does, and which cores work for each queue.
type Affinity struct {
	Cores    []CoreWork     `json:"cores"`
	Queues   []QueuePlace   `json:"queues"`
	Sessions []SessionPlace `json:"sessions"` // PPPoE sessions
	Tunnels  []string       `json:"tunnels"`  // interfaces whose work the kernel gives to any core
	// Missing lists what could not be read.
	Missing []string `json:"missing,omitempty"`
}

// CoreWork is one core and the work it does.
type CoreWork struct {
	CPU      int      `json:"cpu"`
	Siblings []int    `json:"siblings,omitempty"` // its hyper-threads, including itself
	Node     *int     `json:"node,omitempty"`
	Busy     *float64 `json:"busy,omitempty"`    // share of its time; nil: unknown
	Softirq  *float64 `json:"softirq,omitempty"` // share of its time spent on packets
	Receives []string `json:"receives"`          // queues whose interrupts come to it, or are allowed only there
	Spread   []string `json:"spread"`            // queues that RPS spreads to it
	Runs     []string `json:"runs"`              // firewall instances, workers of weir's tunnels
}

// QueuePlace is one receive queue and the cores that work for it. On most cards the send
// queue of the same number has the same interrupt.
type QueuePlace struct {
	Interface string   `json:"interface"`
	Queue     int      `json:"queue"`
	IRQ       int      `json:"irq,omitempty"`    // 0: none, or unknown
	Allowed   string   `json:"allowed"`          // cores allowed for the interrupt; "": unknown
	Served    []int    `json:"served,omitempty"` // cores that got the interrupt, or the only ones that can
	Packets   *float64 `json:"packets_per_second,omitempty"`
	Share     *float64 `json:"share,omitempty"`  // share of the interface's packets
	Thread    bool     `json:"thread,omitempty"` // a thread receives it: Allowed is where that thread may run
	RPS       string   `json:"rps"`              // cores that RPS spreads received packets over
	XPS       string   `json:"xps"`              // cores that send through this queue
}

// SessionPlace is a PPPoE session with the queue and cores that receive its packets.
type SessionPlace struct {
	Interface string   `json:"interface"`
	Session   int      `json:"session,omitempty"` // its number; 0: unknown
	Over      string   `json:"over,omitempty"`    // device below the session; "": unknown
	Card      string   `json:"card,omitempty"`    // card below that device
	Queue     *int     `json:"queue,omitempty"`   // nil: unknown, or several
	Share     *float64 `json:"share,omitempty"`   // the queue's share of the card's packets
	Served    []int    `json:"served,omitempty"`
	RPS       string   `json:"rps"`
}

// Affinities builds the tables from a snapshot.
func Affinities(s *Snapshot) *Affinity {
	v := newView(s)
	a := &Affinity{Cores: []CoreWork{}, Queues: []QueuePlace{}, Sessions: []SessionPlace{}, Tunnels: []string{}}
	var o outcome
	for _, n := range v.nics {
		if n.queueCount() == 0 {
			o.lacks(v, "interfaces."+n.Name+".rx_queues")
		}
		for q := range max(n.queueCount(), len(n.queues)) {
			place := v.placeOf(n, q)
			if len(place.Served) == 0 {
				o.lacks(v, fmt.Sprintf("which core serves queue %d of %s", q, n.Name))
			}
			a.Queues = append(a.Queues, place)
		}
	}
	for _, n := range v.up("ppp") {
		if n.Parent == "" {
			o.lacks(v, "interfaces."+n.Name+".parent")
		}
		a.Sessions = append(a.Sessions, v.placeOfSession(n, a.Queues))
	}
	a.Tunnels = append(a.Tunnels, v.tunnels()...)
	if len(v.CPUs) == 0 {
		o.lacks(v, "cpus")
	}
	tunnels := Tunnels(s).Tunnels
	for _, c := range v.CPUs {
		a.Cores = append(a.Cores, v.workOf(c, a.Queues, tunnels))
	}
	if why := v.Unreadable["threads"]; why != "" {
		o.missing = slices.Insert(o.missing, 0, "what the kernel's threads do: "+why)
	}
	a.Missing = o.missing
	return a
}

func (v *view) placeOf(n *nic, queue int) QueuePlace {
	p := QueuePlace{Interface: n.Name, Queue: queue, RPS: v.rps(n, queue)}
	if queue < len(n.XPS) {
		p.XPS = n.XPS[queue]
	}
	if irq := v.irqOf(n.Interface, queue); irq != nil {
		p.IRQ, p.Allowed = irq.Number, irq.Affinity
		p.Served = v.served(irq)
	}
	if thread := n.thread(queue); thread != nil {
		p.Thread, p.Allowed, p.Served = true, thread.CPUs, []int{thread.core()}
	}
	for _, q := range n.queues {
		if q.n == queue {
			rate := float64(q.packets) / v.Seconds
			p.Packets, p.Share = &rate, &q.share
		}
	}
	return p
}

// source says what has the queue received: an interrupt, by its number, or a thread.
func (q *QueuePlace) source() string {
	switch {
	case q.Thread:
		return "thread"
	case q.IRQ > 0:
		return strconv.Itoa(q.IRQ)
	}
	return "-"
}

// placeOfSession finds the queue of a session. The card sees the session as one stream,
// which arrives on one queue: the card's only queue, or the one with most of its packets.
func (v *view) placeOfSession(ppp *Interface, queues []QueuePlace) SessionPlace {
	p := SessionPlace{Interface: ppp.Name, Over: ppp.Parent}
	if ppp.PPPoE != nil {
		p.Session = ppp.PPPoE.Session
	}
	n := v.nic(v.bottom(ppp.Parent))
	if n == nil {
		return p
	}
	p.Card = n.Name
	for i := range queues {
		q := &queues[i]
		if q.Interface == n.Name && (n.queueCount() == 1 || q.Share != nil && *q.Share >= streamed) {
			p.Queue, p.Share, p.Served, p.RPS = &q.Queue, q.Share, q.Served, q.RPS
		}
	}
	return p
}

func (v *view) workOf(c CPU, queues []QueuePlace, tunnels []VPNTunnel) CoreWork {
	w := CoreWork{CPU: c.ID, Siblings: c.Siblings, Node: c.Node, Receives: []string{}, Spread: []string{}, Runs: []string{}}
	if known := v.core(c.ID); known != nil {
		busy, softirq := known.busy, known.network()
		w.Busy, w.Softirq = &busy, &softirq
	}
	for i := range queues {
		p := &queues[i]
		name := fmt.Sprintf("%s:%d", p.Interface, p.Queue)
		for _, id := range p.Served {
			if id == c.ID {
				w.Receives = append(w.Receives, name)
			}
		}
		spread, err := cpulist.Parse(p.RPS)
		if err != nil {
			continue // the bundle was checked when it was read, masks included
		}
		for _, id := range spread {
			if id == c.ID {
				w.Spread = append(w.Spread, name)
			}
		}
	}
	w.Runs = append(w.Runs, v.workersOn(c.ID)...)
	for i := range tunnels {
		w.Runs = append(w.Runs, tunnels[i].on(c.ID)...)
	}
	return w
}

// Print writes the tables core → work, queue → cores and session → queue.
func (a *Affinity) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "CORE\tBUSY\tPACKETS\tNODE\tTHREADS\tRECEIVES\tBY RPS\tRUNS")
	for i := range a.Cores {
		c := &a.Cores[i]
		fmt.Fprintf(t, "cpu%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.CPU, shareOr(c.Busy), shareOr(c.Softirq), numberOr(c.Node),
			cmp.Or(cpulist.Format(c.Siblings), "-"), cmp.Or(strings.Join(c.Receives, " "), "-"), cmp.Or(strings.Join(c.Spread, " "), "-"), cmp.Or(strings.Join(c.Runs, " "), "-"))
	}
	fmt.Fprintln(t)
	fmt.Fprintln(t, "QUEUE\tIRQ\tMAY GO TO\tSERVED BY\tPACKETS/S\tSHARE\tRPS\tXPS")
	for i := range a.Queues {
		q := &a.Queues[i]
		rate := "-"
		if q.Packets != nil {
			rate = units.Short(*q.Packets)
		}
		fmt.Fprintf(t, "%s:%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", q.Interface, q.Queue, q.source(), cmp.Or(q.Allowed, "-"), cmp.Or(cpulist.Format(q.Served), "-"),
			rate, shareOr(q.Share), cmp.Or(q.RPS, "-"), cmp.Or(q.XPS, "-"))
	}
	a.printSessions(t)
	if err := t.Flush(); err != nil {
		return err
	}
	p := &textout.Lines{W: w}
	if len(a.Tunnels) > 0 {
		p.Line("")
		p.Line("%s: the kernel spreads WireGuard's encryption over any cores", join(a.Tunnels))
	}
	if len(a.Missing) > 0 {
		p.Line("")
		p.Line("Not readable here: %s", brief(a.Missing))
	}
	return p.Err
}

func (a *Affinity) printSessions(w io.Writer) {
	if len(a.Sessions) == 0 {
		return
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "PPPOE\tSESSION\tRUNS OVER\tQUEUE\tSHARE\tSERVED BY\tRPS")
	for i := range a.Sessions {
		s := &a.Sessions[i]
		number, queue := "-", "-"
		if s.Session > 0 {
			number = strconv.Itoa(s.Session)
		}
		if s.Queue != nil {
			queue = fmt.Sprintf("%s:%d", s.Card, *s.Queue)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Interface, number, cmp.Or(s.Over, "-"), queue, shareOr(s.Share), cmp.Or(cpulist.Format(s.Served), "-"), cmp.Or(s.RPS, "-"))
	}
}

func shareOr(share *float64) string {
	if share == nil {
		return "-"
	}
	return percent(*share)
}

func numberOr(n *int) string {
	if n == nil {
		return "-"
	}
	return strconv.Itoa(*n)
}
