package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/ruleset"
	"weir/internal/host/netif"
)

// followPause is the least time between two reads of the machine. Routes may change
// thousands of times a second while a routing daemon converges, and every bump costs each
// connection a route look-up.
const followPause = 100 * time.Millisecond

// retryPause is how long to wait before reading the machine again after a failure.
const retryPause = time.Second

// follower updates the dataplane as the machine changes.
type follower struct {
	readiness
	box     *box
	watcher *netif.Watcher
	pending atomic.Uint32 // netif.Change bits that are not handled yet
}

func (*follower) String() string { return "network events" }

func (f *follower) Run(ctx context.Context) error {
	wake := make(chan struct{}, 1)
	heard := make(chan error, 1)
	go func() { heard <- f.collect(ctx, wake) }()
	defer func() { f.watcher.Close(); <-heard }()
	f.pending.Store(uint32(netif.ChangedAll)) // covers changes during the start
	if !f.handle() {
		signal(wake)
	}
	f.set()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-heard:
			heard <- nil
			return err
		case <-f.box.again:
			f.pending.Or(uint32(netif.ChangedAll))
		case <-wake:
		}
		pause := followPause
		if !f.handle() {
			pause = retryPause
			signal(wake)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// collect collects changes until the watcher is closed.
func (f *follower) collect(ctx context.Context, wake chan<- struct{}) error {
	for {
		c, err := f.watcher.Next()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if c != 0 {
			f.pending.Or(uint32(c))
			signal(wake)
		}
	}
}

func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// handle handles the pending changes. What fails stays pending.
func (f *follower) handle() bool {
	c := netif.Change(f.pending.Swap(0))
	if c == 0 {
		return true
	}
	err := f.box.follow(c)
	if err == nil {
		return true
	}
	f.pending.Or(uint32(c))
	switch {
	case errors.Is(err, dataplane.ErrBusy):
		f.box.cfg.Log.Info("a change of the network waits until another process has replaced the dataplane")
	case errors.Is(err, errLater):
		f.box.cfg.Log.Debug("a change of the network is followed later", "error", err)
	case errors.Is(err, unix.ENODEV):
		f.box.cfg.Log.Info("an interface has vanished: the change of the network is followed again", "error", err)
	default:
		f.box.cfg.Log.Error("follow a change of the network", "error", err)
	}
	return false
}

// follow brings the dataplane up to date after a change.
func (b *box) follow(c netif.Change) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c&^netif.ChangedQueues != 0 {
		b.dp.BumpRoutes()
	}
	var mtus error
	if c&netif.ChangedRouteMTUs != 0 {
		mtus = b.followRouteMTUs(b.dp, true)
	}
	if err := b.followLinks(c); err != nil {
		return err
	}
	return mtus
}

// followLinks follows what has changed besides the MTUs of routes.
func (b *box) followLinks(c netif.Change) error {
	if c&(netif.ChangedLinks|netif.ChangedAddresses|netif.ChangedDefault) == 0 {
		if c&netif.ChangedQueues != 0 {
			return b.holdAgain()
		}
		return nil
	}
	b.touched.Store(true)
	m, err := b.machine()
	if err != nil {
		return err
	}
	if err := b.forgetGone(m); err != nil {
		return err
	}
	// Attach programs first: until then the guard drops what the new interface would
	// forward.
	err = errors.Join(b.attachNew(m), b.keepHooks(m), b.resolveAgain(m))
	// Cached routes may lead to interfaces that were not known yet.
	b.dp.BumpRoutes()
	if err == nil {
		err = b.endFormer(m)
	}
	return err
}

// forgetGone forgets interfaces that are gone or became ports of a bridge. An interface
// counts as gone even if another one has reused its index. The error wraps
// dataplane.ErrBusy if not all could be detached.
func (b *box) forgetGone(m *machine) error {
	names := m.names()
	lost, err := b.dp.Lost()
	if err != nil {
		b.cfg.Log.Error("find the interfaces that lost their programs", "error", err)
	}
	for _, index := range lost {
		if !b.isSameDevice(m, index) {
			delete(names, index) // another device has the index now
		}
	}
	for index := range b.hooks {
		if names[index] == "" || slices.Contains(lost, index) {
			if err := b.forgetInterface(index); err != nil {
				return err
			}
		}
	}
	for i := range m.links {
		l := &m.links[i]
		if _, ok := b.hooks[l.Index]; ok && l.Port() {
			if err := b.forgetInterface(l.Index); err != nil {
				return err
			}
		}
	}
	if err := b.found.forget(names); err != nil {
		b.cfg.Log.Error("remove the records of interfaces that are gone", "error", err)
	}
	return nil
}

// isSameDevice reports whether an index still belongs to the same device. If it has lost
// its programs, somebody has detached them, and the record of its settings is still
// needed.
func (b *box) isSameDevice(m *machine, index int) bool {
	at := func(links []netif.Link) int {
		return slices.IndexFunc(links, func(l netif.Link) bool { return l.Index == index })
	}
	before, now := at(b.links), at(m.links)
	if before < 0 || now < 0 {
		return false
	}
	was, is := &b.links[before], &m.links[now]
	return was.Kind == is.Kind && bytes.Equal(was.MAC, is.MAC) && (len(is.MAC) > 0 || was.Name == is.Name)
}

// forgetInterface detaches from an interface and forgets it, except while another process
// replaces the dataplane.
func (b *box) forgetInterface(index int) error {
	err := b.dp.Detach(index)
	if errors.Is(err, dataplane.ErrBusy) {
		return err
	}
	delete(b.hooks, index)
	if err := errors.Join(err, b.dp.RemoveInterface(index)); err != nil {
		b.cfg.Log.Error("forget an interface", "index", index, "error", err)
	}
	return nil
}

// attachNew attaches programs to interfaces that have none, then lets these forward.
func (b *box) attachNew(m *machine) error {
	var errs []error
	for i := range m.links {
		l := &m.links[i]
		if _, ok := b.hooks[l.Index]; ok {
			continue
		}
		b.chooseOne(l)
		h, ok := b.hooks[l.Index]
		if !ok {
			continue
		}
		if err := b.attach(l); err != nil {
			delete(b.hooks, l.Index)
			errs = append(errs, err)
			continue
		}
		b.cfg.Log.Info("attached", "interface", l.Name, "hook", h.Hook, "why", h.Why)
	}
	errs = append(errs, b.found.forwardOn(m.hooked(b.hooks), m.links))
	return errors.Join(errs...)
}

// resolveAgain resolves the same text again after a change of the machine. It always
// tells the dataplane the interfaces and addresses, and gives translations the present
// addresses. It replaces the dataplane only if the rules now mean something else. If the
// rules do not load for the changed machine, the old ones stay.
func (b *box) resolveAgain(m *machine) error {
	signal(b.changed)
	rules, err := b.source.compile(m)
	if err != nil {
		return errors.Join(fmt.Errorf("the rules no longer compile on this machine; the old ones stay in force: %w", err), b.updateInterfaces(m))
	}
	if !rules.sameRules(b.rules) {
		return b.replace(b.source, m)
	}
	err = b.refill(m)
	if errors.Is(err, ruleset.ErrPoolFull) {
		return b.replace(b.source, m)
	}
	if err != nil {
		return err
	}
	b.host = m.host
	return b.updateInterfaces(m)
}

// refill gives the pools of translations and next hops what they choose from now.
func (b *box) refill(m *machine) error {
	changes, err := b.rules.program.Refill(m.snapshot(b.rules.options.Groups))
	if err != nil {
		return err
	}
	if err := b.dp.SetPools(changes); err != nil {
		return fmt.Errorf("update what translations and next hops choose from: %w", err)
	}
	return nil
}
