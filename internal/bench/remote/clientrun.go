package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"weir/internal/bench/sample"
)

// run asks for a run and carries it out.
func (c *client) run(ctx context.Context, asked Run) (*result, error) {
	m, err := c.ask(ctx, &message{Run: &asked})
	if err != nil {
		return nil, err
	}
	if m.Granted == nil {
		return nil, errOrder
	}
	g := m.Granted
	if err := noMore(&g.Run, &asked); err != nil {
		return nil, err
	}
	e := &exchange{run: g.Run, sends: g.Run.Up, receives: g.Run.Down}
	defer e.close()
	if err := c.connectAll(ctx, e, g.Tickets); err != nil {
		return nil, err
	}
	if m, err = c.ask(ctx, &message{Go: &struct{}{}}); err != nil {
		return nil, err
	}
	if m.Started == nil {
		return nil, errOrder
	}
	r := &result{granted: g.Run}
	for _, text := range g.Cut {
		r.cut = append(r.cut, plain(text))
	}
	return r, c.carryOut(ctx, e, r)
}

// noMore refuses a grant of what was not asked for.
func noMore(g, asked *Run) error {
	same := g.Protocol == asked.Protocol && g.Up == asked.Up && g.Down == asked.Down &&
		g.Payload == asked.Payload && g.Frame == asked.Frame
	if !same || g.Connections > asked.Connections || asked.Rate > 0 && g.Rate > asked.Rate ||
		g.Omit > asked.Omit || g.Omit+g.Count > asked.Omit+asked.Count {
		return errors.New("the server grants what was not asked for")
	}
	return nil
}

// connectAll opens the connections of a run, a few at a time: strangers that
// come in crowds are turned away.
func (c *client) connectAll(ctx context.Context, e *exchange, tickets []string) error {
	if e.run.Protocol == UDP {
		t, err := parseTicket(tickets[0])
		if err != nil {
			return err
		}
		e.tag = t.tag()
		e.udp, err = c.prove(ctx, t)
		return err
	}
	conns := make([]*net.TCPConn, len(tickets))
	var tasks errgroup.Group
	tasks.SetLimit(maxStrangersEach / 2)
	for i, text := range tickets {
		tasks.Go(func() (err error) {
			conns[i], err = c.data(ctx, text)
			return err
		})
	}
	err := tasks.Wait()
	for i, conn := range conns {
		switch {
		case conn == nil:
		case e.run.Up && i < e.run.Connections:
			e.out = append(e.out, conn)
		default:
			e.in = append(e.in, conn)
		}
	}
	return err
}

// data opens one connection of a run.
func (c *client) data(ctx context.Context, text string) (*net.TCPConn, error) {
	t, err := parseTicket(text)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: handshakePatience}
	conn, err := d.DialContext(ctx, "tcp", c.server.String())
	if err != nil {
		return nil, fmt.Errorf("open a connection of the run: %w", err)
	}
	if _, err := conn.Write(appendPreamble(t)); err != nil {
		return nil, errors.Join(fmt.Errorf("open a connection of the run: %w", err), conn.Close())
	}
	return conn.(*net.TCPConn), nil
}

// carryOut carries out a run that the server has started.
func (c *client) carryOut(ctx context.Context, e *exchange, r *result) (err error) {
	running, cancel := context.WithCancelCause(ctx)
	measuring, stopMeasuring := context.WithCancel(running)
	var tasks, measurements sync.WaitGroup
	defer tasks.Wait()
	defer measurements.Wait()
	defer cancel(nil)
	defer stopMeasuring()
	done := make(chan *outcome, 1)
	tasks.Go(func() { c.listen(running, cancel, r, done) })
	tasks.Go(func() { c.stayAlive(running) })
	c.measureBeside(measuring, cancel, r, &measurements)
	before := processTime()
	s, got, err := e.carryOut(running)
	r.process = processTime() - before
	stopMeasuring()
	if err != nil {
		return c.whyEnded(running, err, done)
	}
	if err := c.sayWhatWasSent(s); err != nil {
		return err
	}
	measurements.Wait()
	o, err := await(running, done)
	if err != nil {
		return err
	}
	if err := e.settle(ctx, got); err != nil {
		return err
	}
	return r.join(e, s, got, o)
}

func (c *client) sayWhatWasSent(s *sent) error {
	if s == nil {
		s = &sent{}
	}
	if err := c.line.say(&message{Sent: s}); err != nil {
		return fmt.Errorf("speak to the server: %w", err)
	}
	return nil
}

func await(ctx context.Context, done <-chan *outcome) (*outcome, error) {
	select {
	case o := <-done:
		return o, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(answerPatience):
		return nil, fmt.Errorf("wait for what the server counted: %w", errSilent)
	}
}

// whyEnded prefers the server's reason to what followed from it here. It is not
// waited for where the run, and with it who listens, has been ended.
func (c *client) whyEnded(running context.Context, err error, done <-chan *outcome) error {
	var refused *RefusedError
	if running.Err() != nil || errors.As(err, &refused) || c.sayWhatWasSent(nil) != nil {
		return err
	}
	select {
	case o := <-done:
		if o.Ended != "" {
			return &RefusedError{plain(o.Ended)}
		}
	case <-running.Done():
		if cause := context.Cause(running); errors.As(cause, &refused) {
			return cause
		}
	case <-time.After(handshakePatience):
	}
	return err
}

// measureBeside measures what a run does to round-trip times and to this
// machine.
func (c *client) measureBeside(ctx context.Context, cancel context.CancelCauseFunc, r *result, all *sync.WaitGroup) {
	all.Go(func() {
		if err := c.sampler.Watch(ctx, func(p sample.Point) { r.own = append(r.own, p) }); err != nil {
			cancel(err)
		}
	})
	if c.probes == nil {
		return
	}
	all.Go(func() {
		var err error
		if r.rtts, r.lost, err = c.probes.measure(ctx); err != nil {
			cancel(fmt.Errorf("measure round-trip times: %w", err))
		}
	})
}

// listen hears the server while a run lasts, until it says what it has counted.
func (c *client) listen(ctx context.Context, cancel context.CancelCauseFunc, r *result, done chan<- *outcome) {
	most := int((r.granted.Omit+r.granted.Count+answerPatience)/sample.Interval) + 8
	for {
		m, err := c.line.hear(ctx, r.granted.Omit+r.granted.Count+answerPatience)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			cancel(fmt.Errorf("wait for the server: %w", err))
			return
		case m.Refused != nil:
			cancel(&RefusedError{plain(m.Refused.Why)})
			return
		case m.Sample != nil && len(r.theirs) < most:
			r.theirs = append(r.theirs, named(*m.Sample))
		case m.Done != nil:
			done <- m.Done
			return
		default:
			cancel(errOrder)
			return
		}
	}
}

// named makes what the other side calls things fit to print.
func named(p sample.Point) sample.Point {
	for i := range p.Links {
		p.Links[i].Name = plain(p.Links[i].Name)
	}
	drops := make(map[string]uint64, len(p.Drops))
	for reason, n := range p.Drops {
		drops[plain(reason)] += n
	}
	p.Drops = drops
	return p
}

func (c *client) stayAlive(ctx context.Context) {
	for sleep(ctx, aliveEvery) == nil {
		if c.line.say(&message{Alive: &struct{}{}}) != nil {
			return // who listens notices as well
		}
	}
}

// join puts together what both ends say of each direction.
func (r *result) join(e *exchange, s *sent, got *received, o *outcome) error {
	if o.Ended != "" {
		return &RefusedError{plain(o.Ended)}
	}
	r.remote = o.Process
	if e.run.Up {
		if s == nil || o.Received == nil {
			return errOrder
		}
		r.up = &direction{*s, *o.Received}
	}
	if e.run.Down {
		if got == nil || o.Sent == nil {
			return errOrder
		}
		r.down = &direction{*o.Sent, *got}
	}
	return nil
}
