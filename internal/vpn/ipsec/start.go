package ipsec

import (
	"context"
	"slices"
)

// start has charon begin a connection, for some keys for packets. charon looks up the peer's name before it answers, so nobody waits
// for it: without a DNS that takes long, and the other tunnels have to be looked after.
func (c *Charon) start(ctx context.Context, name, child string) {
	c.mu.Lock()
	c.starts[name] = true
	c.mu.Unlock()
	c.spawn(func() {
		if err := c.initiate(ctx, name, child); err != nil {
			c.log.Debug("begin a tunnel", "connection", name, "child", child, "error", err)
		}
		c.mu.Lock()
		delete(c.starts, name)
		c.mu.Unlock()
	})
}

// initiate asks by a session of its own, as charon answers each session in turn.
func (c *Charon) initiate(ctx context.Context, name, child string) error {
	s, err := open(c.socket)
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = (&client{session: s}).call(ctx, "initiate", section{{"ike", name}, {"child", child}, {"timeout", "-1"}})
	return err
}

func (c *Charon) isStarting(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.starts[name]
}

// before returns what a tunnel had at the last look, and whether charon is asked to begin any.
func (c *Charon) before(name string) (sas []IKE, starting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.states[name].SAs), len(c.starts) > 0
}
