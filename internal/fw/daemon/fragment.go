package daemon

import (
	"bytes"
	"context"
	"time"

	"weir/internal/fw/dataplane"
)

// Bounds of what waits. Each frame has 2 KiB at most.
const (
	maxHeld      = 2048 // frames
	maxHeldOfOne = 64   // of one packet: 64 KiB in pieces of 1,024 bytes
)

// How often the daemon looks whether first fragments have come. Most come within a
// millisecond.
const (
	heldSoon  = time.Millisecond
	heldLater = 20 * time.Millisecond
	heldYoung = 100 * time.Millisecond
)

// A flood of fragments gets a fifth of a core at most: after work that took longer than
// heldWork, the daemon rests four times as long. The ring fills meanwhile, and the programs
// drop what finds no room.
const (
	heldWork = 200 * time.Microsecond
	heldRest = 50 * time.Millisecond // at most
)

// holder keeps fragments that came before their first, and gives them back when it has
// passed (bpf/path/early_fragment.h).
type holder struct {
	readiness
	box   *box
	held  []heldFragment // the oldest first
	count map[dataplane.FragmentKey]int
}

type heldFragment struct {
	dataplane.EarlyFragment
	since time.Time
}

func (*holder) String() string { return "fragments" }

// Run reads the ring as long as the daemon lives. What an earlier daemon left there is too
// old.
func (h *holder) Run(ctx context.Context) error {
	h.count = make(map[dataplane.FragmentKey]int)
	ring, err := h.open()
	if err != nil {
		return err
	}
	defer ring.Close()
	if err := ring.Read(0, func(dataplane.EarlyFragment) {}); err != nil {
		return err
	}
	h.hold(true)
	defer h.hold(false)
	h.set()
	for ctx.Err() == nil {
		var work time.Duration
		err := ring.Read(h.pause(time.Now()), func(e dataplane.EarlyFragment) {
			began := time.Now()
			h.add(e, began)
			work += time.Since(began)
		})
		if err != nil {
			return err
		}
		began := time.Now()
		h.look(began)
		if work += time.Since(began); work > heldWork {
			time.Sleep(min(4*work, heldRest))
		}
	}
	return nil
}

func (h *holder) open() (*dataplane.EarlyFragments, error) {
	h.box.mu.Lock()
	defer h.box.mu.Unlock()
	return h.box.dp.OpenEarlyFragments()
}

func (h *holder) hold(on bool) {
	h.box.mu.Lock()
	defer h.box.mu.Unlock()
	h.box.dp.HoldFragments(on)
}

// pause is how long to wait for the ring. With nothing held it is how long an end of the
// daemon may wait.
func (h *holder) pause(now time.Time) time.Duration {
	switch {
	case len(h.held) == 0:
		return 200 * time.Millisecond
	case now.Sub(h.held[len(h.held)-1].since) < heldYoung:
		return heldSoon
	}
	return heldLater
}

// add keeps a fragment. If there are too many, the oldest goes.
func (h *holder) add(e dataplane.EarlyFragment, now time.Time) {
	if h.count[e.Key] >= maxHeldOfOne {
		return
	}
	if len(h.held) == maxHeld {
		h.forget(h.held[0].Key)
		h.held = h.held[1:]
	}
	e.Frame = bytes.Clone(e.Frame)
	h.held = append(h.held, heldFragment{e, now})
	h.count[e.Key]++
}

func (h *holder) forget(key dataplane.FragmentKey) {
	if h.count[key]--; h.count[key] == 0 {
		delete(h.count, key)
	}
}

// look gives back the fragments whose first has come, in their order, and drops those that
// have waited too long.
func (h *holder) look(now time.Time) {
	if len(h.held) == 0 || !h.box.mu.TryLock() { // a load is under way
		return
	}
	defer h.box.mu.Unlock()
	b := h.box
	came := make(map[dataplane.FragmentKey]bool, len(h.count))
	for key := range h.count {
		came[key] = b.dp.HasFirst(key)
	}
	timeout := b.dp.FragmentTimeout()
	kept := h.held[:0]
	for _, one := range h.held {
		switch {
		case came[one.Key]:
			if err := b.dp.Receive(one.Frame, one.Ifindex, b.hooks[one.Ifindex].Hook == XDP); err != nil {
				b.cfg.Log.Debug("give a fragment back", "ifindex", one.Ifindex, "error", err)
			}
		case now.Sub(one.since) < timeout:
			kept = append(kept, one)
			continue
		}
		h.forget(one.Key)
	}
	clear(h.held[len(kept):])
	h.held = kept
}
