package daemon

import (
	"errors"
	"fmt"
	"strings"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
	"weir/internal/host/netif"
)

// choose chooses the hook of every interface of a machine, and prepares the interfaces
// that get XDP. before holds the hooks of an earlier daemon's dataplane, by interface
// index. A hook is kept if the choice is the same again.
func (b *box) choose(m *machine) {
	b.hooks = make(map[int]hooked)
	for i := range m.links {
		b.chooseOne(&m.links[i])
	}
}

// chooseOne chooses the hook of one interface. Bridge ports get none, and while pf is
// disabled no interface does.
func (b *box) chooseOne(l *netif.Link) {
	if !b.disabled.IsZero() {
		return
	}
	c := Choose(l, b.cfg.Mode)
	if c.Hook == XDP && l.Index < dataplane.MaxIfindex {
		if err := b.keepTags(l); err != nil {
			c = Choice{TCX, err.Error()}
		}
	}
	if c.Hook != NoHook && l.Index >= dataplane.MaxIfindex {
		c = Choice{TCX, unknownIndex(l)}
	}
	if c.Hook != NoHook {
		b.hooks[l.Index] = hooked{Choice: c}
	}
}

// unknownIndex says why an interface's packets are dropped if its index is too high. Its
// programs do that, so they are attached all the same.
func unknownIndex(l *netif.Link) string {
	return fmt.Sprintf("its packets are dropped: its index is %d, weir handles up to %d; create it with a lower index or restart the machine", l.Index, dataplane.MaxIfindex-1)
}

// keepTags makes an interface leave VLAN tags in the frame. XDP does not see a tag that
// the device has taken out, and would treat the frame as untagged.
func (b *box) keepTags(l *netif.Link) error {
	was, err := netif.VLANStripping(l.Name)
	if err != nil {
		return fmt.Errorf("cannot tell whether it strips VLAN tags: %w", err)
	}
	want := make(netif.Features)
	for feature, on := range was {
		if on {
			want[feature] = false
		}
	}
	if len(want) == 0 {
		return nil
	}
	if err := b.found.features(l.Index, l.Name, was, want); err != nil {
		return fmt.Errorf("it strips VLAN tags before XDP sees them: %w", err)
	}
	return nil
}

// refused notes that an interface's driver refused XDP, so that the interface gets TCX
// alone. It returns false for any other error.
func (b *box) refused(err error) bool {
	var refusal *dataplane.RefusalError
	var failed *dataplane.AttachError
	if !errors.As(err, &refusal) || !errors.As(err, &failed) {
		return false
	}
	a := failed.Attachment
	h, ok := b.hooks[a.Ifindex]
	if !ok || h.Hook != XDP {
		return false
	}
	why := dataplane.ErrNative.Error()
	if refusal.Said != "" {
		why += ": " + refusal.Said
	}
	h.Choice = Choice{TCX, why}
	b.hooks[a.Ifindex] = h
	b.cfg.Log.Warn("the driver refuses XDP; using TCX", "interface", a.Name, "error", err)
	return true
}

// from returns an error's text, beginning with the text of one of its causes. It leaves
// out what was tried.
func from(err, cause error) string {
	text := err.Error()
	if i := strings.Index(text, cause.Error()); i >= 0 {
		return text[i:]
	}
	return text
}

// commit makes a dataplane live. If a driver refuses XDP, the interface gets TCX, unless
// the user asked for XDP only. With --or-block it gets TCX even then, because filtering
// matters more. The source text and the contents of tables are recorded first, so that
// whoever finds the dataplane live also finds these.
func (b *box) commit(dp *dataplane.Dataplane, source Source, rules *compiled, m *machine) (_ dataplane.Report, err error) {
	b.policies.join(dp, rules.options.MarkMask)
	defer func() {
		if err != nil {
			b.policies.leave(dp)
		}
	}()
	if err := b.recordSource(&source, dp.Generation()); err != nil {
		return dataplane.Report{}, err
	}
	records, err := b.recordTables(dp, rules)
	if err != nil {
		return dataplane.Report{}, err
	}
	if err := b.followRouteMTUs(dp, false); err != nil && !errors.Is(err, errLater) {
		return dataplane.Report{}, err
	}
	b.willSpread(dp, rules, m)
	if err := b.blockTunnels(&source, rules); err != nil {
		return dataplane.Report{}, err
	}
	report, err := b.commitAttached(dp, m)
	if err != nil {
		b.unblockTunnels()
		return report, err
	}
	b.tables = records
	b.noteTunnels(&source, rules)
	if err := b.storeTables(rules); err != nil {
		b.cfg.Log.Error("store tables", "error", err)
	}
	return report, nil
}

// commitAttached makes a dataplane live, with other hooks where drivers refuse XDP.
func (b *box) commitAttached(dp *dataplane.Dataplane, m *machine) (dataplane.Report, error) {
	for {
		report, err := dp.Commit(b.attachments(m))
		if err == nil {
			return report, nil
		}
		if b.cfg.Mode == ForceXDP && !b.cfg.OrBlock && errors.Is(err, dataplane.ErrNative) {
			return report, fmt.Errorf("%w; --hook auto uses TCX there", err)
		}
		if !b.refused(err) && !b.fallsBack(err, m) {
			return report, err
		}
		if err := b.setInterfaces(m, nil); err != nil {
			return report, err
		}
	}
}

// attach attaches programs to an interface that appeared. If the driver refuses XDP, the
// interface gets TCX, under --hook xdp too: without programs nothing filters it.
func (b *box) attach(l *netif.Link) error {
	for {
		h := b.hooks[l.Index]
		if err := b.setInterface(l); err != nil {
			return err
		}
		err := b.dp.Attach(dataplane.Attachment{Ifindex: l.Index, Name: l.Name, XDP: h.Hook == XDP})
		if err == nil {
			return nil
		}
		if errors.Is(err, dataplane.ErrForeign) {
			b.leaveXDP(l, err)
			continue
		}
		if !b.refused(err) {
			return fmt.Errorf("attach to %s: %w", l.Name, err)
		}
	}
}

// attachAgain attaches after the hook of an interface has changed. If that fails, the
// interface counts as it did before, so that the next look at the machine tries again.
func (b *box) attachAgain(l *netif.Link, before hooked) error {
	err := b.attach(l)
	if err != nil {
		before.known = b.hooks[l.Index].known
		b.hooks[l.Index] = before
	}
	return err
}

// noteInterfaces records the interfaces and their hooks for readers of the run folder.
func (b *box) noteInterfaces(m *machine) error {
	all := make([]rundir.Interface, 0, len(m.links))
	for i := range m.links {
		l := &m.links[i]
		n := rundir.NewInterface(l, m.host.Interfaces[i].Groups)
		c := Choose(l, b.cfg.Mode)
		if h, ok := b.hooks[l.Index]; ok {
			c = h.Choice
		} else if c.Hook != NoHook {
			c = Choice{NoHook, "its programs are not attached"}
			if !b.disabled.IsZero() {
				c.Why = "pf is disabled; weir pfctl -e enables it"
			}
		}
		n.Hook, n.Why = string(c.Hook), c.Why
		switch under := b.hooks[l.Index].parent; {
		case c.Hook == XDP:
			n.Mode = "native"
		case under.by != "":
			n.Hook, n.Mode, n.Why = string(XDP), "parent", fmt.Sprintf("the XDP program of %s handles its frames", under.by)
		case under.why != "":
			n.Why += "; XDP does not handle its frames either: " + under.why
		}
		if s := b.spreads.by[l.Name]; s != nil {
			n.Spread = s.why
		}
		n.Skip = b.rules.skips(l, m.host)
		all = append(all, n)
	}
	return rundir.WriteJSON(b.cfg.Folder.Interfaces(), all)
}
