package ladder

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"weir/internal/bench/paths"
	"weir/internal/lab"
)

// box is a firewall with its wires, or no firewall, and the tasks of a round while it is
// up. All rungs of one firewall share a box, because starting weir takes as long as a run
// does. Each round restarts the box, so the spread of the runs contains the
// differences from start to start. The control has a box of its own, as what it is
// compared with does.
type box struct {
	firewall string // "": no firewall
	offloads lab.Offloads
	control  bool
	tasks    []*task
}

// task is one thing that every round does once, on a rung that is already up.
type task struct {
	spot    spot
	what    string  // shown to people while it runs
	seconds float64 // estimated duration
	pairs   bool    // needs the second pair of hosts
	do      func(context.Context, spot) error
}

// Seconds that steps take besides traffic, on a machine with two cores and some other
// work.
const (
	setWires    = 0.1 // set the offloads of the wires
	startOthers = 0.2 // start and stop nft or the kernel's forwarding
	startWeir   = 2.6
	startLoad   = 0.25 // start the traffic programs and read their results
)

// seconds estimates a round in the box. wires tells whether the offloads change from box
// to box.
func (b *box) seconds(wires bool) (total float64) {
	switch b.firewall {
	case "":
	case Weir:
		total += startWeir
	default:
		total += startOthers
	}
	if wires {
		total += setWires
	}
	for _, t := range b.tasks {
		total += t.seconds
	}
	return total
}

// tasks returns the tasks of all boxes.
func (l *ladder) tasks() (all []*task) {
	for _, b := range l.boxes {
		all = append(all, b.tasks...)
	}
	return all
}

// drop removes tasks, and boxes without any tasks left.
func (l *ladder) drop(unwanted func(*task) bool) {
	for _, b := range l.boxes {
		b.tasks = slices.DeleteFunc(b.tasks, unwanted)
	}
	l.boxes = slices.DeleteFunc(l.boxes, func(b *box) bool { return len(b.tasks) == 0 })
}

// add plans a task whose traffic lasts a multiple of the wanted seconds.
func (l *ladder) add(s spot, what string, times float64, do func(context.Context, spot) error) *task {
	return l.addTo(s, false, what, times, do)
}

func (l *ladder) addTo(s spot, control bool, what string, times float64, do func(context.Context, spot) error) *task {
	t := &task{spot: s, what: what, seconds: times * (float64(l.options.Seconds) + startLoad), do: do}
	i := slices.IndexFunc(l.boxes, func(b *box) bool {
		return b.firewall == s.rung.firewall && b.offloads == s.offloads && b.control == control
	})
	if i < 0 {
		i = len(l.boxes)
		l.boxes = append(l.boxes, &box{firewall: s.rung.firewall, offloads: s.offloads, control: control})
	}
	l.boxes[i].tasks = append(l.boxes[i].tasks, t)
	return t
}

// in builds a box, does its tasks in random order, and takes it down.
func (l *ladder) in(ctx context.Context, b *box, round int) (err error) {
	if err := l.testbed.SetOffloads(b.offloads); err != nil {
		return err
	}
	first := b.tasks[0].spot
	if b.firewall != "" {
		l.progress.Step("start %s, offloads %s, round %d", b.firewall, b.offloads, round+1)
		stop, err := paths.StartForSockets(ctx, l.testbed, first.rung.path, first.pathOptions())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	rand.Shuffle(len(b.tasks), func(i, j int) { b.tasks[i], b.tasks[j] = b.tasks[j], b.tasks[i] })
	for _, t := range b.tasks {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.progress.Step("%s: %s, offloads %s, round %d", t.spot.rung.name, t.what, b.offloads, round+1)
		if err := t.do(ctx, t.spot); err != nil {
			return fmt.Errorf("%s: %s, offloads %s: %w", t.spot.rung.name, t.what, b.offloads, err)
		}
		l.progress.Done(1)
	}
	return nil
}
