package daemon

import (
	"errors"
	"fmt"

	"weir/internal/fw/dataplane"
	"weir/internal/host/netif"
)

// refuseForeign refuses a machine that has other XDP programs. They see packets before
// weir does, whichever hook weir uses, and may send packets past it. With --or-block they
// are only logged: filtering what they let through is better than not filtering.
func (b *box) refuseForeign(m *machine) error {
	own, err := dataplane.OwnXDP(b.dir)
	if err != nil {
		return fmt.Errorf("look for foreign XDP programs: %w", err)
	}
	var errs []error
	for i := range m.links {
		if l := &m.links[i]; l.XDP != 0 && !own[l.Index] && !l.Port() {
			errs = append(errs, fmt.Errorf("%s: %w", l.Name, foreign(l)))
		}
	}
	if !b.cfg.OrBlock {
		return errors.Join(errs...)
	}
	for _, err := range errs {
		b.cfg.Log.Error("another XDP program sees packets before weir", "error", err)
	}
	return nil
}

// leaveXDP gives an interface TCX, because another program holds its XDP hook.
func (b *box) leaveXDP(l *netif.Link, err error) {
	h := b.hooks[l.Index]
	b.cfg.Log.Error("another XDP program sees packets before weir", "interface", l.Name, "error", err)
	h.Choice, h.foreign = Choice{TCX, from(err, dataplane.ErrForeign)}, l.XDP
	b.hooks[l.Index] = h
}

// fallsBack reports whether a commit failed because of another XDP program that --or-block
// tolerates. The interface then gets TCX.
func (b *box) fallsBack(err error, m *machine) bool {
	var failed *dataplane.AttachError
	if !b.cfg.OrBlock || !errors.Is(err, dataplane.ErrForeign) || !errors.As(err, &failed) {
		return false
	}
	for i := range m.links {
		if l := &m.links[i]; l.Index == failed.Attachment.Ifindex && b.hooks[l.Index].Hook == XDP {
			b.leaveXDP(l, err)
			return true
		}
	}
	return false
}

// foreign names an XDP program on a link that is not weir's, and its owner.
func foreign(l *netif.Link) error {
	return fmt.Errorf("%w: %s; stop the software that attached it, or detach it: ip link set dev %s xdp off",
		dataplane.ErrForeign, dataplane.DescribeProgram(l.XDP), l.Name)
}

// keepHooks checks that the conditions for the attached programs still hold: XDP must see
// VLAN tags, and no other XDP program may have come before TCX. A device's kind may have changed:
// a PPPoE interface looks like a veth device until its line is marked.
func (b *box) keepHooks(m *machine) error {
	var errs []error
	for i := range m.links {
		l := &m.links[i]
		h, ok := b.hooks[l.Index]
		switch {
		case !ok:
		case h.Hook == XDP:
			var err error
			if why := cannotXDP(l); why != "" {
				err = errors.New(why)
			} else {
				err = b.keepTags(l)
			}
			if err != nil {
				b.cfg.Log.Warn("using TCX instead of XDP", "interface", l.Name, "reason", err)
				now := h
				now.Choice = Choice{TCX, err.Error()}
				b.hooks[l.Index] = now
				errs = append(errs, b.updateLogicals(m), b.attachAgain(l, h))
			}
		case l.XDP != h.foreign && l.XDP != 0:
			err := foreign(l)
			b.cfg.Log.Error("another XDP program sees packets before weir", "interface", l.Name, "error", err)
			h.Why, h.foreign = err.Error(), l.XDP
			b.hooks[l.Index] = h
		case l.XDP != h.foreign:
			b.chooseOne(l)
			errs = append(errs, b.attachAgain(l, h))
		case l.XDP == 0:
			b.explain(l, h)
		}
	}
	return errors.Join(errs...)
}

// explain corrects why an interface has TCX if the device's kind has changed. What its driver
// or its tags were the reason for stays.
func (b *box) explain(l *netif.Link, h hooked) {
	now := Choose(l, b.cfg.Mode)
	if l.Index < dataplane.MaxIfindex && now.Hook == TCX && now != h.Choice {
		h.Choice = now
		b.hooks[l.Index] = h
	}
}
