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

// box is a firewall with its wires, or none, and what is done in a round while
// it is there. All rungs of one firewall are in one box: to start weir takes as
// long as a run does. It is started anew in each round, so what one start has and
// another has not is in the spread of the runs. The control has a box of its own,
// as what it is compared with has.
type box struct {
	firewall string // "": none
	offloads lab.Offloads
	control  bool
	tasks    []*task
}

// task is one thing that every round does once, on a rung that is in place.
type task struct {
	spot    spot
	what    string  // for people, while it runs
	seconds float64 // about what it takes
	pairs   bool    // it needs the second pair of hosts
	do      func(context.Context, spot) error
}

// Seconds that things take besides traffic, on a machine with two cores and
// some other work.
const (
	setWires    = 0.1 // offloads of the wires
	startOthers = 0.2 // nft's or the kernel's start and stop
	startWeir   = 2.6
	startLoad   = 0.25 // programs that make traffic, and what they say at the end
)

// seconds are about what a round in the box takes; wires tells whether their
// offloads change from box to box.
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

// tasks are those of all boxes.
func (l *ladder) tasks() (all []*task) {
	for _, b := range l.boxes {
		all = append(all, b.tasks...)
	}
	return all
}

// drop takes tasks away, and boxes that nothing is left for.
func (l *ladder) drop(unwanted func(*task) bool) {
	for _, b := range l.boxes {
		b.tasks = slices.DeleteFunc(b.tasks, unwanted)
	}
	l.boxes = slices.DeleteFunc(l.boxes, func(b *box) bool { return len(b.tasks) == 0 })
}

// add plans a task that has traffic for a number of times the wanted seconds.
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
func (l *ladder) in(ctx context.Context, b *box, round int, random *rand.Rand) (err error) {
	if err := l.testbed.SetOffloads(b.offloads); err != nil {
		return err
	}
	first := b.tasks[0].spot
	if b.firewall != "" {
		l.say.Step("start %s, offloads %s, round %d", b.firewall, b.offloads, round+1)
		stop, err := paths.StartForSockets(ctx, l.testbed, first.rung.path, first.pathOptions())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	random.Shuffle(len(b.tasks), func(i, j int) { b.tasks[i], b.tasks[j] = b.tasks[j], b.tasks[i] })
	for _, t := range b.tasks {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.say.Step("%s: %s, offloads %s, round %d", t.spot.rung.name, t.what, b.offloads, round+1)
		if err := t.do(ctx, t.spot); err != nil {
			return fmt.Errorf("%s: %s, offloads %s: %w", t.spot.rung.name, t.what, b.offloads, err)
		}
		l.say.Done(1)
	}
	return nil
}
