package view

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/htb"
	"weir/internal/fw/rundir"
	"weir/internal/fw/shaper"
	"weir/internal/fw/state"
)

// Queues are the trees of queues and how their timer does.
type Queues struct {
	Time  time.Time            `json:"time"`
	Trees []QueueTree          `json:"trees"`
	Timer dataplane.QueueTimer `json:"timer"`
	Room  dataplane.QueueRoom  `json:"room"`
	// TimerCost is the nanoseconds that the timer has taken for each packet, over the time of
	// the rates; 0 if there were few. What the packets themselves take is not in it.
	TimerCost float64 `json:"timer_ns_per_packet,omitempty"`
	Measured  bool    `json:"-"` // Measure has found the same queues in the look before
}

// A QueueTree is what an interface and direction has.
type QueueTree struct {
	Interface string  `json:"interface"`
	In        bool    `json:"in,omitempty"`
	Rate      uint64  `json:"rate"`             // bytes per second of the line, now
	OfRules   uint64  `json:"rate_of_rules"`    // likewise, of the file
	SetBy     string  `json:"set_by,omitempty"` // who has set another rate than the file's
	Absent    bool    `json:"absent,omitempty"` // its interface does not exist now
	Engine    string  `json:"engine"`           // phantom or queue; empty: not known yet
	Why       string  `json:"why"`              // this engine
	Cost      string  `json:"cost"`             // of it
	Holds     string  `json:"holds,omitempty"`  // with queue: the kind of qdisc that holds the packets; empty: none does now
	Device    string  `json:"device,omitempty"` // that has this qdisc
	Core      string  `json:"core,omitempty"`   // that goes on with its packets; empty: those where they come in
	Queues    []Queue `json:"queues"`           // parents before those below them
}

// A Queue is one queue with its counters, in bytes on the line.
type Queue struct {
	Name    string `json:"name"`
	Level   int    `json:"level"` // 0: a root
	Parent  string `json:"parent,omitempty"`
	Default bool   `json:"default,omitempty"`
	Inner   bool   `json:"inner,omitempty"` // it has queues below it, and takes no packets
	dataplane.QueueClass
	Share    uint64            `json:"share"`                               // bytes per second that it gets if all want as much as they can get
	Rate     float64           `json:"bytes_per_second,omitempty"`          // since the look before
	Borrowed float64           `json:"borrowed_bytes_per_second,omitempty"` // of that, what goes beyond the share
	Top      []QueueConnection `json:"top,omitempty"`                       // the connections with the largest values

	said shaper.Class // the rates as the file has them; of a root nothing
}

// A QueueConnection is a count of a queue: one direction of a connection, in most cases.
type QueueConnection struct {
	Kind    dataplane.QueueKind `json:"kind"`
	State   state.Handle        `json:"state,omitempty"`
	Way     string              `json:"way,omitempty"` // its ends, the sender first
	Proto   string              `json:"proto,omitempty"`
	From    *QueueEnd           `json:"from,omitempty"` // the sender
	To      *QueueEnd           `json:"to,omitempty"`
	Host    netip.Addr          `json:"host,omitzero"` // in whose share it is
	Rate    float64             `json:"bytes_per_second"`
	Given   uint64              `json:"given"`             // bytes per second that it gets at present
	Packets uint64              `json:"packets,omitempty"` // of the connection, also those of before it came to this queue
	Bytes   uint64              `json:"bytes,omitempty"`   // likewise; of IP packets
	Backlog uint64              `json:"backlog"`
	Lost    state.Loss          `json:"lost_in_queues"` // its packets, since the queues were loaded

	id   dataplane.QueueCountID
	sent uint64
}

// A QueueEnd is an end of a connection.
type QueueEnd struct {
	Addr    netip.Addr `json:"addr"` // from the first packet
	Port    uint16     `json:"port,omitempty"`
	NewAddr netip.Addr `json:"new_addr,omitzero"` // after translation, if any
	NewPort uint16     `json:"new_port,omitempty"`
}

// Queues returns the queues in force.
func (v *View) Queues() (Queues, error) { return v.queues(false) }

// QueuesInFull returns the queues in force with all their connections.
func (v *View) QueuesInFull() (Queues, error) { return v.queues(true) }

func (v *View) queues(full bool) (q Queues, err error) {
	err = v.read(func(r *reading) error {
		classes, timer, err := r.pins.Queues()
		if err != nil {
			return err
		}
		setBy, err := r.pins.QueueRates(len(r.loaded.Shapers))
		if err != nil {
			return err
		}
		room, err := r.pins.QueueRoom()
		if err != nil {
			return err
		}
		q = Queues{Time: time.Now(), Timer: timer, Room: room, Trees: []QueueTree{}}
		var engines []rundir.Engine
		if err := rundir.ReadJSON(v.folder.Engines(), &engines); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		left := classes
		for i := range r.loaded.Shapers {
			n := len(r.loaded.Shapers[i].Classes)
			if n > len(left) { // another version's
				break
			}
			tree, err := r.queueTree(i, left[:n], engines)
			if err != nil {
				return err
			}
			if i < len(setBy) {
				tree.SetBy = setBy[i].String()
			}
			q.Trees = append(q.Trees, tree)
			left = left[n:]
		}
		if full && len(classes) > 0 {
			return q.connect(r)
		}
		return nil
	})
	return q, err
}

func (r *reading) queueTree(at int, classes []dataplane.QueueClass, engines []rundir.Engine) (QueueTree, error) {
	s := &r.loaded.Shapers[at]
	t := QueueTree{Interface: s.Interface, In: s.In, Rate: classes[0].Max, OfRules: s.Classes[0].Max.Bytes}
	t.Absent = true
	for _, name := range r.names {
		t.Absent = t.Absent && name != s.Interface
	}
	now := s.At(t.Rate)
	shares := now.Shares()
	for i := range engines {
		if e := &engines[i]; e.Interface == s.Interface && e.In == s.In {
			t.Engine, t.Why, t.Cost, t.Holds, t.Device, t.Core = e.Engine.String(), e.Why, e.Engine.Cost(), e.Holds, e.Device, e.Core
		}
	}
	if t.Holds != "" {
		var err error
		if classes, err = heldClasses(s, t.Device, classes); err != nil {
			return t, err
		}
	}
	for i := range s.Classes {
		c := &s.Classes[i]
		one := Queue{Name: c.Name, Default: c.Default, Inner: c.Children > 0, QueueClass: classes[i], Share: shares[i]}
		if c.Parent >= 0 {
			one.said = now.Classes[i]
			if one.said.Bandwidth == (shaper.Rate{}) { // of FreeBSD's priq and dummynet
				one.said.Bandwidth.Bytes = shares[i]
			}
			one.Parent, one.Level = s.Classes[c.Parent].Name, t.Queues[c.Parent].Level+1
		}
		t.Queues = append(t.Queues, one)
	}
	for i := len(t.Queues) - 1; i > 0; i-- { // an inner queue has what those below it have
		up := &t.Queues[s.Classes[i].Parent].QueueClass
		up.Sent, up.Packets, up.Lost, up.Drops = up.Sent+t.Queues[i].Sent, up.Packets+t.Queues[i].Packets, up.Lost+t.Queues[i].Lost, up.Drops+t.Queues[i].Drops
		up.RTT.Add(&t.Queues[i].RTT)
		up.Marked, up.Backlog, up.Hosts, up.Connections = up.Marked+t.Queues[i].Marked, up.Backlog+t.Queues[i].Backlog, up.Hosts+t.Queues[i].Hosts, up.Connections+t.Queues[i].Connections
	}
	return t, nil
}

// heldClasses returns what the kernel has counted of a tree whose packets it holds at a device, with the
// rates of before. It has counted nothing if the device is gone.
func heldClasses(s *shaper.Shaper, device string, before []dataplane.QueueClass) ([]dataplane.QueueClass, error) {
	all := make([]dataplane.QueueClass, len(s.Classes))
	for i := range all {
		all[i].Max, all[i].RTT = before[i].Max, before[i].RTT
	}
	link, err := net.InterfaceByName(device)
	if err != nil {
		return all, nil
	}
	counted, err := htb.Classes(link.Index)
	if err != nil {
		return nil, fmt.Errorf("read the queues of %s: %w", device, err)
	}
	for i := range min(len(all), len(counted)) {
		if c := &counted[i]; s.Classes[i].Children == 0 {
			all[i] = dataplane.QueueClass{
				Sent: c.Bytes, Packets: c.Packets, Drops: c.Drops, Marked: c.Marked, Backlog: c.Backlog, Connections: c.Flows, Max: all[i].Max, RTT: all[i].RTT,
			}
		}
	}
	return all, nil
}

// connect adds the connections to their queues.
func (q *Queues) connect(r *reading) error {
	counts, err := r.pins.QueueCounts()
	if err != nil {
		return err
	}
	var classes []*Queue
	for i := range q.Trees {
		for k := range q.Trees[i].Queues {
			classes = append(classes, &q.Trees[i].Queues[k])
		}
	}
	context := r.context()
	for i := range counts {
		if c := &counts[i]; c.Class < len(classes) {
			to := classes[c.Class]
			to.Top = append(to.Top, queueConnection(c, context))
		}
	}
	return nil
}

func queueConnection(c *dataplane.QueueCount, context *state.Context) QueueConnection {
	one := QueueConnection{
		Kind: c.Kind, Host: c.Host, Given: c.Given, Backlog: c.Backlog, Lost: c.Loss, id: c.ID, sent: c.Sent,
	}
	if c.State == nil {
		return one
	}
	s := c.State.View(context)
	from, to := &s.Src, &s.Dst
	if c.Back {
		from, to = to, from
	}
	one.State, one.Proto, one.Way, one.Packets, one.Bytes = s.Handle, s.Proto, s.Way(c.Back), from.Packets, from.Bytes
	one.From, one.To = queueEnd(from), queueEnd(to)
	return one
}

func queueEnd(e *state.End) *QueueEnd {
	return &QueueEnd{Addr: e.Addr, Port: e.Port, NewAddr: e.NewAddr, NewPort: e.NewPort}
}

// Copy returns queues that can be measured and sorted without changing q.
func (q *Queues) Copy() *Queues {
	c := *q
	c.Trees = slices.Clone(q.Trees)
	for i := range c.Trees {
		c.Trees[i].Queues = slices.Clone(q.Trees[i].Queues)
		for k := range c.Trees[i].Queues {
			c.Trees[i].Queues[k].Top = slices.Clone(q.Trees[i].Queues[k].Top)
		}
	}
	return &c
}

// leastPackets is the fewest packets for which the timer's time per packet says something. The timer also visits idle lines.
const leastPackets = 1000

// Measure sets the rates since an earlier look.
func (q *Queues) Measure(before *Queues) {
	span := q.Time.Sub(before.Time).Seconds()
	if span <= 0 {
		return
	}
	packets := uint64(0)
	for i := range q.Trees {
		tree := &q.Trees[i]
		for k := range tree.Queues {
			one, old := &tree.Queues[k], before.find(tree, tree.Queues[k].Name)
			if old == nil || one.Sent < old.Sent { // other queues have been loaded
				return
			}
			one.Rate = float64(one.Sent-old.Sent) / span
			if one.Level > 0 {
				one.Borrowed = max(one.Rate-float64(one.Share), 0)
			} else {
				packets += one.Packets - old.Packets
			}
			one.measure(old, span)
		}
	}
	q.Measured = true
	if packets >= leastPackets && q.Timer.Spent >= before.Timer.Spent {
		q.TimerCost = float64(q.Timer.Spent-before.Timer.Spent) / float64(packets)
	}
}

// measure sets the rates of a queue's connections.
func (q *Queue) measure(old *Queue, span float64) {
	sent := make(map[dataplane.QueueCountID]uint64, len(old.Top))
	for i := range old.Top {
		sent[old.Top[i].id] = old.Top[i].sent
	}
	for i := range q.Top {
		if was, known := sent[q.Top[i].id]; known {
			q.Top[i].Rate = float64(dataplane.QueueBytes(was, q.Top[i].sent)) / span
		}
	}
}

// QueueOrders are the values by which queues and their connections can be sorted.
var QueueOrders = []string{"rate", "packets", "bytes", "drops", "backlog"}

// Sort sorts the queues of each tree by one of QueueOrders, the largest first. "" leaves them as
// the rules have them.
func (q *Queues) Sort(by string) {
	if by == "" {
		return
	}
	for i := range q.Trees {
		slices.SortStableFunc(q.Trees[i].Queues, func(a, b Queue) int { return cmp.Compare(b.value(by), a.value(by)) })
	}
}

func (q *Queue) value(by string) float64 {
	switch by {
	case "rate":
		return q.Rate
	case "packets":
		return float64(q.Packets)
	case "bytes":
		return float64(q.Sent)
	case "drops":
		return float64(q.Drops)
	}
	return float64(q.Backlog)
}

// KeepTop keeps at most n connections of each queue: those that have the most of one of QueueOrders.
// With "" that is the backlog.
func (q *Queues) KeepTop(n int, by string) {
	for i := range q.Trees {
		for k := range q.Trees[i].Queues {
			one := &q.Trees[i].Queues[k]
			slices.SortStableFunc(one.Top, func(a, b QueueConnection) int {
				return cmp.Or(cmp.Compare(b.value(by), a.value(by)), cmp.Compare(b.Rate, a.Rate))
			})
			one.Top = one.Top[:min(n, len(one.Top))]
		}
	}
}

func (c *QueueConnection) value(by string) float64 {
	switch by {
	case "rate":
		return c.Rate
	case "packets":
		return float64(c.Packets)
	case "bytes":
		return float64(c.Bytes)
	case "drops":
		return float64(c.Lost.Packets)
	}
	return float64(c.Backlog)
}

// find returns the queue of that name in the same tree; nil: there is none.
func (q *Queues) find(tree *QueueTree, name string) *Queue {
	for i := range q.Trees {
		if q.Trees[i].Interface != tree.Interface || q.Trees[i].In != tree.In {
			continue
		}
		for k := range q.Trees[i].Queues {
			if q.Trees[i].Queues[k].Name == name {
				return &q.Trees[i].Queues[k]
			}
		}
	}
	return nil
}
