package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"

	"weir/internal/bench/sample"
	"weir/internal/stats"
)

// RefusedError is what a server does not allow.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return "the server refuses: " + e.Why }

// client is a session as its client sees it.
type client struct {
	line    *line
	welcome *welcome
}

// result is what one run brought.
type result struct {
	granted  Run
	cut      []string
	up       *direction // nil: the run did not go that way
	down     *direction
	rtts     stats.Sample // milliseconds, while it ran
	lost     int          // probes
	overflow uint64       // datagrams that found a full socket at either end
	own      []sample.Point
	theirs   []sample.Point
	process  float64  // seconds of cores that the client's iperf3 took
	remote   float64  // and the server's
	full     []string // ends that were full by what iperf3 says
}

// connect authenticates with a server and asks it what it allows.
func connect(ctx context.Context, server netip.AddrPort, key Key, program string) (*client, error) {
	config, err := key.config(roleClient, roleServer)
	if err != nil {
		return nil, err
	}
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: handshakePatience}, Config: config}
	conn, err := d.DialContext(ctx, "tcp", server.String())
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", server, explain(err))
	}
	c := &client{line: newLine(conn.(*tls.Conn))}
	m, err := c.ask(ctx, &message{Hello: &hello{Program: program}})
	if err == nil && m.Welcome == nil {
		err = errOrder
	}
	if err != nil {
		c.line.close()
		return nil, err
	}
	c.welcome = m.Welcome
	return c, nil
}

// explain says what TLS's errors mean here.
func explain(err error) error {
	var record tls.RecordHeaderError
	// crypto/tls does not export the type of an alert from the other side.
	alert, ok := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, errNoKey):
		return errNoKey
	case ok && alert.Op == "remote error", errors.As(err, &record):
		return fmt.Errorf("this is no weir bench server of this version (%w)", err)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("it hung up; too many may be connecting (%w)", err)
	}
	return err
}

// ask says something and waits for the answer. A refusal is an error.
func (c *client) ask(ctx context.Context, m *message) (*message, error) {
	if err := c.line.say(m); err != nil {
		return nil, fmt.Errorf("speak to the server: %w", err)
	}
	return c.hear(ctx)
}

func (c *client) hear(ctx context.Context) (*message, error) {
	m, err := c.line.hear(ctx, answerPatience)
	if err != nil {
		return nil, fmt.Errorf("wait for the server: %w", err)
	}
	if m.Refused != nil {
		return nil, &RefusedError{plain(m.Refused.Why)}
	}
	return m, nil
}

// grant asks for a run.
func (c *client) grant(ctx context.Context, asked *Run) (*granted, error) {
	m, err := c.ask(ctx, &message{Run: asked})
	if err != nil {
		return nil, err
	}
	if m.Granted == nil {
		return nil, errOrder
	}
	return m.Granted, noMore(&m.Granted.Run, asked)
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

// during keeps the session alive while work goes on, and collects what the
// server says of the run. The server's reason for an end comes before work's.
func (c *client) during(ctx context.Context, r *result, work func(context.Context) error) error {
	running, cancel := context.WithCancelCause(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel(nil)
	done := make(chan *outcome, 1)
	tasks.Go(func() { c.listen(running, cancel, r, done) })
	tasks.Go(func() { c.stayAlive(running) })
	err := work(running)
	if running.Err() != nil {
		return context.Cause(running)
	}
	if said := c.line.say(&message{Ended: &struct{}{}}); said != nil {
		return errors.Join(err, fmt.Errorf("speak to the server: %w", said))
	}
	select {
	case o := <-done:
		if r.overflow += o.Overflow; o.Ended != "" {
			return &RefusedError{plain(o.Ended)}
		}
		return err
	case <-running.Done():
		return context.Cause(running)
	}
}

// listen hears the server while a run lasts, until it says that it is done.
func (c *client) listen(ctx context.Context, cancel context.CancelCauseFunc, r *result, done chan<- *outcome) {
	patience := r.granted.Omit + r.granted.Count + iperf3Slack + answerPatience
	most := int(patience/sample.Interval) + 8
	for {
		m, err := c.line.hear(ctx, patience)
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

// close says good-bye.
func (c *client) close() {
	_ = c.line.say(&message{Bye: &struct{}{}}) // the server notices anyway
	c.line.close()
}
