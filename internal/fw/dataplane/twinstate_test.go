package dataplane

import (
	"fmt"
	"strings"
	"unsafe"

	"weir/internal/fw/state"
)

// tellTime sets the dataplane's clock, and its timeouts as the garbage collection would
// scale them.
func (t *twin) tellTime(now uint32) {
	t.dp.tables.shared.Now = now
	t.dp.tables.shared.Timeout = t.model.Timeouts()
	t.dp.tables.shared.TimeoutPart = t.model.Part()
	t.dp.tables.shared.TimeoutSet = state.TimeoutsOf(&t.rules.Options.Timeouts)
	t.dp.Heartbeat()
}

// bury marks expired states dead, so that longer timeouts after a drop in states do not
// revive them. With collect it does so for all that the garbage collection ends.
func (t *twin) bury(collect bool) {
	ended := t.model.KillExpired(collect)
	t.dp.View().KillStates(func(s *state.State) bool { return ended[s.Index] })
}

// wait lets ticks go by.
func (t *twin) wait(ticks uint32) {
	t.bury(false)
	now := t.dp.tables.shared.Now + ticks
	t.model.SetClock(state.Tick(now))
	t.tellTime(now)
	t.withdrawDue()
}

// sweep releases dead states, as state/gc.h does.
func (t *twin) sweep() {
	t.bury(true)
	t.settle()
	t.release(t.sweepStates)
	t.model.Sweep()
	t.sweepSources()
	t.look()
	t.wait(1) // no slot is used again within a tick (DEAD_GRACE)
}

func (t *twin) sweepStates() {
	tables := t.dp.tables
	for i := range tables.states {
		s := &tables.states[i]
		if s.Status != statusDead {
			continue
		}
		for d, tuple := range []*xdpTuple{&s.Forth.Tuple, &s.Back.Tuple} {
			check(t.tb, tables.release(tuple, uint32(i<<1|d), t.dp.ledger.HashSeed))
		}
		t.uncount(i)
		t.unmap(s)
		t.unpool(uint32(i))
		s.Status = statusFree
		tables.shared.StatesReleased++
	}
}

// holds reports whether a number's state is the one with that tuple.
func (t *twin) holds(number uint32, tuple state.Tuple) bool {
	return t.known[number>>1].Tuple[0] == tuple
}

// look reads the states that have changed since the last look. It returns the new state,
// or nil if there is none.
func (t *twin) look() *state.State {
	var made *state.State
	for i := range t.raw {
		now, before := &t.dp.tables.states[i], &t.raw[i]
		if *now.bytes() == *before.bytes() {
			continue
		}
		was := before.Status
		*before = *now
		if now.Status != statusLive {
			t.known[i].Index = 0
			continue
		}
		t.dp.tables.decode(&t.known[i], uint32(i))
		t.known[i].NextHops = [2]uint16{}
		if was != statusLive {
			made = &t.known[i]
		}
	}
	return made
}

// bytes is the state as one value, which is compared much faster than its fields.
func (s *xdpState) bytes() *[unsafe.Sizeof(xdpState{})]byte {
	return (*[unsafe.Sizeof(xdpState{})]byte)(unsafe.Pointer(s))
}

// differStates compares the states that have not expired.
func (t *twin) differStates() string {
	now, timeouts := state.Tick(t.dp.tables.shared.Now), t.model.Timeouts()
	live := func(s *state.State) bool { return s.Index != 0 && s.Expires(now, &timeouts) > 0 }
	var b strings.Builder
	n := 0
	for want := range t.model.Live() {
		if !live(want) && want.Index != 0 {
			continue
		}
		n++
		if got := &t.known[want.Index]; *got != *want {
			fmt.Fprintf(&b, "state, model:     %+v\nstate, dataplane: %+v\n", *want, *got)
		}
	}
	for i := range t.known {
		if live(&t.known[i]) {
			n--
		}
	}
	if n != 0 && b.Len() == 0 {
		fmt.Fprintf(&b, "states, model:     %+v\nstates, dataplane: %+v\n", t.model.States(), t.known)
	}
	return b.String()
}
