package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/dataplane"
	"weir/internal/host/netif"
)

// serve runs the daemon's tasks until ctx ends or somebody asks it to leave.
func (b *box) serve(ctx context.Context, watcher *netif.Watcher) error {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	capturer, logger := newCapturer(b), newLogger(b)
	tasks := []Task{
		capturer,
		logger,
		&follower{readiness: newReadiness(), box: b, watcher: watcher},
		&wanter{readiness: newReadiness(), box: b},
		&roller{readiness: newReadiness(), box: b},
		&heart{readiness: newReadiness(), box: b},
		&prober{readiness: newReadiness(), box: b},
		&controller{readiness: newReadiness(), box: b, capturer: capturer, logger: logger, living: ctx, leave: leave, started: time.Now()},
	}
	err := serve(ctx, tasks, b.sayReady)
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

func (b *box) sayReady() {
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
	case b.instead:
		b.cfg.Log.Warn("the rules in force stay, until weir load", "file", b.source.Path, "rules", len(b.rules.texts))
	default:
		b.sayLoaded()
	}
	b.cfg.Log.Info("ready")
	b.notify("READY=1")
}

// sayLoaded says what rules are in force, and what is doubtful in their file.
func (b *box) sayLoaded() {
	about := []any{"file", b.source.Name, "rules", len(b.rules.texts)}
	if b.rules.warnings != nil {
		about = append(about, "warnings", b.rules.warnings)
	}
	b.cfg.Log.Info("loaded", about...)
}

// close releases what the process holds of the dataplane, which goes on.
func (b *box) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pulse.follow(nil)
	if err := b.dp.Close(); err != nil {
		b.cfg.Log.Error("close the dataplane", "error", err)
	}
}

// heartbeatPause is how often the dataplane is told that the daemon lives; it
// waits for three seconds (DAEMON_DEAD in bpf/config.h).
const heartbeatPause = time.Second

// heart tells the dataplane that the daemon lives, and looks at what no event
// tells of.
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
		return // the next beat looks again
	}
	defer b.mu.Unlock()
	b.demote()
	b.retell()
	b.followStates()
}

// pulse tells the live dataplane that the daemon lives. It has a lock of its own: a
// load holds the box's while the kernel checks the programs, which takes slow machines
// longer than the dataplane waits for a daemon.
type pulse struct {
	mu sync.Mutex
	of interface{ Heartbeat() } // nil: nothing is live
}

// follow sets which dataplane is live; the one before may be closed then.
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

// demote takes XDP from interfaces whose driver has turned out to have no room
// for its verdicts. The kernel announces no end of an XDP link, so the records of
// the interfaces are written here.
func (b *box) demote() {
	demoted := false
	for i := range b.links {
		l := &b.links[i]
		h, ok := b.hooks[l.Index]
		if !ok || h.Hook != XDP || !b.dp.Bare(l.Index) {
			continue
		}
		h.Choice = Choice{TCX, "its driver has no room for XDP's verdicts (metadata)"}
		b.hooks[l.Index] = h
		b.cfg.Log.Warn("TCX instead of XDP", "interface", l.Name, "reason", h.Why)
		if err := b.attach(l); err != nil {
			b.cfg.Log.Error("take XDP from an interface", "interface", l.Name, "error", err)
		}
		demoted = true
	}
	if !demoted {
		return
	}
	m, err := look(b.cfg.Log)
	if err == nil {
		err = b.tell(m) // VLAN devices are TCX's, too, now
	}
	if err != nil {
		b.cfg.Log.Error("record that interfaces have TCX", "error", err)
	}
}

// retell tells of interfaces that an XDP redirect reaches now and did not a
// moment ago, or the other way about: a program or offload at a veth's other
// end decides that, and nobody announces it.
func (b *box) retell() {
	for i := range b.links {
		l := &b.links[i]
		if _, ok := b.hooks[l.Index]; !ok {
			continue
		}
		if err := b.tellInterface(l); err != nil {
			b.cfg.Log.Debug("look at an interface again", "interface", l.Name, "error", err)
		}
	}
}

// proberPause is how often neighbours in use are asked whether they still have
// the link-layer address that is known of them.
const proberPause = 10 * time.Second

// prober asks the neighbours that packets go to.
type prober struct {
	readiness
	box *box
}

func (*prober) String() string { return "prober of neighbours" }

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
