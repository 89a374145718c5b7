package dataplane

import (
	"fmt"
	"sync/atomic"
)

// An entry is a program that is attached, and the array of programs behind its
// tail calls, whose names begin with its own.
type entry struct{ name, slots string }

var entries = []entry{entryXDP, {"weir_tc_in", "in_slots"}, {"weir_tc_out", "out_slots"}}

var entryXDP = entry{"weir_xdp", "slots"}

// slotNames are what the programs' names end with, by enum slot of bpf/hook/tail.h.
var slotNames = [...]string{"miss", "error", "fragment", "turn", slotCapture}

const slotCapture = "capture"

// programStart arms the sweep's timer, programAdopt enters states that user
// space makes or copies.
const (
	programStart = "weir_sweep_start"
	programAdopt = "weir_adopt"
)

// The kernel takes long to check a program, so those that few need wait until
// they are: those of the XDP hook for an interface that has it, those that
// capture for somebody who captures.

// atOnce are the programs that Build loads.
func (d *Dataplane) atOnce() []string {
	names := []string{programStart}
	for _, e := range entries {
		if e != entryXDP || d.config.XDP {
			names = append(names, e.programs(d.captures())...)
		}
	}
	if d.kept && d.tables.hasExits() {
		names = append(names, programExit)
	}
	return names
}

// programs are the entry's own and those behind it.
func (e entry) programs(capture bool) []string {
	names := []string{e.name}
	for _, slot := range slotNames {
		if slot != slotCapture || capture {
			names = append(names, e.name+"_"+slot)
		}
	}
	return names
}

// captures reports whether packets go through the programs that capture, as
// they may from before this process.
func (d *Dataplane) captures() bool {
	for _, t := range []*tables{d.tables, d.old} {
		if t != nil && t.shared != nil && atomic.LoadUint32(&t.shared.Recording)&(1<<CaptureRing) != 0 {
			return true
		}
	}
	return false
}

// needXDP loads the programs of the XDP hook if an interface is to have it. Its
// error is that interface's, as if the driver had refused them: it may be
// attached without XDP.
func (d *Dataplane) needXDP(attachments ...Attachment) error {
	for _, a := range attachments {
		if !a.XDP {
			continue
		}
		if err := d.need(entryXDP.programs(d.captures())...); err != nil {
			return &AttachError{Attachment: a, Err: &RefusalError{Said: "its programs do not load", Err: err}}
		}
		break
	}
	return nil
}

// needCapture loads the programs that capture, for the hooks whose others are
// loaded.
func (d *Dataplane) needCapture() error { return d.need(d.capturing()...) }

func (d *Dataplane) capturing() []string {
	var names []string
	for _, e := range entries {
		if d.objects.Programs[e.name] != nil {
			names = append(names, e.programs(true)...)
		}
	}
	return names
}

// CapturePreparation returns a function that has the kernel check the programs which
// SetCapture will need: it takes seconds, in which the dataplane may be used, or
// closed.
func (d *Dataplane) CapturePreparation() func() error {
	names := d.capturing()
	return func() error { return d.objects.Prepare(names...) }
}

// need loads programs unless they are, and puts them into their slots.
func (d *Dataplane) need(names ...string) error {
	if err := d.objects.Need(names...); err != nil {
		return err
	}
	return d.fillSlots()
}

// fillSlots puts the programs that are loaded into their slots.
func (d *Dataplane) fillSlots() error {
	for _, e := range entries {
		m := d.objects.Maps[e.slots]
		if m == nil {
			return fmt.Errorf("the objects have no map %s", e.slots)
		}
		for i, slot := range slotNames {
			p := d.objects.Programs[e.name+"_"+slot]
			if p == nil {
				continue
			}
			if err := m.Put(uint32(i), p); err != nil {
				return fmt.Errorf("put %s_%s into %s: %w", e.name, slot, e.slots, err)
			}
		}
	}
	return nil
}
