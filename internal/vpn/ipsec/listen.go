package ipsec

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/strongswan/govici/vici"
)

// mostLines is how many lines of charon's log may wait. Others are lost.
const mostLines = 1024

// listen follows charon's log, and remembers what tells why a tunnel of weir's is not up, until ctx ends.
// It has a connection of its own: lines come at any time.
func (c *Charon) listen(ctx context.Context) {
	for ctx.Err() == nil {
		if c.wantsAny() {
			if err := c.follow(ctx); err != nil && ctx.Err() == nil {
				c.log.Debug("read charon's log", "error", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(dialPause):
		}
	}
}

// follow follows the log while the connection lasts.
func (c *Charon) follow(ctx context.Context) error {
	s, err := open(c.socket)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	defer s.Close()
	events := make(chan vici.Event, mostLines)
	s.NotifyEvents(events)
	if err := subscribe(s, "log"); err != nil {
		return err
	}
	strangers := map[string]netip.Addr{} // where IKE_SAs without a connection come from, by their number
	for e := range events {
		c.hear(e.Message, strangers, e.Timestamp)
	}
	return errors.New("charon has closed the connection")
}

// subscribe asks for events. govici has no limit of time for that, and what is subscribed to earlier can
// block it: so a connection asks once.
func subscribe(s *vici.Session, event string) error {
	done := make(chan error, 1)
	go func() { done <- s.Subscribe(event) }()
	select {
	case err := <-done:
		return err
	case <-time.After(answerPatience):
		s.Close()
		return fmt.Errorf("charon does not answer a request for its %s", event)
	}
}

// hear reads a line of the log. One of an IKE_SA that has no connection yet belongs to the tunnel whose
// peer is at its address.
func (c *Charon) hear(m *vici.Message, strangers map[string]netip.Addr, now time.Time) {
	line, name, id := text(m, "msg"), text(m, "ikesa-name"), text(m, "ikesa-uniqueid")
	if a, ok := remote(line); ok && id != "" {
		if len(strangers) >= mostStrangers {
			clear(strangers)
		}
		strangers[id] = a
	}
	means := explain(line)
	if means == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	what := fmt.Sprintf("%s (charon: %s)", means, line)
	switch {
	case strings.HasPrefix(name, prefix):
		c.said[name] = saying{what, now}
	case name == "" || name == nobodys: // else it is somebody else's
		from, ok := strangers[id]
		if !ok {
			if from, ok = remote(line); !ok {
				return
			}
		}
		if name, sure := c.expecting(from); sure {
			c.said[name] = saying{what, now}
		} else if name != "" {
			c.rumour[name] = saying{fmt.Sprintf("somebody at %s, who may be the peer: %s", from, what), now}
		}
	}
}

const mostStrangers = 1024

// nobodys is how charon calls an IKE_SA that has no connection yet.
const nobodys = "(unnamed)"

// expecting returns the name of the connection whose peer is at an address, or may be. The lock is held.
func (c *Charon) expecting(from netip.Addr) (name string, sure bool) {
	for i := range c.wanted {
		w := &c.wanted[i]
		a, err := netip.ParseAddr(w.Peer)
		switch {
		case err == nil && a == from:
			return prefix + w.Name, true
		case err != nil: // anywhere, or a name
			name = prefix + w.Name
		}
	}
	return name, false
}

// remote finds where a message comes from in a line that has both ends: of one of them as
// "192.0.2.1[id]...198.51.100.7[id]", "192.0.2.1...198.51.100.7" or
// "received packet: from 198.51.100.7[500] to 192.0.2.1[500]".
func remote(line string) (netip.Addr, bool) {
	_, rest, ok := strings.Cut(line, "received packet: from ")
	if !ok {
		if _, rest, ok = strings.Cut(line, "..."); !ok {
			return netip.Addr{}, false
		}
	}
	end := strings.IndexAny(rest, "[, ")
	if end < 0 {
		end = len(rest)
	}
	a, err := netip.ParseAddr(rest[:end])
	return a, err == nil
}

// forget drops what went wrong with a connection.
func (c *Charon) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.said, name)
	delete(c.rumour, name)
}
