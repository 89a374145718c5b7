package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"

	"weir/internal/fw/ruleset"
	"weir/internal/fw/rundir"
	"weir/internal/fw/state"
	"weir/internal/host/netif"
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
	First     bool       `json:"first"` // of its family there, when it was seen last
	Gone      bool       `json:"gone,omitempty"`
	Turn      uint64     `json:"turn"` // in which it came
}

// mostGone is how many addresses are remembered that are gone.
const mostGone = 256

// look follows the addresses of the machine, and reports whether anything is another than before.
func (f *former) look(links []netif.Link) (changed bool) {
	var now []formerAddress
	for i := range links {
		first := map[bool]bool{true: true, false: true} // by whether it is IPv4
		for _, a := range links[i].Addresses {
			addr := a.Prefix.Addr()
			if a.Tentative || addr.IsLinkLocalUnicast() || addr.IsLoopback() {
				continue
			}
			now = append(now, formerAddress{Interface: links[i].Name, Addr: addr, First: first[addr.Is4()]})
			first[addr.Is4()] = first[addr.Is4()] && a.Deprecated
		}
	}
	f.Turn++
	for i := range now {
		now[i].Turn = f.Turn
		if at := slices.IndexFunc(f.Known, now[i].same); at >= 0 && !f.Known[at].Gone {
			now[i].Turn = f.Known[at].Turn
		}
	}
	gone := slices.DeleteFunc(slices.Clone(f.Known), func(a formerAddress) bool { return slices.ContainsFunc(now, a.same) })
	for i := range gone {
		gone[i].Gone = true
	}
	now = append(now, gone[max(0, len(gone)-mostGone):]...)
	slices.SortStableFunc(now, func(a, b formerAddress) int { return cmp.Compare(a.Turn, b.Turn) })
	changed = !slices.Equal(now, f.Known)
	f.Known = now
	return changed
}

func (a formerAddress) same(b formerAddress) bool {
	return a.Interface == b.Interface && a.Addr == b.Addr
}

// replaced returns the addresses that are gone and whose interface has a later one of their family, and forgets them. An address
// that has only moved away, as those of VRRP do, leaves none behind that came after it: it may come back, and connections go on.
func (f *former) replaced() (all []formerAddress) {
	f.Known = slices.DeleteFunc(slices.Clone(f.Known), func(a formerAddress) bool {
		later := a.Gone && slices.ContainsFunc(f.Known, func(b formerAddress) bool {
			return !b.Gone && b.Interface == a.Interface && b.Addr.Is4() == a.Addr.Is4() && b.Turn > a.Turn
		})
		if later {
			all = append(all, a)
		}
		return later
	})
	return all
}

// has reports whether an interface has an address.
func (f *former) has(addr netip.Addr) bool {
	return slices.ContainsFunc(f.Known, func(a formerAddress) bool { return a.Addr == addr && !a.Gone })
}

// readFormer reads what the daemon before this one has known.
func (b *box) readFormer() {
	err := rundir.ReadJSON(b.cfg.Folder.Addresses(), &b.former)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.cfg.Log.Warn("read which addresses the interfaces had", "error", err)
	}
}

// endFormer ends the states of addresses that others have taken the place of: of PPPoE interfaces, and of those that rules translate
// to. Translations have the new ones already.
func (b *box) endFormer(m *machine) error {
	now := b.former
	changed := now.look(m.links)
	var gone []netip.Addr
	for _, a := range now.replaced() {
		if !now.has(a.Addr) && b.translatesTo(&a, m) {
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
			return fmt.Errorf("end the states of addresses that others have taken the place of: %w", err)
		}
		if ended > 0 {
			b.cfg.Log.Info("ended the states of addresses that others have taken the place of", "addresses", gone, "states", ended)
		}
	}
	if b.former = now; changed {
		if err := rundir.WriteJSON(b.cfg.Folder.Addresses(), &now); err != nil {
			b.cfg.Log.Error("record the addresses of the interfaces", "error", err)
		}
	}
	return nil
}

// translatesTo reports whether rules translate to an address of an interface by its name, or the interface is a PPPoE session.
func (b *box) translatesTo(a *formerAddress, m *machine) bool {
	for i, n := range m.snapshot(b.rules.options.Groups).Interfaces {
		if n.Name != a.Interface {
			continue
		}
		first, all := ruleset.TranslatesTo(slices.Concat(b.rules.lists, b.rules.rules), &n)
		return all || first && a.First || m.links[i].Kind == netif.PPPoE
	}
	return false
}
