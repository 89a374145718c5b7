package dhcp6

import (
	"net/netip"
	"slices"
	"time"
)

// Prefix is a delegated prefix.
type Prefix struct {
	Prefix netip.Prefix
	// Preferred and Valid are until when hosts may use it for new connections, and at all. Zero:
	// for ever.
	Preferred, Valid time.Time
}

// Lease is what a server has delegated. It may be written to a file, for a process that goes on
// with it.
type Lease struct {
	Prefixes []Prefix
	DNS      []netip.Addr
	Server   []byte // its identifier (DUID)
	// Renew is when this server is asked again, Rebind when any server is. Zero: never.
	Renew, Rebind time.Time
}

// over says whether a time has come. The zero time is never.
func over(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// next is when the next of the prefixes is not valid any more; zero: none will be.
func (l *Lease) next() (next time.Time) {
	for _, p := range l.Prefixes {
		next = sooner(next, p.Valid)
	}
	return next
}

// sooner is the sooner of two times. The zero time is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// expire removes the prefixes that are not valid any more, and says whether there were any.
func (l *Lease) expire(now time.Time) bool {
	before := len(l.Prefixes)
	l.Prefixes = slices.DeleteFunc(slices.Clone(l.Prefixes), func(p Prefix) bool { return over(p.Valid, now) })
	return len(l.Prefixes) < before
}

// longest returns the prefix that new connections may use longest; false: there is none.
func (l *Lease) longest(now time.Time) (best Prefix, ok bool) {
	for _, p := range l.Prefixes {
		if over(p.Preferred, now) {
			continue
		}
		if !ok || !best.Preferred.IsZero() && (p.Preferred.IsZero() || p.Preferred.After(best.Preferred)) {
			best, ok = p, true
		}
	}
	return best, ok
}
