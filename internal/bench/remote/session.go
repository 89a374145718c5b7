package remote

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"weir/internal/bench/iperf"
	"weir/internal/bench/sample"
)

// session is one client of a server.
type session struct {
	server  *server
	line    *line
	local   netip.AddrPort // that the client speaks to
	peer    netip.Addr
	left    int64 // bytes that the client may still move
	sampler *sample.Sampler
}

// Errors of a client that does not keep to the protocol.
var (
	errOrder = errors.New("a message came that is out of order")
	errGone  = errors.New("the client has gone")
)

// serve speaks with the client until it goes.
func (c *session) serve(ctx context.Context) (err error) {
	if c.sampler, err = sample.Open(c.server.Router); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.sampler.Close()) }()
	if err := c.welcome(ctx); err != nil {
		return err
	}
	for {
		m, err := c.line.hear(ctx, idlePatience)
		switch {
		case err != nil:
			return err
		case m.Bye != nil:
			return nil
		case m.Alive != nil:
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
	s := c.server
	return c.line.say(&message{Welcome: &welcome{
		Program: s.Program, Limits: s.Limits, Machine: s.machine, Router: s.RouterName, Without: c.sampler.Without,
	}})
}

// running is an iperf3 that serves one run.
type running struct {
	port  port
	text  []byte // its report; read after ended is closed
	err   error
	ended chan struct{}
}

// run grants a run, or refuses it, and serves it.
func (c *session) run(ctx context.Context, asked Run) error {
	run, cut, err := c.server.Limits.grant(asked, c.left)
	if err != nil {
		return c.line.say(&message{Refused: &refused{Why: err.Error()}})
	}
	before, err := overflowed()
	if err != nil {
		return err
	}
	running, cancel := context.WithCancelCause(ctx)
	i := c.start(running, &run)
	defer func() { cancel(nil); <-i.ended; c.charge(&run, i.text) }()
	if err := i.port.await(running, i.ended); err != nil {
		cancel(err)
		return c.line.say(&message{Refused: &refused{Why: plain(err.Error())}})
	}
	c.server.Log("%s: %s", c.peer, run.describe())
	if err := c.line.say(&message{Granted: &granted{Run: run, Cut: cut, Port: i.port.number}}); err != nil {
		return err
	}
	o := &outcome{}
	if err := c.attend(running, cancel, i); errors.Is(err, errGone) || errors.Is(err, errOrder) || ctx.Err() != nil {
		return err
	} else if err != nil {
		o.Ended = plain(err.Error())
	}
	after, err := overflowed()
	if err != nil {
		return err
	}
	o.Overflow = after - min(before, after)
	return c.line.say(&message{Done: o})
}

// start starts the iperf3 of a run. It ends with ctx.
func (c *session) start(ctx context.Context, run *Run) *running {
	i := &running{port: port{number: c.server.DataPort, peer: c.peer}, ended: make(chan struct{})}
	args := run.serverArguments(c.local.Addr().String(), c.server.DataPort, c.server.Limits.Rate > 0)
	go func() {
		defer close(i.ended)
		i.text, i.err = runIPerf3(ctx, c.server.tool.Path, args, run.Omit+run.Count+listenWait+iperf3Slack)
	}()
	return i
}

// attend follows the client, samples the machine and guards the port until the
// client says that its iperf3 has ended. It gives what ended the run early.
func (c *session) attend(ctx context.Context, cancel context.CancelCauseFunc, i *running) error {
	watching, stop := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	for _, task := range []func() error{
		func() error { return c.sampler.Watch(watching, c.report(cancel)) },
		func() error { return i.port.guard(watching) },
	} {
		tasks.Go(func() {
			if err := task(); err != nil {
				cancel(err)
			}
		})
	}
	following := c.follow(ctx)
	stop()
	tasks.Wait() // the last sample goes before what follows
	if following != nil && ctx.Err() == nil {
		cancel(following)
	}
	cause := context.Cause(ctx)
	cancel(nil) // the client's iperf3 has ended; so has ours, or it shall
	<-i.ended
	if cause == nil {
		var said *iperf.ToolError
		if _, err := iperf.Parse(i.text); errors.As(err, &said) {
			cause = err
		}
	}
	return cause
}

// report sends what was sampled to the client.
func (c *session) report(cancel context.CancelCauseFunc) func(sample.Point) {
	return func(p sample.Point) {
		if err := c.line.say(&message{Sample: &p}); err != nil {
			cancel(fmt.Errorf("%w: %w", errGone, err))
		}
	}
}

// follow hears the client until its iperf3 has ended. A silent client has gone:
// nothing more is sent to it.
func (c *session) follow(ctx context.Context) error {
	for {
		m, err := c.line.hear(ctx, alivePatience)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("%w: %w", errGone, err)
		case m.Alive != nil:
		case m.Ended != nil:
			return nil
		default:
			return errOrder
		}
	}
}

// charge takes what a run moved from the client's data. Where iperf3 could not
// say it, that is all that the run could have moved.
func (c *session) charge(run *Run, text []byte) {
	got, err := iperf.Parse(text)
	if err != nil {
		c.left -= int64(run.Rate * float64(run.ways()) / 8 * (run.Omit + run.Count).Seconds())
		return
	}
	moved := max(got.Sent, got.Received)
	if got.Back != nil {
		moved += max(got.Back.Sent, got.Back.Received)
	}
	c.left -= int64(moved)
}
