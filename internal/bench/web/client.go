package web

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// patience is how long a connection or an object may take before it counts as
	// failed, unless the plan sets another value.
	patience = 10 * time.Second
	// lateness is how late a connection may begin before it counts as late.
	lateness = 10 * time.Millisecond
)

// clock holds the moments that divide a run into phases.
type clock struct{ begin, sustain, down, end time.Time }

func (p *Plan) clock(begin time.Time) clock {
	sustain := begin.Add(p.RampUp)
	down := sustain.Add(p.Sustain)
	return clock{begin, sustain, down, down.Add(p.RampDown)}
}

// sustained reports whether something that begins at this moment counts. Its end does not
// matter: a timeout ends after the phase and would be missed otherwise.
func (c *clock) sustained(begin time.Time) bool {
	return !begin.Before(c.sustain) && begin.Before(c.down)
}

// client does a plan's work, one connection at a time.
type client struct {
	plan   *Plan
	number int
	clock  clock
	result Result
	random *rand.Rand
	held   []*connection
}

// connection is an open connection. It ends with the run's context.
type connection struct {
	net.Conn
	reader *bufio.Reader
	forget func() bool // stops waiting for the context
}

// Close also stops waiting for the context.
func (c *connection) Close() error {
	c.forget()
	return c.Conn.Close()
}

// Run sends clients from a host through the phases of a plan. It returns an error if the
// plan could not run at all. Failures of single connections are in the result.
func Run(ctx context.Context, h Host, p Plan) (Result, error) {
	var all Result
	if err := p.check(); err != nil {
		return all, err
	}
	if p.Patience == 0 {
		p.Patience = patience
	}
	if p.Hold {
		return hold(ctx, h, &p)
	}
	clock := p.clock(time.Now())
	clients, err := start(ctx, h, &p, clock, (*client).work)
	for _, c := range clients {
		all.add(&c.result)
	}
	all.Seconds = p.Sustain.Seconds()
	if begun := all.Connections + all.Broken; begun > 0 {
		all.Late /= float64(begun)
	}
	return all, errors.Join(err, ctx.Err())
}

// start runs all clients, each on a thread of the host, and waits for them.
func start(ctx context.Context, h Host, p *Plan, at clock, work func(*client, context.Context)) ([]*client, error) {
	clients := make([]*client, p.Clients)
	errs := make([]error, p.Clients)
	var group sync.WaitGroup
	for i := range clients {
		clients[i] = &client{plan: p, number: i, clock: at, random: rand.New(rand.NewPCG(uint64(i), 1))}
		group.Go(func() {
			errs[i] = h.do(func() error {
				work(clients[i], ctx)
				return nil
			})
		})
	}
	group.Wait()
	return clients, errors.Join(errs...)
}

// work begins at this client's turn in the first phase and ends at its turn in the last
// one.
func (c *client) work(ctx context.Context) {
	share := time.Duration(c.number) * c.plan.RampUp / time.Duration(c.plan.Clients)
	until := c.clock.end.Add(-time.Duration(c.number) * c.plan.RampDown / time.Duration(c.plan.Clients))
	due := c.clock.begin.Add(share)
	step := time.Duration(0)
	if c.plan.Rate > 0 {
		step = time.Duration(float64(c.plan.Clients) / c.plan.Rate * float64(time.Second))
		due = due.Add(time.Duration(c.random.Float64() * float64(step)))
	}
	for due.Before(until) && wait(ctx, time.Until(due)) == nil {
		c.visit(ctx, due)
		if due = due.Add(step); step == 0 {
			due = time.Now()
		}
	}
}

// visit opens a connection, fetches its objects and closes it.
func (c *client) visit(ctx context.Context, due time.Time) {
	begin := time.Now()
	counts := c.clock.sustained(due)
	conn, err := c.connectInTime(ctx, due, begin)
	if err != nil {
		if counts {
			c.result.Broken++
			c.fail(err)
		}
		return
	}
	defer conn.Close()
	if counts {
		c.result.Connections++
		if begin.Sub(due) > lateness {
			c.result.Late++
		}
	}
	for i := range c.plan.PerConnection {
		// The first object is what the visitor came for, and counts if the visit
		// does.
		if !c.fetch(conn, i == 0 && counts || i > 0 && c.clock.sustained(time.Now())) {
			return
		}
		if i == 0 && counts {
			c.result.Whole = append(c.result.Whole, milliseconds(time.Since(due)))
		}
		if time.Now().After(c.clock.end) {
			return
		}
	}
}

// connectInTime fails if the wait for a free client already took the visitor's patience.
// Otherwise it connects.
func (c *client) connectInTime(ctx context.Context, due, begin time.Time) (*connection, error) {
	if late := begin.Sub(due); late > c.plan.Patience {
		return nil, fmt.Errorf("connect: all clients were busy for %v", late.Round(time.Millisecond))
	}
	return c.connect(ctx, begin)
}

func (c *client) connect(ctx context.Context, begin time.Time) (*connection, error) {
	dialer := net.Dialer{Timeout: c.plan.Patience, KeepAlive: -1, Control: lateSourcePort}
	dialer.SetMultipathTCP(false)
	if c.plan.Source.IsValid() {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.plan.Source, 0))
	}
	conn, err := dialer.DialContext(ctx, "tcp", c.target().String())
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	connected := time.Now()
	counts := c.clock.sustained(begin)
	if counts {
		c.result.Connect = append(c.result.Connect, milliseconds(connected.Sub(begin)))
	}
	plain := conn
	if c.plan.TLS {
		secure := tls.Client(conn, c.plan.tlsConfig())
		secure.SetDeadline(connected.Add(c.plan.Patience)) //nolint:errcheck // the handshake then reports the error
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, fmt.Errorf("agree on TLS: %w", err)
		}
		conn = secure
		if counts {
			c.result.Handshake = append(c.result.Handshake, milliseconds(time.Since(begin)))
		}
	}
	forget := context.AfterFunc(ctx, func() { plain.Close() })
	return &connection{conn, bufio.NewReaderSize(conn, 16<<10), forget}, nil
}

// target returns the address of the next connection.
func (c *client) target() netip.AddrPort {
	a := c.plan.Target.Addr()
	for range c.random.IntN(max(1, c.plan.Targets)) {
		a = a.Next()
	}
	return netip.AddrPortFrom(a, c.plan.Target.Port())
}

// lateSourcePort lets the kernel choose the source port once it knows the target, so one
// port serves connections to several.
func lateSourcePort(_, _ string, raw syscall.RawConn) error {
	var set error
	err := raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	})
	return errors.Join(err, set)
}

// fetch gets one object and counts it if counts is set. It reports whether the connection
// is still good.
func (c *client) fetch(conn *connection, counts bool) bool {
	size := c.plan.Sizes[c.random.IntN(len(c.plan.Sizes))]
	begin := time.Now()
	first, err := get(conn, c.plan, size)
	last := time.Now()
	if !counts {
		return err == nil
	}
	if err != nil {
		c.result.Failed++
		c.fail(err)
		return false
	}
	c.result.Transactions++
	c.result.Bytes += size
	c.result.FirstByte = append(c.result.FirstByte, milliseconds(first.Sub(begin)))
	c.result.LastByte = append(c.result.LastByte, milliseconds(last.Sub(begin)))
	return true
}

func (c *client) fail(err error) {
	if c.result.FirstError == nil {
		c.result.FirstError = err
	}
}

// get requests an object and reads it to its end.
func get(conn *connection, p *Plan, size int) (first time.Time, err error) {
	if err := conn.SetDeadline(time.Now().Add(p.Patience)); err != nil {
		return first, fmt.Errorf("set a deadline: %w", err)
	}
	if _, err := fmt.Fprintf(conn, "GET /%d HTTP/1.1\r\nHost: %s\r\n\r\n", size, p.Target); err != nil {
		return first, fmt.Errorf("ask for an object: %w", err)
	}
	if _, err := conn.reader.Peek(1); err != nil {
		return first, fmt.Errorf("wait for an object: %w", err)
	}
	first = time.Now()
	response, err := http.ReadResponse(conn.reader, nil)
	if err != nil {
		return first, fmt.Errorf("read an object: %w", err)
	}
	defer response.Body.Close()
	n, err := io.Copy(io.Discard, response.Body)
	if err != nil {
		return first, fmt.Errorf("read an object: %w", err)
	}
	if response.StatusCode != http.StatusOK || n != int64(size) {
		return first, fmt.Errorf("asked for %d bytes: %s and %d bytes", size, response.Status, n)
	}
	return first, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
