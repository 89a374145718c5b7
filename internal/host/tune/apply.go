package tune

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"weir/internal/host/undolog"
	"weir/internal/killpoint"
)

// errOpen is the error of a transaction that is not finished.
var errOpen = errors.New("the last change")

// Apply makes a plan's changes and keeps them for the next boot. If it returns an error,
// none of the changes is in force.
func (h *Host) Apply(p *Plan) error {
	unlock, err := h.lock(false)
	if err != nil {
		return err
	}
	defer unlock()
	j, err := h.change(p, time.Time{})
	if err != nil {
		return err
	}
	return h.finish(j)
}

// Try makes a plan's changes. It puts them back unless another process calls Confirm
// within d, and also if ctx ends. The error is then undolog.ErrUnconfirmed, or
// ErrReverted if somebody else ended the trial otherwise.
func (h *Host) Try(ctx context.Context, p *Plan, d time.Duration) error {
	deadline := time.Now().Add(d)
	unlock, err := h.lock(false)
	if err != nil {
		return err
	}
	j, err := h.change(p, deadline)
	unlock()
	if err != nil || len(p.Changes) == 0 {
		return err
	}
	undolog.Await(ctx, deadline, func() bool {
		now, err := h.readJournal()
		return err == nil && now.Trial != j.Trial // endTrial reports a journal that cannot be read
	})
	return h.endTrial(j.Trial, p.Changes)
}

// ErrReverted is returned by Try if the trial was neither confirmed nor ended by Try
// itself.
var ErrReverted = errors.New("it was reverted meanwhile, or could not be kept")

// endTrial puts back a trial that is still open. Otherwise it returns how the trial
// ended. It waits for the lock, because nothing may keep it from putting back.
func (h *Host) endTrial(trial string, changes []Change) error {
	unlock, err := h.lock(true)
	if err != nil {
		return err
	}
	defer unlock()
	j, err := h.readJournal()
	switch {
	case err != nil:
		return err
	case j.Trial == trial:
		if err := h.rollBack(j); err != nil {
			return err
		}
		return undolog.ErrUnconfirmed
	case j.keeps(changes):
		return nil
	}
	return fmt.Errorf("%w: %s shows what is set", ErrReverted, h.statusCommand())
}

// statusCommand returns the command that shows the settings.
func (h *Host) statusCommand() string {
	return cmp.Or(h.owner, "weir tune status")
}

// keeps reports whether changes are in the journal for good. Entries of an open
// transaction do not count.
func (j *contents) keeps(changes []Change) bool {
	kept := j.Entries
	if len(j.Changing) > 0 {
		kept = j.Previous
	}
	return !slices.ContainsFunc(changes, func(c Change) bool {
		e := find(kept, c.Key)
		return e == nil || e.Set != c.To
	})
}

// A Kept is a setting that weir tune keeps.
type Kept struct {
	Key     string `json:"key"`
	Set     string `json:"set"`
	Problem string `json:"problem,omitempty"` // why it could not be set; empty: it is as Set says
}

// Confirm keeps the changes of the last Try, and returns them.
func (h *Host) Confirm() ([]Kept, error) {
	unlock, err := h.lock(false)
	if err != nil {
		return nil, err
	}
	defer unlock()
	j, err := h.readJournal()
	if err == nil {
		err = undolog.Confirmable(j.Confirm, h.command())
	}
	if err != nil {
		return nil, err
	}
	kept := []Kept{}
	for i := range j.Entries {
		if e := &j.Entries[i]; slices.Contains(j.Changing, e.Key) {
			kept = append(kept, Kept{Key: e.Key, Set: e.Set})
		}
	}
	if err := h.finish(j); err != nil {
		return nil, err
	}
	return kept, nil
}

// begin checks that a plan can be applied now, and returns the journal for its entries.
func (h *Host) begin(p *Plan) (*contents, error) {
	j, err := h.readJournal()
	if err != nil {
		return nil, err
	}
	if len(j.Changing) > 0 {
		if !j.Confirm.IsZero() {
			return nil, fmt.Errorf("%w is not confirmed yet: %s confirm keeps it, %[2]s revert restores everything", errOpen, h.command())
		}
		return nil, fmt.Errorf("%w was interrupted: %s revert restores everything", errOpen, h.command())
	}
	if err := h.unchanged(p, j); err != nil {
		return nil, err
	}
	if len(j.Entries) == 0 {
		j.Missing = h.missing()
	}
	if err := h.forget(j, p.Left); err != nil {
		return nil, err
	}
	j.Entries = slices.DeleteFunc(j.Entries, func(e entry) bool { return slices.Contains(p.Left, e.Key) })
	j.Previous = slices.Clone(j.Entries)
	return j, nil
}

// change enters a plan's changes in the journal and makes them. The returned journal is
// not finished.
func (h *Host) change(p *Plan, confirm time.Time) (*contents, error) {
	j, err := h.begin(p)
	if err != nil || len(p.Changes) == 0 {
		return j, err
	}
	if !confirm.IsZero() {
		j.Confirm, j.Trial = confirm, rand.Text()
	}
	if err := h.carryOut(p, j); err != nil {
		return nil, errors.Join(err, h.rollBack(j))
	}
	return j, nil
}

// mostRounds is the largest number of rounds of changes. Each new number of queues starts
// another round.
const mostRounds = 3

// errRestless is the error of a plan that wants another number of queues after each
// change of queues.
var errRestless = errors.New("after the queues changed, the plan wants another number again")

// carryOut enters a plan's changes in the journal and makes them. If cards get another
// number of queues, it then plans again. The new changes join the plan.
func (h *Host) carryOut(p *Plan, j *contents) error {
	changes := p.Changes
	for round := 1; len(changes) > 0; round++ {
		if round > mostRounds {
			return fmt.Errorf("%w: %s", errRestless, changes[0].Key)
		}
		for _, c := range changes {
			j.Changing = append(j.Changing, c.Key)
			if _, known := j.Found[c.Key]; !known {
				j.Found = mergeOne(j.Found, c.Key, c.From)
			}
			j.set(c, h.sideEffects(c.Key))
		}
		if err := h.writeJournal(j); err != nil {
			return err
		}
		for i, c := range changes {
			if err := h.write(c.Key, c.To); err != nil {
				j.dropUnmade(changes[i:], err)
				return err
			}
			killpoint.Done("set %s", c.Key)
		}
		if !requeues(changes) {
			return nil
		}
		next, err := p.again()
		if err != nil {
			return err
		}
		changes = next.Changes
		p.Changes = append(p.Changes, changes...)
	}
	return nil
}

// dropUnmade removes from a transaction the changes that were not made: the first failed with
// err, the others were not tried.
func (j *contents) dropUnmade(changes []Change, err error) {
	n := len(changes)
	if !errors.Is(err, fs.ErrNotExist) {
		n-- // the failed change may have been made in part
	}
	j.Changing = j.Changing[:len(j.Changing)-n]
}

// requeues reports whether changes give a card another number of queues.
func requeues(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool {
		_, setting, _ := cardKey(c.Key)
		k, _ := parseQueueKey(c.Key)
		return setting == "queues" || k.What == "queues"
	})
}

// errChanged is the error of a plan that is older than the host's state.
var errChanged = errors.New("the host has changed since the plan was made: plan again")

// unchanged checks under the lock that the host is as it was when the plan was made,
// because revert will put back the plan's values. If a key is gone, writing it fails
// anyway.
func (h *Host) unchanged(p *Plan, j *contents) error {
	if !slices.EqualFunc(p.entries, j.Entries, func(a, b entry) bool { return reflect.DeepEqual(a, b) }) {
		return errChanged
	}
	for _, c := range p.Changes {
		now, err := h.Read(c.Key)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil && now != c.From {
			return fmt.Errorf("%w; %s was %s and is %s", errChanged, c.Key, oneLine(c.From), oneLine(now))
		}
	}
	return nil
}

// set enters a change. The value found before the first change of a key stays.
func (j *contents) set(c Change, besides map[string]string) {
	for key, value := range besides {
		if _, known := j.Besides[key]; !known {
			j.Besides = mergeOne(j.Besides, key, value)
		}
	}
	if e := j.entry(c.Key); e != nil {
		e.Set, e.Why = c.To, c.Why
		e.Besides = maps.Clone(e.Besides) // the former entries share this map
		for key, value := range besides {
			if behind, known := e.Behind[key]; known && !sameValue(key, value, behind) {
				e.Besides = mergeOne(e.Besides, key, value) // somebody has set it since
			}
		}
		return
	}
	j.Entries = append(j.Entries, entry{Key: c.Key, Before: c.From, Set: c.To, Why: c.Why, Besides: besides})
}

// mergeOne sets a value in a map that may be nil.
func mergeOne(all map[string]string, key, value string) map[string]string {
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	return all
}

// finish ends a transaction and keeps its values for the next boot.
func (h *Host) finish(j *contents) error {
	if err := h.persist(j.Entries); err != nil {
		return errors.Join(err, h.rollBack(j))
	}
	for i := range j.Entries {
		if e := &j.Entries[i]; e.Besides != nil && slices.Contains(j.Changing, e.Key) {
			e.Behind = h.sideEffects(e.Key)
		}
	}
	return h.writeJournal(&contents{Entries: j.Entries, Missing: j.Missing})
}

// rollBack undoes a transaction. Each key gets its former value, from the last to the
// first.
func (h *Host) rollBack(j *contents) error {
	var left []string
	var faults []error
	back := map[string]bool{} // false: failed
	for _, key := range again(j.Changing) {
		err := h.restoreKey(key, j.before(key))
		if errors.Is(err, errAway) {
			if _, tried := back[key]; !tried {
				back[key] = false // it may exist once the queues are set
			}
			continue
		}
		if back[key] = err == nil; err != nil {
			left = append(left, key)
			faults = append(faults, err)
		}
		killpoint.Done("restore %s", key)
	}
	for _, key := range slices.Sorted(maps.Keys(back)) {
		if !back[key] && !slices.Contains(left, key) {
			left = append(left, key)
			faults = append(faults, h.whyMissing(key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(j.Besides)) {
		if err := h.restoreKey(key, j.Besides[key]); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("restore %s: %w", strings.Join(left, ", "), errors.Join(faults...))
	}
	if err := h.persist(j.Previous); err != nil {
		return err
	}
	return h.writeJournal(&contents{Entries: j.Previous, Missing: j.Missing})
}

// before returns the value of a key before the transaction.
func (j *contents) before(key string) string {
	if found, known := j.Found[key]; known {
		return found
	}
	// An older weir wrote the journal without it.
	if e := find(j.Previous, key); e != nil {
		return e.Set
	}
	return j.entry(key).Before
}

// again returns the keys in the order of putting them back: from the last to the first,
// then those of single queues a second time, after the queues are set.
func again(keys []string) []string {
	order := slices.Clone(keys)
	slices.Reverse(order)
	for _, key := range keys {
		if dependsOnQueues(key) {
			order = append(order, key)
		}
	}
	return order
}

// sideEffects returns the present values of what a card loses if a key of it is set.
func (h *Host) sideEffects(key string) map[string]string {
	if k, ok := parseQueueKey(key); ok && k.recreatesQueues() {
		return h.queueSideEffects(k)
	}
	card, setting, ok := cardKey(key)
	if !ok || setting != "queues" && setting != "rings" {
		return nil
	}
	found := map[string]string{}
	for _, other := range []string{"indirection", "irqs", "rps", "xps"} {
		other = cardPrefix + card + "." + other
		if value, err := h.read(other); err == nil {
			found[other] = value
		}
	}
	return found
}

// restoreAll puts values back by their keys.
func (h *Host) restoreAll(values map[string]string) error {
	var faults []error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		faults = append(faults, h.restoreKey(key, values[key]))
	}
	return errors.Join(faults...)
}

// errAway is the error of a setting that its card does not have at the moment, such as
// the interrupts of a card that is down. It may return with weir's value.
var errAway = errors.New("its card is missing at the moment")

// restoreKey sets a key to its former value. If the key is gone with its module, card or
// queue, or was never changed, there is nothing to do.
func (h *Host) restoreKey(key, before string) error {
	switch now, err := h.Read(key); {
	case errors.Is(err, fs.ErrNotExist):
		return h.whyMissing(key)
	case err != nil:
		return err
	case now == before:
		return nil
	}
	return h.write(key, before)
}

// whyMissing returns why a missing key may return with weir's value; nil if it is gone for
// good.
func (h *Host) whyMissing(key string) error {
	if k, ok := parseQueueKey(key); ok {
		if (k.What == "irq" || k.What == "thread") && h.isDown(k.Interface) {
			return fmt.Errorf("%s: %w: %s is down. Bring it up, then type %s revert", key, errAway, k.Interface, h.command())
		}
		return nil
	}
	if h.hasCardOf(key) {
		return fmt.Errorf("%s: %w", key, errAway)
	}
	return nil
}

// hasCardOf reports whether the interface of a key exists.
func (h *Host) hasCardOf(key string) bool {
	card, _, ok := cardKey(key)
	if !ok {
		return false
	}
	if h.Root == "" {
		_, err := net.InterfaceByName(card)
		return err == nil
	}
	_, err := os.Stat(h.path("sys/class/net", card))
	return err == nil
}
