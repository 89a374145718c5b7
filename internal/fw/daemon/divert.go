package daemon

import (
	"errors"
	"slices"

	"weir/internal/fw/dataplane"
	"weir/internal/host/netif"
	"weir/pf/resolve"
)

// diverts returns the mark of the packets that rules divert to sockets; false if none does.
func (c *compiled) diverts() (netif.MarkMatch, bool) {
	diverts := slices.ContainsFunc(c.rules, func(r *resolve.Rule) bool {
		return r.Divert.Kind == resolve.DivertTo || r.Divert.Kind == resolve.DivertReply
	})
	mask := c.options.MarkMask
	return netif.MarkMatch{Mark: dataplane.DivertMark(mask), Mask: mask}, diverts
}

// divertOn lets packets reach the sockets that the rules divert them to, before the rules
// come into force. What it adds is recorded first.
func (b *box) divertOn(rules *compiled) error {
	m, diverts := rules.diverts()
	if !diverts {
		return nil
	}
	if !slices.Contains(b.found.Diverts, m) {
		if err := b.found.note(func(f *Found) { f.Diverts = append(f.Diverts, m) }); err != nil {
			return err
		}
	}
	return netif.DivertOn(m)
}

// divertOff removes what the rules in force do not need any more.
func (b *box) divertOff() {
	m, diverts := b.rules.diverts()
	if err := b.found.divertOff(func(x netif.MarkMatch) bool { return diverts && x == m }); err != nil {
		b.cfg.Log.Warn("a routing rule for diverted packets stays", "error", err)
	}
}

// divertOff removes the routing rules of diverted packets, except for those to keep.
func (f *Found) divertOff(keep func(netif.MarkMatch) bool) error {
	kept := slices.DeleteFunc(slices.Clone(f.Diverts), func(m netif.MarkMatch) bool { return !keep(m) })
	if len(kept) == len(f.Diverts) {
		return nil
	}
	var errs []error
	for _, m := range f.Diverts {
		if !slices.Contains(kept, m) {
			errs = append(errs, netif.DivertOff(m, len(kept) == 0))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return f.note(func(f *Found) { f.Diverts = kept })
}

func noDivert(netif.MarkMatch) bool { return false }
