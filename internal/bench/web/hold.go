package web

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// asking is the number of held connections that are used at once. If most are dead, each
// of them takes the whole patience.
const asking = 1024

// hold opens as many connections as the plan says and fetches an object over each. It
// keeps all of them open for the sustained phase and then fetches another object over
// each.
func hold(ctx context.Context, h Host, p *Plan) (Result, error) {
	var all Result
	always := clock{sustain: time.Time{}, down: time.Now().Add(24 * time.Hour), end: time.Now().Add(24 * time.Hour)}
	begin := time.Now()
	clients, err := start(ctx, h, p, always, (*client).fill)
	defer closeAll(clients)
	all.Seconds = time.Since(begin).Seconds()
	if err == nil {
		err = wait(ctx, p.Sustain)
	}
	if err == nil {
		askAgain(clients)
	}
	for _, c := range clients {
		all.add(&c.result)
	}
	return all, errors.Join(err, ctx.Err())
}

// wait sleeps for d, or until the context ends. d may have passed already.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// fill opens this client's share of the connections. It stops at the first failure,
// because a full firewall stays full.
func (c *client) fill(ctx context.Context) {
	part := c.plan.Connections / c.plan.Clients
	if c.number < c.plan.Connections%c.plan.Clients {
		part++
	}
	for range part {
		if ctx.Err() != nil {
			return
		}
		conn, err := c.connect(ctx, time.Now())
		if err != nil {
			c.result.Broken++
			c.fail(err)
			return
		}
		c.held = append(c.held, conn)
		c.result.Connections++
		if !c.fetch(conn, true) {
			return
		}
	}
}

// askAgain fetches an object over each connection. If its state was lost meanwhile, the
// connection is not held. If the run is cancelled, connections are closed without delay.
func askAgain(clients []*client) {
	var group sync.WaitGroup
	var counting sync.Mutex
	slots := make(chan struct{}, asking)
	for _, c := range clients {
		for i, conn := range c.held {
			slots <- struct{}{}
			group.Go(func() {
				defer func() { <-slots }()
				one := &client{plan: c.plan, clock: c.clock, random: rand.New(rand.NewPCG(uint64(c.number), uint64(i)))}
				if one.fetch(conn, true) {
					one.result.Held++
				}
				counting.Lock()
				defer counting.Unlock()
				c.result.add(&one.result)
			})
		}
	}
	group.Wait()
}

func closeAll(clients []*client) {
	for _, c := range clients {
		for _, conn := range c.held {
			conn.Close()
		}
	}
}
