package spd

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"weir/internal/host/xfrm"
)

// HoldTime is how long a policy that has gone is held. A daemon that negotiates anew may remove a
// policy before it has the next one.
const HoldTime = 30 * time.Second

// A Holder remembers the policies that have just gone, of those whose packets must not leave in
// clear. The zero value remembers none.
type Holder struct {
	present map[identity]xfrm.Policy
	gone    map[identity]held
}

// identity is what the kernel tells policies apart by.
type identity struct {
	xfrm.Selector
	direction xfrm.Direction
	ifID      uint32
	sub       bool
}

func identityOf(p *xfrm.Policy) identity { return identity{p.Selector, p.Direction, p.IfID, p.Sub} }

type held struct {
	policy xfrm.Policy
	until  time.Time
}

// See notes the policies that there are now.
func (h *Holder) See(policies []xfrm.Policy, now time.Time, hold time.Duration) {
	present := make(map[identity]xfrm.Policy, len(policies))
	for i := range policies {
		if p := &policies[i]; Follows(p) {
			present[identityOf(p)] = *p
		}
	}
	if h.gone == nil {
		h.gone = make(map[identity]held)
	}
	for id, p := range h.present {
		if _, stays := present[id]; !stays && isSecret(&p) {
			p.Offloaded = false // the card does not encrypt any more
			h.gone[id] = held{p, now.Add(hold)}
		}
	}
	maps.DeleteFunc(h.gone, func(id identity, g held) bool {
		_, back := present[id]
		return back || !now.Before(g.until)
	})
	h.present = present
}

// isSecret reports whether packets that a policy selects must not leave in clear, if no card encrypts them.
func isSecret(p *xfrm.Policy) bool {
	own := *p
	own.Offloaded = false
	return verdict(&own) == Secret
}

// Secret returns the policies, present and held, whose packets must not leave in clear: what another
// Holder has to recall.
func (h *Holder) Secret() []xfrm.Policy {
	var secret []xfrm.Policy
	for _, p := range h.present {
		if isSecret(&p) {
			secret = append(secret, p)
		}
	}
	for _, g := range h.gone {
		secret = append(secret, g.policy)
	}
	slices.SortFunc(secret, func(a, b xfrm.Policy) int { return cmp.Compare(a.Index, b.Index) })
	return secret
}

// Recall takes over what another Holder has last called secret. What of it has gone since is held from
// now on.
func (h *Holder) Recall(secret []xfrm.Policy) {
	h.present = make(map[identity]xfrm.Policy, len(secret))
	for i := range secret {
		h.present[identityOf(&secret[i])] = secret[i]
	}
}

// Held returns the policies that are held, and when the first of them ceases to be; the zero time if there
// are none.
func (h *Holder) Held() (policies []xfrm.Policy, until time.Time) {
	for _, g := range h.gone {
		policies = append(policies, g.policy)
		if until.IsZero() || g.until.Before(until) {
			until = g.until
		}
	}
	slices.SortFunc(policies, func(a, b xfrm.Policy) int { return cmp.Compare(a.Index, b.Index) })
	return policies, until
}
