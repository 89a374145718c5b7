package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"sync"
	"time"

	"weir/internal/fw/ruleset"
	"weir/internal/fw/rundir"
	"weir/internal/fw/state"
	"weir/internal/host/netif"
	"weir/pf/resolve"
)

// former is what is known of the addresses that interfaces have and had. The states of one that another has taken the place of end:
// nobody answers to it any more, and what a host sends all the time, as telephones and tunnels do, would be translated to it for ever.
type former struct {
	Turn  uint64          `json:"turn"` // how often addresses have come
	Known []formerAddress `json:"known"`
}

// formerAddress is an address of an interface. None is link-local.
type formerAddress struct {
	Interface string     `json:"interface"`
	Addr      netip.Addr `json:"addr"`
	First     bool       `json:"first"`               // of its family there, when it was seen last
	Temporary bool       `json:"temporary,omitempty"` // of IPv6
	Turn      uint64     `json:"turn"`                // in which it came
	Back      bool       `json:"back,omitempty"`      // it was gone before, and remembered
	Gone      bool       `json:"gone,omitempty"`
	Went      uint64     `json:"went,omitempty"` // the turn in which it went
	Since     time.Time  `json:"since"`          // when it came or went
}

const (
	// mostGone is how many addresses are remembered that are gone.
	mostGone = 256
	// returnPatience is how long an address may be gone before one replaces it that was there before. A DHCP client that starts anew
	// removes its address, and asks for it again.
	returnPatience = 30 * time.Second
)

// look follows the addresses of the machine, and reports whether anything is another than before.
func (f *former) look(links []netif.Link, at time.Time) (changed bool) {
	type key struct {
		on   string
		addr netip.Addr
	}
	f.Turn++
	known := make(map[key]*formerAddress, len(f.Known))
	for i := range f.Known {
		known[key{f.Known[i].Interface, f.Known[i].Addr}] = &f.Known[i]
	}
	var now []formerAddress
	here := make(map[key]bool)
	for i := range links {
		first := map[bool]bool{true: true, false: true} // by whether it is IPv4
		for _, a := range links[i].Addresses {
			addr := a.Prefix.Addr()
			k := key{links[i].Name, addr}
			if a.Tentative || addr.IsLinkLocalUnicast() || addr.IsLoopback() || here[k] {
				continue
			}
			n := formerAddress{Interface: links[i].Name, Addr: addr, Turn: f.Turn, Since: at}
			if was := known[k]; was != nil && was.Gone {
				n.Back = true
			} else if was != nil {
				n = *was
			}
			n.First, n.Temporary = first[addr.Is4()], a.Temporary
			now = append(now, n)
			first[addr.Is4()] = first[addr.Is4()] && a.Deprecated
			here[k] = true
		}
	}
	var gone []formerAddress
	for _, a := range f.Known {
		if here[key{a.Interface, a.Addr}] {
			continue
		}
		if !a.Gone {
			a.Gone, a.Went, a.Since = true, f.Turn, at
		}
		gone = append(gone, a)
	}
	now = append(now, gone[max(0, len(gone)-mostGone):]...)
	slices.SortStableFunc(now, func(a, b formerAddress) int { return cmp.Compare(a.Turn, b.Turn) })
	changed = !slices.Equal(now, f.Known)
	f.Known = now
	return changed
}

// replaced returns the addresses that are gone and that another one has replaced, and forgets them. If more will be so without any
// change, wait is the time until then. onlyFirst reports whether only the first address of each family counts on an interface.
func (f *former) replaced(now time.Time, onlyFirst func(name string) bool) (all []formerAddress, wait time.Duration) {
	type place struct {
		on  string
		is4 bool
	}
	here := make(map[place][]*formerAddress) // in the order in which they came
	at := func(a *formerAddress) place { return place{a.Interface, a.Addr.Is4()} }
	for i := range f.Known {
		if a := &f.Known[i]; !a.Gone {
			here[at(a)] = append(here[at(a)], a)
		}
	}
	f.Known = slices.DeleteFunc(slices.Clone(f.Known), func(a formerAddress) bool {
		if !a.Gone {
			return false
		}
		rest, some := a.left(here[at(&a)], onlyFirst, now)
		switch {
		case some && rest <= 0:
			all = append(all, a)
		case some && (wait == 0 || rest < wait):
			wait = rest
		}
		return some && rest <= 0
	})
	return all, wait
}

// left returns the time until an address that is gone counts as replaced by one of those that are there; some: there is one that will
// replace it. One that came when it went, or later, does so at once. One that was there before, or has come back, does so after a while: the
// one that is gone may come back, too. Older ones never do: what remains when an address of VRRP moves away is older, and its connections
// go on when it returns. A temporary address replaces only its like.
func (a *formerAddress) left(here []*formerAddress, onlyFirst func(name string) bool, now time.Time) (rest time.Duration, some bool) {
	for _, b := range slices.Backward(here) {
		if b.Turn <= a.Turn {
			break
		}
		if b.Temporary && !a.Temporary || !b.First && onlyFirst(b.Interface) {
			continue
		}
		if b.Turn >= a.Went && !b.Back {
			return 0, true
		}
		since := a.Since
		if b.Since.After(since) {
			since = b.Since
		}
		if d := since.Add(returnPatience).Sub(now); !some || d < rest {
			rest, some = d, true
		}
	}
	return rest, some
}

// has reports whether an interface has an address.
func (f *former) has(addr netip.Addr) bool {
	return slices.ContainsFunc(f.Known, func(a formerAddress) bool { return a.Addr == addr && !a.Gone })
}

// notAfter mends times after now: the clock may have been set back since, and the wait would be as long.
func (f *former) notAfter(now time.Time) {
	for i := range f.Known {
		if f.Known[i].Since.After(now) {
			f.Known[i].Since = now
		}
	}
}

// readFormer reads what the daemon before this one has known.
func (b *box) readFormer() {
	err := rundir.ReadJSON(b.cfg.Folder.Addresses(), &b.former)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.cfg.Log.Warn("read which addresses the interfaces had", "error", err)
	}
	b.former.notAfter(time.Now())
}

// endFormer ends the states of replaced addresses: of PPPoE interfaces, and of those that rules translate to. Translations have the new
// ones already.
func (b *box) endFormer(m *machine) error {
	now, of := b.former, b.uses(m)
	at := time.Now()
	changed := now.look(m.links, at)
	replaced, wait := now.replaced(at, func(name string) bool { return of(name) == use{first: true} })
	var gone []netip.Addr
	for _, a := range replaced {
		if u := of(a.Interface); (u.all || u.first && a.First) && !now.has(a.Addr) {
			gone = append(gone, a.Addr)
		}
	}
	if len(gone) > 0 {
		ended, err := b.dp.Kill(func(s *state.State) bool {
			return slices.ContainsFunc(gone, func(a netip.Addr) bool {
				return a == s.Tuple[0].Src || a == s.Tuple[0].Dst || a == s.Tuple[1].Src || a == s.Tuple[1].Dst
			})
		})
		if err != nil {
			return fmt.Errorf("end the states of replaced addresses: %w", err)
		}
		if ended > 0 {
			b.cfg.Log.Info("ended the states of replaced addresses", "addresses", gone, "states", ended)
		}
	}
	if b.formerTimer != nil {
		b.formerTimer.Stop()
	}
	if wait > 0 {
		b.formerTimer = time.AfterFunc(wait, func() { signal(b.again) })
	}
	if b.former = now; changed || len(replaced) > 0 {
		if err := rundir.WriteJSON(b.cfg.Folder.Addresses(), &now); err != nil {
			b.cfg.Log.Error("record the addresses of the interfaces", "error", err)
		}
	}
	return nil
}

// use is which addresses of an interface states may be translated to: all, or the first of each family.
type use struct{ first, all bool }

// uses returns to which addresses of an interface rules translate by its name. Of a PPPoE session all count.
func (b *box) uses(m *machine) func(name string) use {
	interfaces := sync.OnceValue(func() []ruleset.Interface { return m.snapshot(b.rules.options.Groups).Interfaces })
	rules := sync.OnceValue(func() []*resolve.Rule { return slices.Concat(b.rules.lists, b.rules.rules) })
	known := make(map[string]use)
	return func(name string) use {
		u, ok := known[name]
		if i := slices.IndexFunc(m.links, func(l netif.Link) bool { return l.Name == name }); !ok && i >= 0 {
			u.first, u.all = ruleset.TranslatesTo(rules(), &interfaces()[i])
			u.all = u.all || m.links[i].Kind == netif.PPPoE
			known[name] = u
		}
		return u
	}
}
