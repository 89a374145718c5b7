package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"weir/internal/bench/sample"
	"weir/internal/stats"
)

// RefusedError is what a server does not give.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return "the server refuses: " + e.Why }

// client is a session as its client sees it.
type client struct {
	server  netip.AddrPort
	line    *line
	welcome *welcome
	probes  *prober // nil: see unproven
	// unproven says why no UDP comes through.
	unproven error
	sampler  *sample.Sampler
}

// result is what one run brought.
type result struct {
	granted Run
	cut     []string
	up      *direction // nil: the run did not go that way
	down    *direction
	rtts    stats.Sample // milliseconds, while it ran
	lost    int          // probes
	own     []sample.Point
	theirs  []sample.Point
	process float64  // seconds of cores that the client's process took
	remote  float64  // and the server's
	full    []string // ends that were full by what iperf3 says
}

// direction is one direction of a run, from both of its ends.
type direction struct {
	sent     sent
	received received
}

// rate is what the receiver counted, in bit/s.
func (d *direction) rate() float64 {
	if d.received.Window <= 0 {
		return 0
	}
	return float64(d.received.Bytes) * 8 / d.received.Window.Seconds()
}

// loss is the share of UDP datagrams that did not arrive.
func (d *direction) loss() float64 {
	if d.sent.Packets == 0 {
		return 0
	}
	return max(0, 1-float64(d.received.Packets)/float64(d.sent.Packets))
}

// connect authenticates with a server and asks it what it gives.
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
	c := &client{server: server, line: newLine(conn.(*tls.Conn))}
	if err := c.greet(ctx, program); err != nil {
		c.line.close()
		return nil, err
	}
	return c, nil
}

// explain says what TLS's errors mean here.
func explain(err error) error {
	var alert tls.AlertError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, errNoKey):
		return errNoKey
	case errors.As(err, &alert), errors.As(err, &record):
		return fmt.Errorf("this is no weir bench server of this version (%w)", err)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("it hung up; too many may be connecting (%w)", err)
	}
	return err
}

func (c *client) greet(ctx context.Context, program string) error {
	m, err := c.ask(ctx, &message{Hello: &hello{Program: program}})
	switch {
	case err != nil:
		return err
	case m.Welcome == nil:
		return errOrder
	}
	c.welcome = m.Welcome
	t, err := parseTicket(m.Welcome.Probe)
	if err != nil {
		return err
	}
	conn, err := c.prove(ctx, t)
	if errors.Is(err, errNoUDP) {
		c.unproven = err
		return nil
	}
	if err == nil {
		c.probes = &prober{conn: conn, tag: t.tag()}
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

// prove opens a UDP flow and proves to the server where it comes from.
func (c *client) prove(ctx context.Context, t ticket) (*net.UDPConn, error) {
	conn, err := connectUDP(ctx, netip.AddrPort{}, c.server)
	if err != nil {
		return nil, err
	}
	cookie, err := sayHello(ctx, conn, t)
	if err == nil {
		var m *message
		m, err = c.ask(ctx, &message{Proof: &proof{Ticket: t.String(), Cookie: cookie.String()}})
		if err == nil && m.Proven == nil {
			err = errOrder
		}
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// close says good-bye.
func (c *client) close() {
	if c.probes != nil {
		c.probes.conn.Close()
	}
	_ = c.line.say(&message{Bye: &struct{}{}}) // the server notices anyway
	c.line.close()
}
