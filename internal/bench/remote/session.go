package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/bench/sample"
)

// session is one client of a server.
type session struct {
	server  *server
	line    *line
	local   netip.AddrPort // that the client speaks to
	peer    netip.Addr
	budget  *account
	legs    *legs
	sampler *sample.Sampler
	probes  *net.UDPConn // nil until the client has proven where it is

	mu      sync.Mutex
	waiting map[ticket]int // place among the connections of the run that is being connected
	conns   []*net.TCPConn
}

// Errors of a client that does not keep to the protocol.
var (
	errOrder = errors.New("a message came that is out of order")
	errGone  = errors.New("the client has gone")
)

// serve speaks with the client until it goes.
func (c *session) serve(ctx context.Context) (err error) {
	if c.legs, err = openLegs(ctx, c.local, c.peer); err != nil {
		return err
	}
	defer c.legs.close()
	if c.sampler, err = sample.Open(c.server.Router); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.sampler.Close()) }()
	if err := c.welcome(ctx); err != nil {
		return err
	}
	defer func() {
		if c.probes != nil {
			c.probes.Close()
		}
	}()
	for {
		m, err := c.line.hear(ctx, idlePatience)
		switch {
		case err != nil:
			return err
		case m.Bye != nil:
			return nil
		case m.Alive != nil:
		case m.Proof != nil:
			err = c.proveProbes(ctx, m.Proof)
		case m.Run != nil:
			err = c.run(ctx, *m.Run)
		default:
			err = errOrder
		}
		if err != nil {
			return err
		}
	}
}

func (c *session) welcome(ctx context.Context) error {
	m, err := c.line.hear(ctx, handshakePatience)
	if err != nil {
		return err
	}
	if m.Hello == nil {
		return errOrder
	}
	probe := newTicket()
	c.legs.expect(probe)
	s := c.server
	return c.line.say(&message{Welcome: &welcome{
		Program: s.Program, Limits: s.Limits, Machine: s.machine, Router: s.RouterName, Without: c.sampler.Without,
		Probe: probe.String(),
	}})
}

// proveProbes opens the flow for round-trip times.
func (c *session) proveProbes(ctx context.Context, p *proof) error {
	if c.probes != nil {
		return errOrder
	}
	u, t, err := c.prove(ctx, p)
	if err != nil {
		return err
	}
	c.probes = u
	go echo(u, t.tag())
	return c.line.say(&message{Proven: &struct{}{}})
}

func (c *session) prove(ctx context.Context, p *proof) (*net.UDPConn, ticket, error) {
	t, err := parseTicket(p.Ticket)
	if err != nil {
		return nil, t, err
	}
	cookie, err := parseTicket(p.Cookie)
	if err != nil {
		return nil, t, err
	}
	u, err := c.legs.prove(ctx, t, cookie)
	return u, t, err
}

// run gives a run, or refuses it, and carries it out.
func (c *session) run(ctx context.Context, asked Run) error {
	if c.budget.left.Load() <= 0 {
		return c.line.say(&message{Refused: &refused{Why: errBudget.Error()}})
	}
	run, cut := c.server.Limits.grant(asked)
	e := &exchange{run: run, sends: run.Down, receives: run.Up, budget: c.budget}
	if c.server.Limits.Rate > 0 {
		const tolerance = 1.05 // of clocks, and of what was under way
		e.limit = newBucket(run.Rate * tolerance)
	}
	defer e.close()
	if err := c.connect(ctx, e, cut); err != nil {
		return err
	}
	c.server.Log("%s: %s", c.peer, run.describe())
	if err := c.line.say(&message{Started: &struct{}{}}); err != nil {
		return err
	}
	return c.carryOut(ctx, e)
}

// connect grants a run and waits until everything of it is connected.
func (c *session) connect(ctx context.Context, e *exchange, cut []string) error {
	g := &granted{Run: e.run, Cut: cut}
	if e.run.Protocol == UDP {
		t := newTicket()
		c.legs.expect(t)
		defer c.legs.forget(t)
		g.Tickets, e.tag = []string{t.String()}, t.tag()
	} else {
		g.Tickets = c.expect(e.run.flows())
		defer c.release(e)
	}
	if err := c.line.say(&message{Granted: g}); err != nil {
		return err
	}
	for {
		m, err := c.line.hear(ctx, answerPatience)
		switch {
		case err != nil:
			return err
		case m.Alive != nil:
		case m.Proof != nil && e.run.Protocol == UDP && e.udp == nil:
			if e.udp, _, err = c.prove(ctx, m.Proof); err != nil {
				return err
			}
			if err := c.line.say(&message{Proven: &struct{}{}}); err != nil {
				return err
			}
		case m.Go != nil:
			return c.allConnected(ctx, e)
		default:
			return errOrder
		}
	}
}

// expect makes tickets for the connections of a run.
func (c *session) expect(n int) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting, c.conns = make(map[ticket]int, n), make([]*net.TCPConn, n)
	texts := make([]string, n)
	for i := range texts {
		t := newTicket()
		c.waiting[t], texts[i] = i, t.String()
	}
	return texts
}

// expected is how many connections have a ticket and have not come.
func (c *session) expected() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

// attach takes a connection with a ticket, which is then used up.
func (c *session) attach(t ticket, conn *net.TCPConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	place, waits := c.waiting[t]
	if !waits {
		return false
	}
	delete(c.waiting, t)
	c.conns[place] = conn
	return true
}

// release ends the time in which connections may come, and gives those that did
// to the run: the first are the client's to send on.
func (c *session) release(e *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = nil
	for i, conn := range c.conns {
		switch {
		case conn == nil:
		case e.run.Up && i < e.run.Connections:
			e.in = append(e.in, conn)
		default:
			e.out = append(e.out, conn)
		}
	}
	c.conns = nil
}

// allConnected waits for connections that are on their way.
func (c *session) allConnected(ctx context.Context, e *exchange) error {
	if e.run.Protocol == UDP {
		if e.udp == nil {
			return errOrder
		}
		return nil
	}
	for end := time.Now().Add(handshakePatience); c.expected() > 0; {
		if time.Now().After(end) {
			return fmt.Errorf("%d connections of the run have not come", c.expected())
		}
		if err := sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// carryOut carries out a run that has started: while the client lives, and no
// longer.
func (c *session) carryOut(ctx context.Context, e *exchange) error {
	running, cancel := context.WithCancelCause(ctx)
	others := make(chan *sent, 1)
	var tasks sync.WaitGroup
	stop := func() { cancel(nil); tasks.Wait() }
	defer stop()
	tasks.Go(func() {
		if err := c.follow(running, others); err != nil {
			cancel(err)
		}
	})
	tasks.Go(func() {
		if err := c.sampler.Watch(running, c.report(cancel)); err != nil {
			cancel(err)
		}
	})
	before := processTime()
	s, r, err := e.carryOut(running)
	o := &outcome{Sent: s, Received: r, Process: processTime() - before}
	if err != nil {
		o.Ended = plain(err.Error())
	}
	select { // the client has sent its last, or has gone
	case <-others:
	case <-running.Done():
	}
	if err := e.settle(ctx, r); err != nil {
		return err
	}
	stop() // so that the last sample goes first
	if cause := context.Cause(running); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return c.line.say(&message{Done: o})
}

// report sends what was sampled to the client.
func (c *session) report(cancel context.CancelCauseFunc) func(sample.Point) {
	return func(p sample.Point) {
		if err := c.line.say(&message{Sample: &p}); err != nil {
			cancel(err)
		}
	}
}

// follow hears the client while a run lasts, until it has sent its last. A
// client that is silent has gone: nothing is sent to where nobody listens.
func (c *session) follow(ctx context.Context, others chan<- *sent) error {
	for {
		m, err := c.line.hear(ctx, alivePatience)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("%w: %w", errGone, err)
		case m.Alive != nil:
		case m.Sent != nil:
			others <- m.Sent
			return nil
		default:
			return errOrder
		}
	}
}

// processTime is how much time of cores the process has taken, in seconds.
func processTime() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
