package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/rpc"
	"time"

	"weir/internal/bench/sample"
)

// answerPatience is how long a client waits for an answer beyond the call's own time.
const answerPatience = 10 * time.Second

// RefusedError is a refusal by the server.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return "the server refuses: " + e.Why }

// client is the client's side of a session.
type client struct {
	calls   *rpc.Client
	welcome Welcome
}

// connect authenticates to a server and asks for its limits.
func connect(ctx context.Context, server netip.AddrPort, key Key, program string) (*client, error) {
	config, err := key.config(roleClient, roleServer)
	if err != nil {
		return nil, err
	}
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: handshakePatience, KeepAliveConfig: keepAlive}, Config: config}
	conn, err := d.DialContext(ctx, "tcp", server.String())
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", server, explain(err))
	}
	c := &client{calls: rpc.NewClient(&bounded{Conn: conn, left: maxFromServer, ended: func(error) {}})}
	if err := c.call(ctx, "Hello", program, &c.welcome, 0); err != nil {
		return nil, errors.Join(err, c.calls.Close())
	}
	if err := c.welcome.Limits.Check(); err != nil {
		return nil, errors.Join(fmt.Errorf("the server's limits: %w", err), c.calls.Close())
	}
	m := &c.welcome.Machine
	c.welcome.Program, m.Name, m.CPU, m.Kernel = plain(c.welcome.Program), plain(m.Name), plain(m.CPU), plain(m.Kernel)
	return c, nil
}

// explain translates TLS's errors.
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

// call calls the server and waits for its answer. A refusal is an error.
func (c *client) call(ctx context.Context, method string, with, answer any, takes time.Duration) error {
	call := c.calls.Go("Session."+method, with, answer, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(takes + answerPatience):
		return fmt.Errorf("the server is silent for %s", takes+answerPatience)
	}
	var refused rpc.ServerError
	switch {
	case errors.As(call.Error, &refused):
		return &RefusedError{plain(string(refused))}
	case call.Error != nil:
		return fmt.Errorf("speak to the server: %w", call.Error)
	}
	return nil
}

// run requests a run and moves its data. If the server says why the run ended, that comes
// before an error on this side.
func (c *client) run(ctx context.Context, asked *Run, r *result, traffic func(context.Context, uint16) error) error {
	var g Granted
	if err := c.call(ctx, "Begin", asked, &g, listenWait); err != nil {
		return err
	}
	if err := g.Run.noMore(asked); err != nil {
		return err
	}
	r.granted = g.Run
	for _, text := range g.Cut {
		r.cut = append(r.cut, plain(text))
	}
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var o Outcome
	finished := make(chan error, 1)
	go func() {
		err := c.call(ctx, "Finish", false, &o, g.Run.time()+connectWait+iperf3Slack)
		if err == nil && o.Ended != "" {
			err = &RefusedError{plain(o.Ended)}
		}
		if err != nil {
			cancel(err)
		}
		finished <- err
	}()
	err := traffic(running, g.Port)
	select {
	case said := <-finished:
		if said != nil {
			return said
		}
	case <-time.After(answerPatience):
		return errors.Join(err, errors.New("the server does not say that the run has ended"))
	}
	r.overflow += o.Overflow
	return errors.Join(err, r.take(o.Points))
}

// take keeps the samples of the server's machine, with names that are safe to print.
func (r *result) take(points []sample.Point) error {
	for _, p := range points {
		if err := p.Check(); err != nil {
			return err
		}
		for i := range p.Links {
			p.Links[i].Name = plain(p.Links[i].Name)
		}
		drops := make(map[string]uint64, len(p.Drops))
		for reason, n := range p.Drops {
			drops[plain(reason)] += n
		}
		p.Drops = drops
		r.theirs = append(r.theirs, p)
	}
	return nil
}
