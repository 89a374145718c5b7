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

// Welcome tells the client the server's identity and limits.
type Welcome struct {
	Program string
	Limits  Limits
	Machine Host
}

// Host describes the machine of one side.
type Host struct {
	Name, CPU string
	Cores     int
	Kernel    string
}

// Granted is a run as the server allows it. Its iperf3 listens on the port.
type Granted struct {
	Run  Run
	Cut  []string
	Port uint16
}

// Outcome is the server's report of a run.
type Outcome struct {
	Overflow uint64         // datagrams dropped at a full socket on its machine
	Points   []sample.Point // samples of its machine
	Ended    string         // why the run ended early; "": it did not
}

var errOrder = errors.New("a call came that is out of order")

// Session is one client of a server. The client may call its exported methods one after
// the other (net/rpc).
type Session struct {
	server  *server
	ctx     context.Context // ends with the client
	local   netip.AddrPort  // address that the client connected to
	peer    netip.Addr
	sampler *sample.Sampler
	refused error // why the client is not served; nil: it is

	mu   sync.Mutex // held by the current call
	left int64      // bytes that the client may still move
	run  *running   // nil: none
}

// running is an iperf3 that serves one run.
type running struct {
	outcome Outcome
	ended   chan struct{} // closed once outcome is set
}

// Hello has to be a client's first call.
func (c *Session) Hello(program string, w *Welcome) error {
	if c.refused == nil {
		c.server.Log("%s: has the key, is served: %s", c.peer, plain(program))
		*w = Welcome{Program: c.server.Program, Limits: c.server.Limits, Machine: c.server.machine}
	}
	return c.refused
}

// Begin requests a run. Once it is granted, iperf3 listens.
func (c *Session) Begin(asked Run, g *Granted) error {
	if !c.mu.TryLock() {
		return errOrder
	}
	defer c.mu.Unlock()
	if c.refused != nil || c.run != nil {
		return errors.Join(c.refused, errOrder)
	}
	if err := asked.check(); err != nil {
		return err
	}
	run, cut, err := c.server.Limits.grant(asked, c.left)
	if err != nil {
		return err
	}
	if c.run, err = c.start(&run); err != nil {
		return err
	}
	c.server.Log("%s: %s, %s", c.peer, run.Case, run.Count)
	*g = Granted{run, cut, c.server.DataPort}
	return nil
}

// Finish waits for the end of the granted run.
func (c *Session) Finish(_ bool, o *Outcome) error {
	if !c.mu.TryLock() {
		return errOrder
	}
	defer c.mu.Unlock()
	if c.run == nil {
		return errOrder
	}
	<-c.run.ended
	*o, c.run = c.run.outcome, nil
	return nil
}

// close waits for everything that ends with the session.
func (c *Session) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run != nil {
		<-c.run.ended
	}
	return c.sampler.Close()
}

// tolerance is the factor by which a run's bursts may exceed its rate.
const tolerance = 1.25

// start starts the iperf3 of a run and its watcher.
func (c *Session) start(run *Run) (*running, error) {
	before, err := overflowed()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	p := &port{number: c.server.DataPort, peer: c.peer}
	most := 0.0
	if c.server.Limits.Rate > 0 {
		most = run.total() * tolerance
	}
	var got *iperf.Result
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		got, failed = c.server.tool.Serve(ctx, c.local.Addr().String(), p.number, most, run.time()+connectWait+iperf3Slack)
	}()
	if err := p.await(ctx, ended); err != nil {
		cancel(err)
		<-ended
		return nil, err
	}
	r := &running{ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		why := c.watch(ctx, cancel, p, &r.outcome, ended)
		after, err := overflowed()
		r.outcome.Overflow = after - min(before, after)
		if why = errors.Join(why, err, c.charge(run, got, failed)); why != nil {
			r.outcome.Ended = plain(why.Error())
			c.server.Log("%s: %s", c.peer, r.outcome.Ended)
		}
	}()
	return r, nil
}

// watch samples the machine and guards the port until iperf3 has ended. It returns what
// ended the run early.
func (c *Session) watch(ctx context.Context, cancel context.CancelCauseFunc, p *port, o *Outcome, ended <-chan struct{}) error {
	watching, stop := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	for _, task := range []func() error{
		func() error {
			return c.sampler.Watch(watching, func(p sample.Point) { o.Points = append(o.Points, p) })
		},
		func() error { return p.guard(watching) },
	} {
		tasks.Go(func() {
			if err := task(); err != nil {
				cancel(err)
			}
		})
	}
	<-ended
	stop()
	tasks.Wait()
	cause := context.Cause(ctx)
	cancel(nil)
	switch {
	case errors.Is(cause, context.DeadlineExceeded):
		return fmt.Errorf("the time for one client, %s, is over (the server's --max-session)", c.server.Limits.Session)
	case errors.Is(cause, context.Canceled):
		return errors.New("the server ends")
	}
	return cause
}

// charge subtracts what a run moved from the client's data. If iperf3 did not report it,
// charge subtracts all that the run could have moved. The error is iperf3's.
func (c *Session) charge(run *Run, got *iperf.Result, err error) error {
	if err != nil {
		c.left -= int64(run.total() / 8 * run.time().Seconds())
		if said := new(iperf.ToolError); errors.As(err, &said) {
			return said
		}
		return nil
	}
	moved := max(got.Sent, got.Received)
	if got.Back != nil {
		moved += max(got.Back.Sent, got.Back.Received)
	}
	c.left -= int64(moved)
	return nil
}
