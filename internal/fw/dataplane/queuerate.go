package dataplane

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/shaper"
)

// A RateBy is who has given a tree of queues another rate than its rules have.
type RateBy uint8

// Who may do so.
const (
	ByRules RateBy = iota // nobody
	ByCommand
	ByAutorate
)

// String names it for users.
func (b RateBy) String() string {
	switch b {
	case ByCommand:
		return "by hand"
	case ByAutorate:
		return "by autorate"
	}
	return ""
}

// ErrNoQueues is returned (wrapped) if an interface and direction has no queues.
var ErrNoQueues = errors.New("the rules define no queues there")

// SetQueueRate gives the queues of an interface and direction another rate under traffic, in
// bytes per second; 0: that of the rules. What is a part of the rate follows it. Counts go on.
// The rate stays until it is set again, or until queues with other rates are loaded.
func (d *Dataplane) SetQueueRate(name string, in bool, rate uint64, by RateBy) error {
	number, _ := d.queuesOf([]QueueDevice{{Name: name}}, in)
	if number == 0 {
		s := shaper.Shaper{Interface: name, In: in}
		return fmt.Errorf("set the rate of %s: %w", s.Name(), ErrNoQueues)
	}
	s := d.config.Program.Shapers[number-1]
	if rate == 0 {
		return d.setRates(&s, number, ByRules)
	}
	if rate < shaper.MinRate || rate > shaper.MaxRate {
		return fmt.Errorf("set the rate of %s: a rate is from 8K to 100G", s.Name())
	}
	s = s.At(rate)
	return d.setRates(&s, number, by)
}

// useNewRates gives the queues that go on the rates of this generation.
func (d *Dataplane) useNewRates() error {
	if d.queues == nil || !d.newRates {
		return nil
	}
	return d.setAllRates(d.config.Program)
}

func (d *Dataplane) setAllRates(p *ruleset.Program) error {
	var errs []error
	for i := range p.Shapers {
		errs = append(errs, d.setRates(&p.Shapers[i], i+1, ByRules))
	}
	return errors.Join(errs...)
}

// withRates replaces rules, and gives the queues the rates that come with them. After an error
// they have those of the rules before, which are in force.
func (d *Dataplane) withRates(p *ruleset.Program, replace func() error) error {
	if queuesNumber(p) == queuesNumber(d.config.Program) {
		return replace()
	}
	err := d.setAllRates(p)
	if err == nil {
		err = replace()
	}
	if err != nil {
		return errors.Join(err, d.setAllRates(d.config.Program))
	}
	return nil
}

// noteQueues records which queues are in force: queues with other rates are not kept.
func (d *Dataplane) noteQueues() error {
	l, err := readLedger(d.config.Dir)
	if number := queuesNumber(d.config.Program); err == nil && l.Queues != number {
		l.Queues = number
		err = writeLedger(d.config.Dir, l)
	}
	if err != nil {
		return fmt.Errorf("note the rates of queues: %w", err)
	}
	return nil
}

// setRates sets the rates of a tree, class by class from the root.
func (d *Dataplane) setRates(s *shaper.Shaper, number int, by RateBy) error {
	first := uint32(0)
	err := changeArray(d.objects.Maps[mapQueueData], func(data []xdpQueueSection) {
		first = data[0].Shapers[number].First
		data[0].Shapers[number].SetBy = uint8(by)
	})
	if err == nil {
		err = changeClasses(d.objects.Programs[programQueueChange], s, uint32(number), first)
	}
	if err != nil {
		return fmt.Errorf("set the rate of %s: %w", s.Name(), err)
	}
	return nil
}

// A run of the timer takes 100 microseconds at most. changePause is how long a change waits for
// it, and changeAttempts how often.
const (
	changePause    = 100 * time.Microsecond
	changeAttempts = 1000
)

func changeClasses(change *bpfload.Program, s *shaper.Shaper, number, first uint32) error {
	for i, c := range rawClasses(s, number, first) {
		to := shapingQueueChange{Class: first + uint32(i), Weight: c.Weight, Depth: c.Depth, Ceiling: c.Ceiling, Min: c.Min, Max: c.Max}
		if err := changeClass(change, &to); err != nil {
			return err
		}
	}
	return nil
}

func changeClass(change *bpfload.Program, to *shapingQueueChange) error {
	for range changeAttempts {
		result, err := bpfload.RunSyscall(change, to)
		if err != nil || result == 0 {
			return err
		}
		if failed := unix.Errno(-int32(result)); failed != unix.EBUSY {
			return failed
		}
		time.Sleep(changePause)
	}
	return errors.New("the timer of the queues does not end its run")
}
