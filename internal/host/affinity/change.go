package affinity

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"weir/internal/host/doctor"
	"weir/internal/host/undolog"
	"weir/internal/killpoint"
)

// Change is a setting and what it shall be.
type Change struct {
	Setting Setting
	To      string
	// Besides are the interrupts of a device that is told how many queues it has, or
	// how it receives: its driver may set them anew.
	Besides []Setting
}

// ChangeOf is a change that doctor planned.
func ChangeOf(p *doctor.Placement, irqs []doctor.IRQ) Change {
	s := Setting{Kind: p.Kind, Interface: p.Interface, Queue: p.Queue, IRQ: p.IRQ}
	if i := slices.IndexFunc(irqs, func(irq doctor.IRQ) bool { return irq.Number == p.IRQ }); p.Kind == doctor.KindIRQ && i >= 0 {
		s.Name = irqs[i].Name
	}
	return newChange(s, p.To, irqs)
}

func newChange(s Setting, to string, irqs []doctor.IRQ) Change {
	c := Change{Setting: s, To: to}
	if !renews(s.Kind) {
		return c
	}
	for _, irq := range irqs {
		if irq.Interface == s.Interface {
			c.Besides = append(c.Besides, Setting{Kind: doctor.KindIRQ, Interface: s.Interface, IRQ: irq.Number, Name: irq.Name})
		}
	}
	return c
}

// renews reports whether a change of this kind may make a device's queues anew, and
// with them who receives.
func renews(k doctor.Kind) bool { return k == doctor.KindQueues || k == doctor.KindThreaded }

// Step gives changes when the ones before it have been made.
type Step func() ([]Change, error)

// ErrReverted is of a trial that somebody else ended.
var ErrReverted = errors.New("reverted meanwhile: weir affinity shows what is set")

// errOpen is of a transaction that has not ended.
var errOpen = errors.New("the last change waits to be confirmed, or was cut off: weir affinity confirm keeps it, weir affinity revert puts everything back")

// Apply makes the changes of all steps and keeps them until the next boot, or until
// Revert. On an error nothing of them holds. With a time to confirm in, all is put
// back unless another process calls Confirm before, also when ctx ends: the error is
// then undolog.ErrUnconfirmed.
func (h *Host) Apply(ctx context.Context, confirm time.Duration, all ...Step) error {
	unlock, err := h.lock(false)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(confirm)
	id, err := h.change(confirm, all)
	unlock()
	if err != nil || confirm == 0 || id == "" {
		return err
	}
	undolog.Await(ctx, deadline, func() bool {
		j, err := h.readJournal()
		return err == nil && j.Open != id // one that cannot be read is endTrial's to report
	})
	return h.endTrial(id)
}

// change makes the changes, and leaves the transaction open if it is to be
// confirmed. The id is empty where there was nothing to change.
func (h *Host) change(confirm time.Duration, all []Step) (id string, err error) {
	j, err := h.readJournal()
	if err != nil {
		return "", err
	}
	if j.Open != "" {
		return "", errOpen
	}
	j.Open, j.Previous = rand.Text(), slices.Clone(j.Entries)
	if confirm > 0 {
		j.Confirm = time.Now().Add(confirm)
	}
	made := 0
	for _, step := range all {
		changes, err := step()
		if err == nil {
			made += len(changes)
			err = h.make(j, changes)
		}
		if err != nil {
			return "", errors.Join(err, h.rollBack(j))
		}
	}
	if confirm > 0 && made > 0 {
		return j.Open, nil
	}
	return "", h.writeJournal(&contents{Entries: j.Entries, Confirmed: j.Confirmed})
}

// make journals changes, and makes them.
func (h *Host) make(j *contents, changes []Change) error {
	if len(changes) == 0 {
		return nil
	}
	for i := range changes {
		c := &changes[i]
		if c.Setting.Kind == doctor.KindIRQ && !h.named(&c.Setting) {
			c.Setting.Name = "" // one that the kernel makes no folder of
		}
		before, err := h.Read(&c.Setting)
		if err != nil {
			return err
		}
		if renews(c.Setting.Kind) {
			h.remember(j, c)
		}
		j.enter(c.Setting, before, c.To)
	}
	if err := h.writeJournal(j); err != nil {
		return err
	}
	for i := range changes {
		if err := h.write(&changes[i].Setting, changes[i].To); err != nil {
			return err
		}
	}
	return nil
}

// remember enters what a change of a device's queues, or of how it receives, may
// change besides, so that it is put back after it.
func (h *Host) remember(j *contents, c *Change) {
	for _, kind := range []doctor.Kind{doctor.KindRPS, doctor.KindXPS, doctor.KindThread} {
		for q := 0; ; q++ {
			s := Setting{Kind: kind, Interface: c.Setting.Interface, Queue: q}
			now, err := h.Read(&s)
			if err != nil {
				break
			}
			j.enter(s, now, now)
		}
	}
	for _, irq := range c.Besides {
		if !h.named(&irq) {
			continue // behind the change its number may be another's, which nothing would tell
		}
		if now, err := h.Read(&irq); err == nil {
			j.enter(irq, now, now)
		}
	}
}

// endTrial puts a transaction back that is still open. It waits for the lock:
// nothing may keep it from that.
func (h *Host) endTrial(id string) error {
	unlock, err := h.lock(true)
	if err != nil {
		return err
	}
	defer unlock()
	j, err := h.readJournal()
	switch {
	case err != nil:
		return err
	case j.Open == id:
		if err := h.rollBack(j); err != nil {
			return err
		}
		return undolog.ErrUnconfirmed
	case j.Confirmed != id:
		return ErrReverted
	}
	return nil
}

// Confirm keeps what a transaction that waits has set.
func (h *Host) Confirm() error {
	unlock, err := h.lock(false)
	if err != nil {
		return err
	}
	defer unlock()
	j, err := h.readJournal()
	if err == nil {
		err = undolog.Confirmable(j.Confirm, command)
	}
	if err != nil {
		return err
	}
	return h.writeJournal(&contents{Entries: j.Entries, Confirmed: j.Open})
}

// rollBack undoes the open transaction: what it changed gets what it found. What
// somebody has changed since an earlier one is none of its. What cannot be put back
// is left to Revert.
func (h *Host) rollBack(j *contents) error {
	_, left, err := h.putBack(j.Found)
	var keep []entry
	for i := range j.Entries {
		e := &j.Entries[i]
		if find(left, &e.Setting) != nil {
			keep = append(keep, *e)
		} else if p := find(j.Previous, &e.Setting); p != nil {
			keep = append(keep, *p)
		}
	}
	return errors.Join(err, h.writeJournal(&contents{Entries: keep, Confirmed: j.Confirmed}))
}

// Restored is a setting that Revert has put back.
type Restored struct {
	Setting Setting
	To      string
	Found   string // what it was, where that was not what weir had set; else ""
}

// Revert puts back what was found of all that weir has set, and leaves no trace.
// What cannot be put back stays in the journal.
func (h *Host) Revert() ([]Restored, error) {
	unlock, err := h.lock(true)
	if err != nil {
		return nil, err
	}
	defer unlock()
	j, err := h.readJournal()
	if err != nil {
		return nil, err
	}
	restored, left, err := h.putBack(j.Entries)
	return restored, errors.Join(err, h.writeJournal(&contents{Entries: left}))
}

// putBack sets entries to what they were before, from the last to the first, and
// then looks at all of them once more: a change of queues changes others. It returns
// those that could not be put back, for another time.
func (h *Host) putBack(entries []entry) (restored []Restored, left []entry, err error) {
	var faults []error
	for round := range 2 {
		faults, left = nil, nil
		for _, e := range backward(entries) {
			now, err := h.Read(&e.Setting)
			if errors.Is(err, fs.ErrNotExist) {
				if err = h.hidden(&e.Setting); err == nil {
					continue // it went with its device, or its queue
				}
			} else if err == nil && now != e.Before {
				err = h.write(&e.Setting, e.Before)
			}
			if err != nil {
				faults, left = append(faults, err), append(left, e)
				continue
			}
			killpoint.Done("put back %s", &e.Setting)
			if r := (Restored{Setting: e.Setting, To: e.Before}); round == 0 && now != e.Before {
				if now != e.Set {
					r.Found = now
				}
				restored = append(restored, r)
			}
		}
	}
	if len(faults) > 0 {
		return restored, backward(left), fmt.Errorf("put back: %w", errors.Join(faults...))
	}
	return restored, nil, nil
}
