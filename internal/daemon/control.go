package daemon

import (
	"context"
	"errors"
	"net"
	"os"

	"weir/internal/api"
)

// Status says who answers.
func (c *controller) Status() api.Status {
	b := c.box
	b.mu.Lock()
	defer b.mu.Unlock()
	return api.Status{PID: os.Getpid(), Version: b.cfg.Version, Started: c.started, Loaded: b.loaded}
}

// Load puts a ruleset in force; an error leaves the old one.
func (c *controller) Load(_ context.Context, r api.LoadRequest) (*api.LoadAnswer, error) {
	b := c.box
	b.mu.Lock()
	defer b.mu.Unlock()
	m, err := look()
	if err != nil {
		return nil, err
	}
	if err := b.replace(Source{Name: r.File, Path: r.Path, Text: r.Text}, m); err != nil {
		return nil, err
	}
	b.cfg.Log.Info("loaded", "file", r.File, "rules", len(b.rules.texts))
	return &api.LoadAnswer{Rules: len(b.rules.texts), Warnings: b.rules.warnings}, nil
}

// Leave ends the daemon and nothing else.
func (c *controller) Leave(why string) { c.leave(errors.New(why)) }

// notify tells the service manager, where there is one (sd_notify(3)).
func (b *box) notify(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err == nil {
		_, err = c.Write([]byte(state))
		c.Close()
	}
	if err != nil {
		b.cfg.Log.Warn("tell the service manager", "state", state, "error", err)
	}
}
