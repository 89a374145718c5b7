package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/rundir"
	"weir/internal/fw/view"
	"weir/internal/portmap/mapping"
	"weir/pf/source"
)

// Helpers are programs that run beside the daemon and have it load rules into anchors:
// ftp-proxy and portmap.

// helperLog returns what a helper writes its messages to.
func (e *Env) helperLog(verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(e.Stderr, &slog.HandlerOptions{Level: level}))
}

// checkHelperAnchor checks the flag that names a helper's anchor.
func checkHelperAnchor(path string) error {
	if name, below, err := source.ParseAnchor(path, false); err != nil || below || name == "" {
		return fmt.Errorf("--anchor %q is no path of an anchor", path)
	}
	return nil
}

// An anchorLoader loads rules by the daemon.
type anchorLoader struct {
	client *control.Client
	folder rundir.Folder
}

func newAnchorLoader(folder rundir.Folder) *anchorLoader {
	return &anchorLoader{control.NewClient(folder), folder}
}

// checkRule is a rule that no packet matches.
const checkRule = "pass in quick on lo inet proto tcp from 127.0.0.1 to 127.0.0.1 port 1 no state\n"

// Check returns why rules of an anchor would have no effect. It leaves a rule there that no
// packet matches.
func (l *anchorLoader) Check(ctx context.Context, path string) error {
	if err := l.Load(ctx, path, checkRule); err != nil {
		return err
	}
	status, err := l.client.Status(ctx)
	if err != nil {
		return err
	}
	called := slices.ContainsFunc(status.Loaded.Anchors, func(a rundir.Anchor) bool { return a.Path == path && a.Called })
	if !called {
		above := path[:strings.LastIndexByte(path, '/')]
		return fmt.Errorf("no rule evaluates the anchor %s: add to the rules: anchor \"%s/*\"", path, above)
	}
	return nil
}

// Load replaces the rules of an anchor.
func (l *anchorLoader) Load(ctx context.Context, path, text string) error {
	_, err := l.client.ChangeAnchor(ctx, &control.AnchorChange{Load: &source.Anchor{Path: path, Name: path, Text: text}, NoDNS: true})
	return err
}

// Flush removes the rules of an anchor, or of all below it.
func (l *anchorLoader) Flush(ctx context.Context, path string, below bool) error {
	_, err := l.client.ChangeAnchor(ctx, &control.AnchorChange{Flush: path, Below: below})
	return err
}

// Loaded returns how many rules an anchor has, and whether a rule evaluates it.
func (l *anchorLoader) Loaded(ctx context.Context, path string) (rules int, called bool, err error) {
	status, err := l.client.Status(ctx)
	if err != nil {
		return 0, false, err
	}
	i := slices.IndexFunc(status.Loaded.Anchors, func(a rundir.Anchor) bool { return a.Path == path })
	if i < 0 {
		return 0, false, nil
	}
	return status.Loaded.Anchors[i].Rules, status.Loaded.Anchors[i].Called, nil
}

// Redirects returns the ports that rules outside the anchor send on where they come in by an
// interface.
func (l *anchorLoader) Redirects(path, on string) (all []mapping.Redirect, err error) {
	v, err := view.Open(l.folder)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	found, err := v.Redirects(path)
	for _, r := range found {
		if r.On == "" || r.On == on {
			all = append(all, mapping.Redirect{Protocol: mapping.Protocol(r.Protocol), Ports: mapping.Ports{First: r.Ports.Low, Last: r.Ports.High}})
		}
	}
	return all, err
}

// Connection looks for the state of a host's connection.
func (l *anchorLoader) Connection(p mapping.Protocol, host, peer netip.AddrPort) (seen netip.AddrPort, left time.Duration, ok bool, err error) {
	v, err := view.Open(l.folder)
	if err != nil {
		return seen, 0, false, err
	}
	defer v.Close()
	return v.Connection(uint8(p), host, peer)
}
