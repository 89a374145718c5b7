package daemon

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/netip"
	"slices"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/gateway"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/rundir"
	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// gatewayPause is the time between two samples of a gateway.
const gatewayPause = time.Second

// gatekeeper watches the gateways that rules choose, and takes those that are down out of
// their pools.
type gatekeeper struct {
	readiness
	box   *box
	todo  []gateway.Change // not handled yet
	rules *compiled        // whose gateways are watched
}

func (*gatekeeper) String() string { return "gateways" }

func (g *gatekeeper) Run(ctx context.Context) error {
	g.look()
	g.set()
	return every(ctx, gatewayPause, g.look)
}

// look takes a sample of each gateway. If the box is busy with a load, what the sample
// says is done with the next one.
func (g *gatekeeper) look() {
	b := g.box
	changes, err := b.gateways.Sample()
	if err != nil {
		b.cfg.Log.Error("watch the gateways", "error", err)
	}
	for _, c := range changes {
		log := b.cfg.Log.Info
		text := "a gateway is up again"
		if c.Down {
			log, text = b.cfg.Log.Warn, "a gateway is down"
		}
		log(text, "gateway", c.Hop.Addr, "interface", c.Hop.Interface, "monitor", c.Monitor, "loss", c.Loss, "why", c.Why)
	}
	g.todo = append(g.todo, changes...)
	if !b.mu.TryLock() {
		return
	}
	defer b.mu.Unlock()
	if b.rules == nil || b.dp == nil {
		return
	}
	if g.rules != b.rules {
		before := b.gateways.Down()
		b.gateways.Watch(b.watchedGateways())
		g.rules = b.rules
		if !maps.Equal(before, b.gateways.Down()) {
			g.todo = append(g.todo, gateway.Change{})
		}
	}
	if len(g.todo) == 0 {
		return
	}
	if err := b.useGateways(g.todo); err != nil {
		b.cfg.Log.Error("choose among the gateways that are up", "error", err)
		return
	}
	g.todo = nil
}

// watchedGateways returns the gateways of the rules, and those that set gateway names.
func (b *box) watchedGateways() []gateway.Target {
	var all []gateway.Target
	o := &b.rules.options
	for _, hop := range ruleset.HopsOf(b.rules.rules) {
		all = append(all, gateway.Target{Hop: hop, Gateway: o.GatewayOf(hop.Addr)})
	}
	for _, g := range o.Gateways {
		if !slices.ContainsFunc(all, func(t gateway.Target) bool { return t.Hop.Addr == g.Addr }) {
			all = append(all, gateway.Target{Hop: ruleset.Hop{Addr: g.Addr}, Gateway: g})
		}
	}
	return all
}

// useGateways gives the pools the gateways that are up, and ends the states that lead to
// those that are down, where set gateway says so.
func (b *box) useGateways(changes []gateway.Change) error {
	m, err := b.machine()
	if err != nil {
		return err
	}
	if err := b.refill(m); err != nil {
		return err
	}
	down := slices.Collect(maps.Keys(m.down))
	if err := rundir.WriteJSON(b.cfg.Folder.Gateways(), down); err != nil {
		b.cfg.Log.Error("record which gateways are down", "error", err)
	}
	for _, c := range changes {
		if c.Down && c.Kill {
			if err := b.killBy(c.Hop, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// killBy ends the states whose packets are sent to a gateway.
func (b *box) killBy(hop ruleset.Hop, m *machine) error {
	view := b.dp.View()
	leads := func(number uint16) bool {
		return number > 1 && view.GatewayOf(number) == hop.Addr && (hop.Interface == "" || m.names()[view.LeavesBy(number)] == hop.Interface)
	}
	killed, err := b.dp.Kill(func(s *state.State) bool { return leads(s.NextHops[0]) || leads(s.NextHops[1]) })
	if err == nil {
		b.cfg.Log.Info("ended the states of a gateway that is down", "gateway", hop.Addr, "states", killed)
	}
	return err
}

// recordedDown returns the gateways that were down for the daemon before this one.
func (b *box) recordedDown() []ruleset.Hop {
	var down []ruleset.Hop
	err := rundir.ReadJSON(b.cfg.Folder.Gateways(), &down)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.cfg.Log.Warn("read which gateways were down", "error", err)
	}
	return down
}

// Gateways returns what is known of the gateways.
func (c *controller) Gateways() []control.Gateway {
	all := []control.Gateway{}
	for _, s := range c.box.gateways.Status() {
		all = append(all, control.Gateway{
			Address: s.Hop.Addr, Interface: s.Interface, Monitor: string(s.Monitor), Target: pinged(&s.Gateway), Kill: s.Kill,
			State: string(s.State), Since: s.Since, Loss: s.Loss, RTT: s.RTT, Why: s.Why,
		})
	}
	return all
}

func pinged(g *resolve.Gateway) netip.Addr {
	if g.Target == g.Addr {
		return netip.Addr{}
	}
	return g.Target
}
