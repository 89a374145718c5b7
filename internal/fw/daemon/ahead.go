package daemon

import "fmt"

// LookAhead is what weir run --look-ahead says: whether packets that come in at XDP are
// looked at twice, so that their states come from memory many at a time.
type LookAhead string

// Ways to look ahead.
const (
	AheadAuto LookAhead = "auto" // where states are too many for the processor's caches
	AheadOn   LookAhead = "on"
	AheadOff  LookAhead = "off"
)

// ParseLookAhead reads a way.
func ParseLookAhead(s string) (LookAhead, error) {
	switch l := LookAhead(s); l {
	case AheadAuto, AheadOn, AheadOff:
		return l, nil
	}
	return "", fmt.Errorf("look ahead %q: expected auto, on or off", s)
}

// From aheadFrom states in use on, a packet's state is mostly not in a cache any more
// (docs/measuring.md has the figures); it ends below aheadUntil, so that it does not go
// to and fro.
const (
	aheadFrom  = 48 << 10
	aheadUntil = 24 << 10
)

// wants decides by the states in use, and by whether it is on already.
func (l LookAhead) wants(states uint32, on bool) bool {
	if l != AheadAuto {
		return l == AheadOn
	}
	return states >= aheadFrom || on && states >= aheadUntil
}

// followStates turns looking ahead on and off, and has new interfaces share in it.
func (b *box) followStates() {
	if b.dp == nil {
		return
	}
	on := b.dp.LooksAhead()
	want := b.cfg.LookAhead.wants(b.dp.View().InUse(), on)
	err := b.dp.LookAhead(want)
	if err != nil && b.aheadFailed == nil {
		b.cfg.Log.Warn("packets are looked at once only", "reason", err)
	}
	b.aheadFailed = err
}
