package daemon

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/htb"
	"weir/internal/fw/rundir"
	"weir/internal/fw/shaper"
	"weir/internal/host/netif"
	"weir/pf/resolve"
)

// held is a tree of queues whose packets the kernel holds at a device.
type held struct {
	tree   int // in ruleset.Program.Shapers
	in     bool
	link   int        // index of the interface of the tree
	at     htb.Device // that interface, or for what comes in a device of weir's own
	plan   *htb.Plan
	leaves []string // the kinds of the qdiscs that hold the packets, by class
	untold bool     // they could not be told of hosts
	core   int      // + 1, that goes on with the packets that XDP passes to the stack; 0: that where they come in
}

// mayHold returns an error if the rules want the kernel to hold packets where somebody else does.
func (b *box) mayHold(rules *compiled, m *machine) error {
	var wants []*shaper.Shaper
	for i := range rules.program.Shapers {
		if s := &rules.program.Shapers[i]; s.Engine == shaper.Queue {
			wants = append(wants, s)
		}
	}
	if len(wants) == 0 {
		return nil
	}
	has, err := htb.Read()
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range wants {
		if l := m.link(s.Interface); l != nil {
			if err := foreignQdisc(has, htb.Device{Index: l.Index, Name: l.Name}, s.In); err != nil {
				errs = append(errs, fmt.Errorf("queue %s: engine queue: %w", s.Classes[0].Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// foreignQdisc returns an error if packets cannot wait at a device because of somebody else.
func foreignQdisc(has *htb.Machine, d htb.Device, in bool) error {
	if in {
		return has.ForeignIn(d)
	}
	return has.Foreign(d)
}

// link returns the interface of a name; nil: there is none.
func (m *machine) link(name string) *netif.Link {
	at := slices.IndexFunc(m.links, func(l netif.Link) bool { return l.Name == name })
	if at < 0 {
		return nil
	}
	return &m.links[at]
}

// hold has the kernel hold packets where engine queue does that, and nowhere else. Where it cannot,
// packets are counted. It writes which engine each tree has, and why.
func (b *box) hold(m *machine) error {
	shapers := b.rules.program.Shapers
	has, err := htb.Read()
	if err != nil {
		return err
	}
	measured, err := b.cfg.Folder.ReadModems()
	if err != nil {
		b.cfg.Log.Warn("cannot tell behind which interfaces a queue was measured", "error", err)
	}
	now := make(map[int]*held)
	engines := make([]rundir.Engine, len(shapers))
	for i := range shapers {
		s := &shapers[i]
		engines[i] = rundir.Engine{Interface: s.Interface, In: s.In, Choice: s.Choose(measured[s.Interface])}
		if engines[i].Engine == shaper.Queue {
			b.holdTree(&engines[i], i, m, has, now)
		}
	}
	if err := b.release(has, now); err != nil {
		return err
	}
	b.steer(now, engines)
	b.held = now
	return b.noteEngines(engines)
}

// holdTree sets the qdiscs of a tree up, or says why the tree's packets are counted instead.
func (b *box) holdTree(e *rundir.Engine, tree int, m *machine, has *htb.Machine, now map[int]*held) {
	s := &b.rules.program.Shapers[tree]
	l := m.link(s.Interface)
	if l == nil || b.hooks[l.Index].Hook == "" {
		e.Why += "; there is no interface " + s.Interface + " now that weir filters"
		return
	}
	h := &held{tree: tree, in: s.In, link: l.Index}
	why := b.setHeld(h, l, m, has, now)
	if why != nil {
		e.Choice = shaper.Choice{Engine: shaper.Phantom, Why: why.Error()}
		return
	}
	now[h.at.Index], e.Holds, e.Device = h, htb.Names(h.leaves), h.at.Name
}

// setHeld sets up what holds the packets of a tree, unless it is there.
func (b *box) setHeld(h *held, l *netif.Link, m *machine, has *htb.Machine, now map[int]*held) (err error) {
	h.at = htb.Device{Index: l.Index, Name: l.Name}
	if h.plan, err = b.planOf(h.tree, l, m.host); err != nil {
		return err
	}
	if h.in {
		if err := has.ForeignIn(h.at); err != nil {
			return err
		}
		h.at, err = htb.AddWaiting(h.at)
	} else {
		err = b.holdsBelow(l, m, now)
	}
	if err != nil {
		return err
	}
	before := b.heldBefore(h)
	whole := before != nil && before.at == h.at && has.Whole(h.at.Index, before.plan, before.leaves)
	if whole && reflect.DeepEqual(before.plan, h.plan) {
		h.leaves, h.untold = before.leaves, before.untold
		b.tellAgain(h, has)
		return nil
	}
	err = b.putHeld(h, h.plan)
	if err == nil && before != nil && !whole {
		b.cfg.Log.Warn("somebody has removed queues of weir; they are set up again", "interface", l.Name, "device", h.at.Name)
	}
	return err
}

// putHeld has a tree's device hold packets by a plan.
func (b *box) putHeld(h *held, plan *htb.Plan) error {
	leaves, err := htb.Set(h.at, plan)
	if err != nil {
		return err
	}
	h.leaves, h.plan = leaves, plan
	b.tellHosts(h)
	return nil
}

// tellHosts has the queues of a tree be told which host a packet is of that leaves. What comes in has the hosts' own
// addresses.
func (b *box) tellHosts(h *held) {
	if h.in {
		return
	}
	program, err := b.dp.HostProgram()
	if err == nil {
		err = htb.TellHosts(h.at, h.leaves, program)
	}
	if h.untold = err != nil; h.untold {
		b.cfg.Log.Warn("behind translation the connections of all hosts share a queue, not the hosts", "device", h.at.Name, "error", err)
	}
}

// tellAgain does so after somebody has removed what tells them.
func (b *box) tellAgain(h *held, has *htb.Machine) {
	if h.in || h.untold {
		return
	}
	told, err := has.Told(h.at.Index, h.leaves)
	if err != nil {
		b.cfg.Log.Error("cannot see whether hosts are told apart behind translation", "device", h.at.Name, "error", err)
	} else if !told {
		b.cfg.Log.Warn("somebody has removed a filter of weir, which tells hosts apart behind translation; it is set up again", "device", h.at.Name)
		b.tellHosts(h)
	}
}

// heldBefore returns what held the packets of a tree's interface before; nil: nothing did.
func (b *box) heldBefore(h *held) *held {
	for _, before := range b.held {
		if before.link == h.link && before.in == h.in {
			return before
		}
	}
	return nil
}

// holdAgain holds packets as the rules say after somebody, perhaps weir itself, has changed a qdisc.
func (b *box) holdAgain() error {
	if len(b.rules.program.Shapers) == 0 {
		return nil
	}
	m, err := b.machine()
	if err != nil {
		return err
	}
	return b.updateInterfaces(m)
}

// planOf returns the plan for a tree, at the rate that it has now.
func (b *box) planOf(tree int, l *netif.Link, host *resolve.Host) (*htb.Plan, error) {
	s := b.rules.program.Shapers[tree]
	s.Uplink = slices.ContainsFunc(host.Interfaces, func(i resolve.HostInterface) bool {
		return i.Name == l.Name && slices.Contains(i.Groups, netif.Egress)
	})
	rate, err := b.dp.TreeRate(tree)
	if err != nil {
		return nil, err
	}
	if rate > 0 {
		s = s.At(rate)
	}
	if !s.Link.Known {
		s.Link = b.lineOf(l)
	}
	return htb.PlanOf(&s, uint32(l.MTU), !l.Ethernet), nil
}

// holdAtRate gives the qdiscs of a tree, if it has any, the rate that the tree has been given.
func (b *box) holdAtRate(name string, in bool) error {
	for _, h := range b.held {
		at := slices.IndexFunc(b.links, func(l netif.Link) bool { return l.Index == h.link })
		if s := &b.rules.program.Shapers[h.tree]; s.Interface != name || s.In != in || at < 0 {
			continue
		}
		plan, err := b.planOf(h.tree, &b.links[at], b.host)
		if err != nil {
			return err
		}
		if err := b.putHeld(h, plan); err != nil {
			return errors.Join(err, b.dp.Hold(h.tree, false, 0, -1)) // counted from now on
		}
	}
	return nil
}

// holdsBelow returns an error if the kernel holds packets at a device that carries the frames of
// this one: it could not tell their classes apart.
func (b *box) holdsBelow(l *netif.Link, m *machine, now map[int]*held) error {
	for _, device := range b.carriers(l)[1:] {
		for i := range b.rules.program.Shapers {
			s := &b.rules.program.Shapers[i]
			below := m.link(device.Name)
			if s.Interface == device.Name && !s.In && (s.Engine == shaper.Queue || below != nil && now[below.Index] != nil) {
				return fmt.Errorf("%s carries its frames, and holds packets itself", device.Name)
			}
		}
	}
	return nil
}

// release ends holding packets where that is over. Counting goes first, so that rates are kept.
func (b *box) release(has *htb.Machine, now map[int]*held) error {
	for i := range b.rules.program.Shapers {
		is := false
		for _, h := range now {
			is = is || h.tree == i
		}
		if !is {
			if err := b.dp.Hold(i, false, 0, -1); err != nil {
				return err
			}
		}
	}
	waiting, err := htb.WaitingDevices()
	errs := []error{err}
	for _, d := range waiting {
		if now[d.Index] == nil {
			errs = append(errs, htb.RemoveWaiting(d))
		}
	}
	for _, index := range has.Own() {
		if now[index] == nil {
			errs = append(errs, htb.Remove(index))
		}
	}
	return errors.Join(errs...)
}

// holdOn has the programs name the classes of the packets that the kernel holds, once XDP sends none
// past it.
func (b *box) holdOn() error {
	for _, h := range b.held {
		if err := b.dp.Hold(h.tree, true, h.at.Index, h.core-1); err != nil {
			return err
		}
	}
	return nil
}

// holds returns the flag of interfaces at which the kernel holds what leaves.
func (b *box) holds(l *netif.Link) dataplane.InterfaceFlags {
	if b.held[l.Index] != nil {
		return dataplane.InterfaceHolds
	}
	return 0
}

// noteEngines records which engine each tree has, and logs what has changed.
func (b *box) noteEngines(engines []rundir.Engine) error {
	if slices.Equal(engines, b.engines) {
		return nil
	}
	for i := range engines {
		e := &engines[i]
		if slices.Contains(b.engines, *e) {
			continue
		}
		name := b.rules.program.Shapers[i].Name()
		if b.rules.program.Shapers[i].Engine == shaper.Queue && e.Engine != shaper.Queue {
			b.cfg.Log.Error("the kernel cannot hold the packets of these queues; they are counted", "queues", name, "why", e.Why)
			continue
		}
		b.cfg.Log.Info("queues", "of", name, "engine", e.Engine, "why", e.Why, "cost", e.Engine.Cost())
	}
	b.engines = engines
	return rundir.WriteJSON(b.cfg.Folder.Engines(), engines)
}
