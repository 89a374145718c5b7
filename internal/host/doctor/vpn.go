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

// VPN says which cores work for the tunnels of weir vpn run, and what limits them.
type VPN struct {
	Tunnels []VPNTunnel `json:"tunnels"`
	Cores   []VPNCore   `json:"cores"`
	Missing []string    `json:"missing,omitempty"` // what could not be read
}

// VPNTunnel is a tunnel with who carries it.
type VPNTunnel struct {
	Interface string        `json:"interface"`
	Engine    string        `json:"engine"`
	Workers   []WorkerPlace `json:"workers"`
	Queues    []TunnelQueue `json:"queues"` // of the cards that its outer packets come by
	// QueueLost counts packets that found no room in the tunnel's interface, SocketLost
	// datagrams that found none in the sockets of its port; per second.
	QueueLost  float64    `json:"queue_lost_per_second"`
	SocketLost float64    `json:"socket_lost_per_second"`
	Limits     []VPNLimit `json:"limits"`
}

// WorkerPlace is a worker of a tunnel. Its number is that of its queue of the tunnel's
// interface.
type WorkerPlace struct {
	Number  int      `json:"number"`
	Thread  int      `json:"thread,omitempty"`
	Allowed string   `json:"allowed"`         // cores it may run on
	CPU     int      `json:"cpu"`             // core it ran on last
	Time    *float64 `json:"time,omitempty"`  // share of a core's time; nil: unknown
	Sends   float64  `json:"sends_bits"`      // bits/s inside the tunnel
	Takes   float64  `json:"receives_bits"`   // bits/s inside the tunnel
	Lost    float64  `json:"lost_per_second"` // packets
}

// TunnelQueue is a receive queue of a card that a tunnel's outer packets come by.
type TunnelQueue struct {
	QueuePlace
	Bits *float64 `json:"receives_bits,omitempty"` // bits/s of all that it receives
	Lost float64  `json:"lost_per_second"`         // packets that found no room in the card
}

// VPNCore is a core with its work for tunnels.
type VPNCore struct {
	CPU      int      `json:"cpu"`
	Busy     float64  `json:"busy"`
	Packets  float64  `json:"packets"`  // share of its time that packets took in the kernel
	Receives []string `json:"receives"` // queues of cards
	Runs     []string `json:"runs"`     // workers
}

// VPNLimit is what keeps a tunnel from carrying more.
type VPNLimit struct {
	What   string `json:"what"` // "core", "link", "member" (of a link aggregation group)
	Name   string `json:"name"` // "cpu3", "wan0"
	Says   string `json:"says"`
	Remedy string `json:"remedy,omitempty"`
}

// Tunnels builds the tables from a snapshot.
func Tunnels(s *Snapshot) *VPN {
	v := newView(s)
	all := &VPN{Tunnels: []VPNTunnel{}, Cores: []VPNCore{}}
	if why := v.Unreadable["vpn"]; why != "" {
		all.Missing = append(all.Missing, "the tunnels: "+why)
	}
	if !v.sampled {
		return all
	}
	for i := range v.After.VPN {
		all.Tunnels = append(all.Tunnels, v.tunnelWork(&v.After.VPN[i]))
	}
	for _, c := range v.cores {
		all.Cores = append(all.Cores, vpnCore(c, all.Tunnels))
	}
	return all
}

// vpnOf returns what the tunnel of an interface has carried; nil: it is not weir's, or not
// read.
func (v *view) vpnOf(name string) *VPNCount {
	if !v.sampled {
		return nil
	}
	return vpnIn(v.After.VPN, name)
}

func vpnIn(all []VPNCount, name string) *VPNCount {
	if i := slices.IndexFunc(all, func(c VPNCount) bool { return c.Interface == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

func (v *view) tunnelWork(now *VPNCount) VPNTunnel {
	t := VPNTunnel{Interface: now.Interface, Engine: now.Engine, Workers: []WorkerPlace{}, Queues: []TunnelQueue{}, Limits: []VPNLimit{}}
	then := vpnIn(v.Before.VPN, now.Interface)
	if then == nil {
		return t // it has just been made
	}
	t.SocketLost = float64(Grown(now.SocketLost, then.SocketLost)) / v.Seconds
	if link, counted := v.link(t.Interface); counted {
		t.QueueLost = float64(link.TxDropped) / v.Seconds
	}
	for i := range now.Workers {
		w := &now.Workers[i]
		if k := slices.IndexFunc(then.Workers, func(o VPNWorker) bool { return o.Queue == w.Queue }); k >= 0 {
			t.Workers = append(t.Workers, v.workerPlace(w, &then.Workers[k]))
		}
	}
	cards := v.cardsBelow(now.Via)
	for _, n := range cards {
		lost, _ := v.lost(n)
		for q := range max(n.queueCount(), len(n.queues)) {
			p := TunnelQueue{QueuePlace: v.placeOf(n, q)}
			if p.Share != nil {
				bits := *p.Share * 8 * float64(n.link.RxBytes) / v.Seconds
				p.Bits, p.Lost = &bits, *p.Share*float64(lost)/v.Seconds
			}
			t.Queues = append(t.Queues, p)
		}
	}
	t.Limits = append(v.coreLimits(&t), v.linkLimits(&t, cards)...)
	return t
}

func (v *view) workerPlace(now, then *VPNWorker) WorkerPlace {
	rate := func(a, b uint64) float64 { return float64(Grown(a, b)) / v.Seconds }
	p := WorkerPlace{
		Number: now.Queue, Thread: now.Thread, Allowed: now.CPUs, CPU: now.CPU,
		Sends: 8 * rate(now.SentBytes, then.SentBytes), Takes: 8 * rate(now.ReceivedBytes, then.ReceivedBytes),
		Lost: rate(now.SentLost, then.SentLost) + rate(now.ReceivedLost, then.ReceivedLost),
	}
	if only, err := cpulist.Parse(now.CPUs); err == nil && len(only) == 1 {
		p.CPU = only[0]
	}
	if c := v.core(p.CPU); c != nil && c.ticks > 0 && now.Thread == then.Thread {
		time := min(1, float64(Grown(now.Ticks, then.Ticks))/float64(c.ticks))
		p.Time = &time
	}
	return p
}

// cardsBelow returns the cards below interfaces: below VLANs and PPPoE sessions, and the
// members of groups and bridges.
func (v *view) cardsBelow(names []string) (all []*nic) {
	for _, name := range names {
		if d := v.device(name); d != nil && d.Kind == "ppp" {
			name = d.Parent
		}
		name = v.bottom(name)
		for _, n := range v.nics {
			if (n.Name == name || name != "" && n.Master == name) && !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
	}
	return all
}

// Shares of a core's time from which on a worker, or packets, count as what fills it.
const partOfFull = 0.1

// coreLimits names the full cores that work for a tunnel.
func (v *view) coreLimits(t *VPNTunnel) (all []VPNLimit) {
	for _, c := range v.cores {
		if c.busy < full {
			continue
		}
		var parts []string
		var most *WorkerPlace
		for i := range t.Workers {
			w := &t.Workers[i]
			if w.CPU != c.ID || w.Time == nil || *w.Time < partOfFull {
				continue
			}
			parts = append(parts, fmt.Sprintf("runs worker %d of %s (%s)", w.Number, t.Interface, percent(*w.Time)))
			if most == nil || *w.Time > *most.Time {
				most = w
			}
		}
		receives := false
		for i := range t.Queues {
			q := &t.Queues[i]
			if len(q.Served) > 0 && q.Served[0] == c.ID && c.network() >= partOfFull && (q.Share == nil || *q.Share >= partOfFull) {
				parts = append(parts, fmt.Sprintf("receives queue %d of %s (packets take %s)", q.Queue, q.Interface, percent(c.network())))
				receives = true
			}
		}
		if len(parts) == 0 {
			continue
		}
		all = append(all, VPNLimit{
			What: "core", Name: c.name(), Says: fmt.Sprintf("%s is full (%s): it %s", c.name(), percent(c.busy), join(parts)), Remedy: v.otherCore(t, c, most, receives),
		})
	}
	return all
}

// otherCore says what a full core could leave to another one.
func (v *view) otherCore(t *VPNTunnel, c *core, w *WorkerPlace, receives bool) string {
	to := v.idlest(c)
	switch {
	case to == nil:
		return "no core has room"
	case w != nil && (receives || *w.Time < busy):
		return fmt.Sprintf("weir vpn affinity set %s:%d=%d", t.Interface, w.Number, to.ID)
	case w != nil:
		return "one connection stays with one worker: more connections use more of them"
	}
	return "weir affinity shows who may receive it; packets of one tunnel are one flow, which one queue receives"
}

// idlest returns the core with the most room besides c; nil if none has any.
func (v *view) idlest(c *core) (to *core) {
	for _, o := range v.cores {
		if o != c && o.busy < working && !o.Isolated && (to == nil || o.busy < to.busy) {
			to = o
		}
	}
	return to
}

// linkLimits names the full links below a tunnel.
func (v *view) linkLimits(t *VPNTunnel, cards []*nic) (all []VPNLimit) {
	for _, n := range cards {
		share, sends, known := n.wire(v.Seconds)
		if !known || share < linkFull {
			continue
		}
		does := "receives"
		if sends {
			does = "sends"
		}
		l := VPNLimit{What: "link", Name: n.Name, Says: fmt.Sprintf("%s is full: it %s %s of %s", n.Name, does, percent(share), bitRate(float64(n.Mbit)*1e6))}
		if group := v.device(n.Master); group != nil && group.Bond != nil {
			l.What = "member"
			l.Says = fmt.Sprintf("%s, a member of %s, is full: it %s %s of %s", n.Name, group.Name, does, percent(share), bitRate(float64(n.Mbit)*1e6))
			l.Remedy = fmt.Sprintf("the outer packets of %s to one peer are one flow for each port, which one member carries: a wide link to another weir uses several, or a faster link", t.Interface)
		}
		all = append(all, l)
	}
	return all
}

func vpnCore(c *core, tunnels []VPNTunnel) VPNCore {
	k := VPNCore{CPU: c.ID, Busy: c.busy, Packets: c.network(), Receives: []string{}, Runs: []string{}}
	for i := range tunnels {
		t := &tunnels[i]
		for j := range t.Queues {
			q := &t.Queues[j]
			name := q.name()
			if slices.Contains(q.Served, c.ID) && !slices.Contains(k.Receives, name) {
				k.Receives = append(k.Receives, name)
			}
		}
		k.Runs = append(k.Runs, t.on(c.ID)...)
	}
	return k
}

// name is how the table of cores calls a queue.
func (q *TunnelQueue) name() string { return fmt.Sprintf("%s:%d", q.Interface, q.Queue) }

// Receives reports whether packets of the tunnel come by a queue, which is named as in the table of cores.
func (t *VPNTunnel) Receives(queue string) bool {
	return slices.ContainsFunc(t.Queues, func(q TunnelQueue) bool { return q.name() == queue })
}

// on lists the workers that a core runs: those that may run nowhere else, and those that
// ran there last and took some time.
func (t *VPNTunnel) on(cpu int) (names []string) {
	for i := range t.Workers {
		w := &t.Workers[i]
		takes := w.Time != nil && *w.Time >= 0.01
		if only, err := cpulist.Parse(w.Allowed); w.CPU == cpu && (takes || err == nil && len(only) == 1) {
			name := fmt.Sprintf("%s:%d", t.Interface, w.Number)
			if takes {
				name += " (" + percent(*w.Time) + ")"
			}
			names = append(names, name)
		}
	}
	return names
}

// Print writes the tables worker → core, queue → core and core → work, and what limits
// each tunnel.
func (a *VPN) Print(w io.Writer) error {
	if len(a.Tunnels) == 0 {
		p := &textout.Lines{W: w}
		p.Line("%s", cmp.Or(strings.Join(a.Missing, "; "), "weir vpn run keeps no tunnel here"))
		return p.Err
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	a.printWorkers(t)
	a.printQueues(t)
	fmt.Fprintln(t)
	fmt.Fprintln(t, "CORE\tBUSY\tPACKETS\tRECEIVES\tWORKERS")
	for i := range a.Cores {
		c := &a.Cores[i]
		fmt.Fprintf(t, "cpu%d\t%s\t%s\t%s\t%s\n", c.CPU, percent(c.Busy), percent(c.Packets), cmp.Or(strings.Join(c.Receives, " "), "-"), cmp.Or(strings.Join(c.Runs, " "), "-"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	p := &textout.Lines{W: w}
	p.Line("")
	for i := range a.Tunnels {
		a.Tunnels[i].printLimits(p)
	}
	if len(a.Missing) > 0 {
		p.Line("Not readable here: %s", brief(a.Missing))
	}
	return p.Err
}

func gbit(bits float64) string { return strconv.FormatFloat(bits/1e9, 'f', 3, 64) }

func (a *VPN) printWorkers(t io.Writer) {
	fmt.Fprintln(t, "WORKER\tTHREAD\tMAY RUN ON\tRAN ON\tTIME\tSENDS GBIT/S\tRECEIVES GBIT/S\tLOST/S")
	for i := range a.Tunnels {
		n := &a.Tunnels[i]
		if len(n.Workers) == 0 {
			fmt.Fprintf(t, "%s\tthe kernel's\t-\t-\t-\t-\t-\t-\n", n.Interface)
		}
		for j := range n.Workers {
			w := &n.Workers[j]
			fmt.Fprintf(t, "%s:%d\t%d\t%s\tcpu%d\t%s\t%s\t%s\t%s\n", n.Interface, w.Number, w.Thread, cmp.Or(w.Allowed, "-"), w.CPU, shareOr(w.Time),
				gbit(w.Sends), gbit(w.Takes), units.Short(w.Lost))
		}
	}
}

func (a *VPN) printQueues(t io.Writer) {
	fmt.Fprintln(t)
	fmt.Fprintln(t, "TUNNEL\tCARD'S QUEUE\tIRQ\tMAY GO TO\tSERVED BY\tRECEIVES GBIT/S\tSHARE\tLOST/S")
	for i := range a.Tunnels {
		n := &a.Tunnels[i]
		for j := range n.Queues {
			q := &n.Queues[j]
			rate := "-"
			if q.Bits != nil {
				rate = gbit(*q.Bits)
			}
			fmt.Fprintf(t, "%s\t%s:%d\t%s\t%s\t%s\t%s\t%s\t%s\n", n.Interface, q.Interface, q.Queue, q.source(), cmp.Or(q.Allowed, "-"), cmp.Or(cpulist.Format(q.Served), "-"),
				rate, shareOr(q.Share), units.Short(q.Lost))
		}
	}
}

func (t *VPNTunnel) printLimits(p *textout.Lines) {
	if t.QueueLost > 0 {
		p.Line("%s: its queues drop %s packets/s: its workers do not keep up", t.Interface, units.Short(t.QueueLost))
	}
	if t.SocketLost > 0 {
		p.Line("%s: the sockets of its port drop %s datagrams/s: its workers do not keep up", t.Interface, units.Short(t.SocketLost))
	}
	for _, l := range t.Limits {
		p.Line("%s: %s", t.Interface, l.Says)
		if l.Remedy != "" {
			p.Line("  > %s", l.Remedy)
		}
	}
	if len(t.Limits) == 0 {
		p.Line("%s: no core that works for it is full here, and no link below it that tells its speed", t.Interface)
	}
}
