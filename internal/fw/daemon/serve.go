package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/dataplane"
	"weir/internal/host/netif"
	"weir/internal/host/xfrm"
)

// serve runs the daemon's tasks until ctx ends or somebody asks it to leave.
func (b *box) serve(ctx context.Context, watcher *netif.Watcher, heard *xfrm.Watcher) error {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	capturer, logger, dialler := newCapturer(b), newLogger(b), newDialler(b)
	tasks := []Task{
		capturer,
		logger,
		&follower{readiness: newReadiness(), box: b, watcher: watcher},
		&policyFollower{readiness: newReadiness(), policies: b.policies, watcher: heard},
		&retrier{readiness: newReadiness(), box: b},
		&roller{readiness: newReadiness(), box: b},
		&heart{readiness: newReadiness(), box: b},
		&prober{readiness: newReadiness(), box: b},
		&overloader{readiness: newReadiness(), box: b},
		&holder{readiness: newReadiness(), box: b},
		&exporter{readiness: newReadiness(), box: b},
		&gatekeeper{readiness: newReadiness(), box: b},
		dialler,
		&controller{readiness: newReadiness(), box: b, capturer: capturer, logger: logger, dialler: dialler, living: ctx, leave: leave, started: time.Now()},
	}
	err := serve(ctx, tasks, b.logReady)
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		b.cfg.Log.Info("the daemon ends", "why", cause)
		return nil
	}
	if err == nil {
		err = b.rollBackAtEnd()
		b.cfg.Log.Info("the daemon ends; packets go on by the rules in force, until weir stop")
	}
	return err
}

func (b *box) logReady() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.links {
		if h, ok := b.hooks[l.Index]; ok {
			b.cfg.Log.Info("attached", "interface", l.Name, "hook", h.Hook, "why", h.Why)
		}
	}
	switch {
	case b.source.Builtin:
		b.cfg.Log.Warn("no rules: everything is blocked but lo and the management port, until weir load", "file", b.cfg.File, "port", b.cfg.Management)
	case b.substitute:
		b.cfg.Log.Warn("the rules in force stay, until weir load", "file", b.source.Path, "rules", len(b.rules.texts))
	default:
		b.logLoaded()
	}
	b.cfg.Log.Info("ready")
	b.notify("READY=1")
}

// logLoaded logs which rules are in force, and the warnings about their file.
func (b *box) logLoaded() {
	about := []any{"file", b.source.Name, "rules", len(b.rules.texts)}
	if b.rules.warnings != nil {
		about = append(about, "warnings", b.rules.warnings)
	}
	b.cfg.Log.Info("loaded", about...)
}

// close releases the process's handles to the dataplane. The dataplane goes on.
func (b *box) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pulse.follow(nil)
	b.policies.leave(b.dp)
	if err := b.dp.Close(); err != nil {
		b.cfg.Log.Error("close the dataplane", "error", err)
	}
}

// heartbeatPause is the time between two heartbeats. The dataplane waits three seconds
// for one (DAEMON_DEAD in bpf/config.h).
const heartbeatPause = time.Second

// heart sends the heartbeat, and checks what no event announces.
type heart struct {
	readiness
	box *box
}

func (*heart) String() string { return "heartbeat" }

func (h *heart) Run(ctx context.Context) error {
	h.box.beat()
	h.set()
	return every(ctx, heartbeatPause, h.box.beat)
}

func (b *box) beat() {
	b.pulse.beat()
	if !b.mu.TryLock() {
		return // the next beat tries again
	}
	defer b.mu.Unlock()
	b.demote()
	b.updateTargets()
	b.followStates()
	b.notePrefetch()
	b.followLoad()
	b.finishRules()
}

// pulse sends the heartbeat to the live dataplane. It has its own lock, because a load
// holds the box's lock while the kernel verifies the programs. On slow machines that
// takes longer than the dataplane waits for a heartbeat.
type pulse struct {
	mu sync.Mutex
	of interface{ Heartbeat() } // nil: no dataplane is live
}

// follow sets the live dataplane. The previous one may be closed after that.
func (p *pulse) follow(dp *dataplane.Dataplane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of = nil
	if dp != nil {
		p.of = dp
	}
}

func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of != nil {
		p.of.Heartbeat()
	}
}

// demote takes XDP from interfaces whose driver turned out to have no room for its
// verdicts. The kernel does not announce the end of an XDP link, so demote writes the
// interfaces' records itself.
func (b *box) demote() {
	demoted := false
	for i := range b.links {
		l := &b.links[i]
		h, ok := b.hooks[l.Index]
		if !ok || h.Hook != XDP || !b.dp.LacksHeadroom(l.Index) {
			continue
		}
		const why = "its driver has no room for XDP's verdicts (metadata)"
		now := h
		now.Choice = Choice{TCX, why}
		b.hooks[l.Index] = now
		if err := b.attachAgain(l, h); err != nil {
			b.cfg.Log.Error("detach XDP from an interface", "interface", l.Name, "error", err)
			continue
		}
		b.cfg.Log.Warn("using TCX instead of XDP", "interface", l.Name, "reason", why)
		demoted = true
	}
	if !demoted {
		return
	}
	m, err := b.machine()
	if err == nil {
		err = b.updateInterfaces(m) // TCX handles their VLAN devices too now
	}
	if err != nil {
		b.cfg.Log.Error("record the change to TCX", "error", err)
	}
}

// updateTargets updates interfaces that XDP redirects have begun or ceased to reach. A program
// or offload at the other end of a veth decides that, and no event announces it.
func (b *box) updateTargets() {
	for i := range b.links {
		l := &b.links[i]
		if _, ok := b.hooks[l.Index]; !ok {
			continue
		}
		if err := b.setInterface(l); err != nil {
			b.cfg.Log.Debug("update an interface", "interface", l.Name, "error", err)
		}
	}
}

// proberPause is how often weir checks that neighbours in use still have their known
// link-layer address.
const proberPause = 10 * time.Second

// prober probes the neighbours that packets go to.
type prober struct {
	readiness
	box *box
}

func (*prober) String() string { return "neighbour probes" }

func (p *prober) Run(ctx context.Context) error {
	p.set()
	return every(ctx, proberPause, p.box.probe)
}

func (b *box) probe() {
	b.mu.Lock()
	wanted := make(map[netif.Neighbour]bool)
	for _, n := range b.dp.View().Neighbours(uint32(2 * proberPause / (10 * time.Millisecond))) {
		wanted[netif.Neighbour{Link: n.Ifindex, Addr: n.Address}] = true
	}
	b.mu.Unlock()
	if err := netif.ProbeNeighbours(wanted); err != nil {
		b.cfg.Log.Warn("probe neighbours", "error", err)
	}
}

func every(ctx context.Context, pause time.Duration, do func()) error {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			do()
		}
	}
}

// controller answers the control socket.
type controller struct {
	readiness
	box      *box
	capturer *capturer
	logger   *logger
	dialler  *dialler
	living   context.Context // ends when the daemon is to end
	leave    context.CancelCauseFunc
	started  time.Time
}

func (*controller) String() string { return "control socket" }

func (c *controller) Run(ctx context.Context) error {
	l, err := control.Listen(c.box.cfg.Folder.Socket())
	if err != nil {
		return err
	}
	c.set()
	return control.Serve(ctx, l, c)
}
