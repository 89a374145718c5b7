package ftp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Rules loads rules into anchors under traffic.
type Rules interface {
	// Check returns why rules of the anchor at a path would have no effect. It may leave
	// a rule there.
	Check(ctx context.Context, path string) error
	// Load replaces the rules of the anchor at a path.
	Load(ctx context.Context, path, text string) error
	// Flush removes the rules of the anchor at a path, or of all anchors below it.
	Flush(ctx context.Context, path string, below bool) error
}

// A Proxy is the configuration of a running proxy.
type Proxy struct {
	Listen  []netip.AddrPort
	Anchor  string         // below which each session has its own: "ftp-proxy"
	Server  netip.AddrPort // the server of all sessions; not valid: the one that the client asked for
	Source  netip.Addr     // that servers see; not valid: the kernel chooses
	Most    int            // sessions at once
	Idle    time.Duration  // after which a silent session ends
	Rules   Rules
	Log     *slog.Logger
	Started func() // is called once the proxy listens

	ports    ports
	sessions chan struct{} // holds an item for each session
	number   int           // of the last session
	mu       sync.Mutex
}

// dialPatience is how long a server may take to accept a connection.
const dialPatience = 30 * time.Second

// Run serves until ctx ends. It removes what an earlier proxy has left in its anchor.
func (p *Proxy) Run(ctx context.Context) error {
	if err := errors.Join(p.Rules.Check(ctx, p.nextPath()), p.Rules.Flush(ctx, p.Anchor, true)); err != nil {
		return err
	}
	p.sessions = make(chan struct{}, p.Most)
	group, ctx := errgroup.WithContext(ctx)
	for _, at := range p.Listen {
		l, err := listen(ctx, at)
		if err != nil {
			return fmt.Errorf("listen at %s: %w", at, err)
		}
		group.Go(func() error { <-ctx.Done(); return l.Close() })
		group.Go(func() error { return p.accept(ctx, l) })
	}
	p.Started()
	return group.Wait()
}

// listen returns a socket that takes connections to any address: divert-to gives it those
// to the servers.
func listen(ctx context.Context, at netip.AddrPort) (net.Listener, error) {
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		failed := raw.Control(func(fd uintptr) {
			if at.Addr().Is4() {
				err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_TRANSPARENT, 1)
			} else {
				err = unix.SetsockoptInt(int(fd), unix.SOL_IPV6, unix.IPV6_TRANSPARENT, 1)
			}
		})
		return errors.Join(failed, os.NewSyscallError("setsockopt IP_TRANSPARENT", err))
	}}
	return c.Listen(ctx, "tcp", at.String())
}

func (p *Proxy) accept(ctx context.Context, l net.Listener) error {
	var open sync.WaitGroup
	defer open.Wait()
	for {
		client, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			p.Log.Error("accept a client", "error", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		select {
		case p.sessions <- struct{}{}:
		default:
			p.Log.Warn("too many sessions", "client", client.RemoteAddr(), "most", p.Most)
			fmt.Fprint(client, "421 Too many sessions\r\n") //nolint:errcheck // the client is not served
			client.Close()
			continue
		}
		open.Go(func() {
			defer func() { <-p.sessions }()
			p.serve(ctx, client)
		})
	}
}

func (p *Proxy) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	s := &session{Proxy: p, client: client, path: p.nextPath(), from: plainAddr(client.RemoteAddr()), called: plainAddr(client.LocalAddr())}
	s.real = s.called
	if p.Server.IsValid() {
		s.real = p.Server
	}
	s.log = p.Log.With("client", s.from, "server", s.real)
	d := net.Dialer{Timeout: dialPatience}
	if p.Source.IsValid() && p.Source.Is4() == s.real.Addr().Is4() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(p.Source, 0))
	}
	server, err := d.DialContext(ctx, "tcp", s.real.String())
	if err != nil {
		s.log.Warn("connect to the server", "error", err)
		fmt.Fprint(client, "421 The server does not answer\r\n") //nolint:errcheck // the client may be gone
		return
	}
	defer server.Close()
	s.server, s.own = server, plainAddr(server.LocalAddr())
	if s.own == s.from || s.real == plainAddr(client.LocalAddr()) && p.Server.IsValid() {
		s.log.Error("the session would lead back to the proxy")
		return
	}
	s.log.Info("a session", "anchor", s.path, "as", s.own)
	err = s.run(ctx)
	s.log.Info("a session has ended", "anchor", s.path, "error", err)
}

func (p *Proxy) nextPath() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number++
	return fmt.Sprintf("%s/%d.%d", p.Anchor, os.Getpid(), p.number)
}

// Ports that the proxy tells servers for active data connections.
const (
	firstPort = 50001
	lastPort  = 65535
)

// ports are the ports in use.
type ports struct {
	mu   sync.Mutex
	used map[uint16]bool
}

var errPorts = errors.New("no port is left")

// take returns a random port that no session uses.
func (p *ports) take() (uint16, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used == nil {
		p.used = make(map[uint16]bool)
	}
	for range 1000 {
		if port := uint16(firstPort + rand.IntN(lastPort-firstPort+1)); !p.used[port] {
			p.used[port] = true
			return port, nil
		}
	}
	return 0, errPorts
}

func (p *ports) give(port uint16) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.used, port)
}
