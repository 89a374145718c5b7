package view

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
	"weir/internal/units"
)

// Queues are the trees of queues and how their timer does.
type Queues struct {
	Time  time.Time            `json:"time"`
	Trees []QueueTree          `json:"trees"`
	Timer dataplane.QueueTimer `json:"timer"`
}

// A QueueTree is what an interface and direction has.
type QueueTree struct {
	Interface string  `json:"interface"`
	In        bool    `json:"in,omitempty"`
	Rate      uint64  `json:"rate"`             // bytes per second of the line, now
	OfRules   uint64  `json:"rate_of_rules"`    // likewise, of the file
	SetBy     string  `json:"set_by,omitempty"` // who has set another rate than the file's
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
}

// Queues returns the queues in force.
func (v *View) Queues() (q Queues, err error) {
	err = v.read(func(r *reading) error {
		classes, timer, err := r.pins.Queues()
		if err != nil {
			return err
		}
		setBy, err := r.pins.QueueRates(len(r.loaded.Shapers))
		if err != nil {
			return err
		}
		q = Queues{Time: time.Now(), Timer: timer, Trees: []QueueTree{}}
		for i := range r.loaded.Shapers {
			n := len(r.loaded.Shapers[i].Classes)
			if n > len(classes) { // another version's
				break
			}
			tree := queueTree(&r.loaded, i, classes[:n])
			if i < len(setBy) {
				tree.SetBy = setBy[i].String()
			}
			q.Trees = append(q.Trees, tree)
			classes = classes[n:]
		}
		return nil
	})
	return q, err
}

func queueTree(l *rundir.Loaded, at int, classes []dataplane.QueueClass) QueueTree {
	s := &l.Shapers[at]
	t := QueueTree{Interface: s.Interface, In: s.In, Rate: classes[0].Max, OfRules: s.Classes[0].Max.Bytes}
	for i := range s.Classes {
		c := &s.Classes[i]
		one := Queue{Name: c.Name, Default: c.Default, Inner: c.Children > 0, QueueClass: classes[i]}
		if c.Parent >= 0 {
			one.Parent, one.Level = s.Classes[c.Parent].Name, t.Queues[c.Parent].Level+1
		}
		t.Queues = append(t.Queues, one)
	}
	for i := len(t.Queues) - 1; i > 0; i-- { // an inner queue has what those below it have
		up := &t.Queues[s.Classes[i].Parent].QueueClass
		up.Sent, up.Packets, up.Lost, up.Drops = up.Sent+t.Queues[i].Sent, up.Packets+t.Queues[i].Packets, up.Lost+t.Queues[i].Lost, up.Drops+t.Queues[i].Drops
		up.Marked, up.Backlog, up.Hosts, up.Connections = up.Marked+t.Queues[i].Marked, up.Backlog+t.Queues[i].Backlog, up.Hosts+t.Queues[i].Hosts, up.Connections+t.Queues[i].Connections
	}
	return t
}

// Print prints the queues with their rates since before.
func (q *Queues) Print(w io.Writer, before *Queues) error {
	if len(q.Trees) == 0 {
		_, err := fmt.Fprintln(w, "the rules define no queues")
		return err
	}
	span := q.Time.Sub(before.Time).Seconds()
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for i := range q.Trees {
		tree := &q.Trees[i]
		direction := "out"
		if tree.In {
			direction = "in"
		}
		fmt.Fprintf(t, "%s %s\tRATE\tPACKETS\tBYTES\tDROPPED\tMARKED\tBACKLOG\tHOSTS\tCONNECTIONS\n", tree.Interface, direction)
		for k := range tree.Queues {
			one := &tree.Queues[k]
			rate := "-"
			if old := before.find(tree, one.Name); old != nil && span > 0 && one.Sent >= old.Sent {
				rate = units.Short(float64(one.Sent-old.Sent) * 8 / span)
			}
			fmt.Fprintf(t, "%s%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", strings.Repeat("  ", one.Level+1), one.Name, rate,
				one.Packets, one.Sent, one.Drops, one.Marked, one.Backlog, one.Hosts, one.Connections)
		}
		if tree.SetBy != "" {
			fmt.Fprintf(t, "  rate set %s: %s of %s\n", tree.SetBy, units.Short(float64(tree.Rate)*8), units.Short(float64(tree.OfRules)*8))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return q.warn(w)
}

// warn says what keeps the queues from doing what they should.
func (q *Queues) warn(w io.Writer) error {
	shared := uint64(0)
	for i := range q.Trees {
		for _, one := range q.Trees[i].Queues {
			shared += one.Shared
		}
	}
	if shared > 0 {
		if _, err := fmt.Fprintf(w, "%d packets shared a counter with other connections, because there were too many connections\n", shared); err != nil {
			return err
		}
	}
	if q.Timer.Unserved == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "the timer came too late %d times; %v of the lines' time was lost\n", q.Timer.Late, q.Timer.Unserved.Round(time.Millisecond))
	return err
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
