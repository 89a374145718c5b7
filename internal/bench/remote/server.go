package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/rpc"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"weir/internal/bench/iperf"
	"weir/internal/bench/sample"
	"weir/internal/host/hostinfo"
)

// DefaultPort is the port of the control connection. Data uses the next one.
const DefaultPort = 5202

// ServerOptions say what a server allows, and how long it runs.
type ServerOptions struct {
	Listen   string // address and port of the control connection
	DataPort uint16 // port of its iperf3, TCP and UDP; 0: the one after Listen's
	Key      Key
	Limits   Limits
	Life     time.Duration // how long it runs; 0: forever
	Once     bool          // end after the first client
	// Router is the file of a network namespace that is sampled during runs. "" is
	// the process's own. RouterName is its name in messages.
	Router, RouterName string
	Program            string // program and version
	// Ready is called with the address and port once clients can connect.
	Ready func(netip.AddrPort)
	// Log gets a line for each event. Its addresses and texts are safe to print.
	Log func(format string, args ...any)
}

const (
	// handshakePatience is how long a connection may stay unauthenticated.
	handshakePatience = 5 * time.Second
	maxStrangers      = 32       // such connections at once
	maxStrangersEach  = 8        // from one address
	maxFromClient     = 1 << 20  // bytes of a session's calls
	maxFromServer     = 64 << 20 // bytes of the answers
)

// keepAlive detects within some seconds that the other side's machine is gone.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3}

// server is a running server.
type server struct {
	ServerOptions
	listener net.Listener
	config   *tls.Config
	tool     *iperf.Tool
	machine  Host
	tasks    errgroup.Group
	end      context.CancelFunc

	mu        sync.Mutex
	strangers map[netip.Addr]int // connections that have not proved to have the key
	serving   sync.Mutex         // held while a client is served
}

// Serve serves clients until ctx or its lifetime ends. It serves one client at a time and
// tells others so.
func Serve(ctx context.Context, o ServerOptions) error {
	s := &server{ServerOptions: o, strangers: map[netip.Addr]int{}}
	if s.Life == 0 {
		s.Life = math.MaxInt64
	}
	ctx, s.end = context.WithTimeout(ctx, s.Life)
	defer s.end()
	if err := s.prepare(ctx); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { s.listener.Close() })
	defer stop()
	s.Ready(addrPort(s.listener.Addr()))
	s.tasks.Go(func() error { return s.accept(ctx) })
	return s.tasks.Wait()
}

// prepare checks what a server needs, so that it fails now and not at the first client.
func (s *server) prepare(ctx context.Context) (err error) {
	if err := s.Limits.Check(); err != nil {
		return err
	}
	if s.config, err = s.Key.config(roleServer, roleClient); err != nil {
		return err
	}
	if s.tool, err = iperf.Find(ctx); err != nil {
		return err
	}
	if s.machine, _, err = thisHost(); err != nil {
		return err
	}
	sampler, err := sample.Open(s.Router)
	if err != nil {
		return fmt.Errorf("sample %s: %w", s.RouterName, err)
	}
	if err := sampler.Close(); err != nil {
		return err
	}
	c := net.ListenConfig{KeepAliveConfig: keepAlive}
	if s.listener, err = c.Listen(ctx, "tcp", s.Listen); err != nil {
		return fmt.Errorf("wait for clients: %w", err)
	}
	if s.DataPort == 0 {
		if s.DataPort = addrPort(s.listener.Addr()).Port() + 1; s.DataPort == 0 {
			return errors.Join(errors.New("no port comes after 65535: name one with --data-port"), s.listener.Close())
		}
	}
	return nil
}

// thisHost describes this machine to the other side, and in full.
func thisHost() (Host, hostinfo.Machine, error) {
	m, err := hostinfo.Describe()
	name, failed := os.Hostname()
	return Host{Name: plain(name), CPU: plain(m.CPU), Cores: m.Cores, Kernel: plain(m.Kernel)}, m, errors.Join(err, failed)
}

func addrPort(a net.Addr) netip.AddrPort {
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

func (s *server) accept(ctx context.Context) error {
	for {
		conn, err := s.listener.Accept()
		if ctx.Err() != nil {
			return nil // ctx closed the listener
		}
		if err != nil {
			// Files or memory have run out. Wait until others free some.
			s.Log("accept: %v", err)
			if sleep(ctx, time.Second/10) != nil {
				return nil
			}
			continue
		}
		from := addrPort(conn.RemoteAddr()).Addr()
		if !s.stranger(from, 1) {
			conn.Close()
			continue
		}
		s.tasks.Go(func() error {
			defer conn.Close()
			s.greet(ctx, tls.Server(conn, s.config), from)
			return nil
		})
	}
}

// stranger counts a connection without a key in (1) or out (-1). It refuses one that
// exceeds the limits.
func (s *server) stranger(from netip.Addr, change int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := 0
	for _, n := range s.strangers {
		all += n
	}
	if change > 0 && (all >= maxStrangers || s.strangers[from] >= maxStrangersEach) {
		return false
	}
	if s.strangers[from] += change; s.strangers[from] == 0 {
		delete(s.strangers, from)
	}
	return true
}

// greet does the TLS handshake, which nobody passes without the key.
func (s *server) greet(ctx context.Context, conn *tls.Conn, from netip.Addr) {
	limited, cancel := context.WithTimeout(ctx, handshakePatience)
	err := conn.HandshakeContext(limited)
	cancel()
	s.stranger(from, -1)
	if err != nil {
		s.Log("%s: refused: %s", from, plain(err.Error()))
		return
	}
	if !s.serving.TryLock() {
		s.Log("%s: told that another client is served", from)
		s.answer(ctx, conn, &Session{server: s, refused: errors.New("another client is served")}, handshakePatience)
		return
	}
	defer s.serving.Unlock()
	if err := s.serve(ctx, conn, from); err != nil {
		s.Log("%s: %s", from, plain(err.Error()))
	}
	s.Log("%s: the client has gone", from)
	if s.Once {
		s.end()
	}
}

// serve serves a client until it hangs up or its time is over.
func (s *server) serve(ctx context.Context, conn *tls.Conn, from netip.Addr) (err error) {
	c := &Session{server: s, local: addrPort(conn.LocalAddr()), peer: from, left: int64(s.Limits.Data)}
	if c.sampler, err = sample.Open(s.Router); err != nil {
		return err
	}
	s.answer(ctx, conn, c, s.Limits.Session)
	return c.close()
}

// answer answers a client's calls until it hangs up or its time is over. Whatever a call
// started ends with the connection.
func (s *server) answer(ctx context.Context, conn *tls.Conn, c *Session, most time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	ctx, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	c.ctx = ctx
	stop := context.AfterFunc(ctx, func() {
		// Time to answer the current call.
		_ = conn.SetDeadline(time.Now().Add(time.Second)) // a closed connection already has none
	})
	defer stop()
	calls := rpc.NewServer()
	if err := calls.Register(c); err != nil {
		s.Log("%v", err) // only if rpc rejects Session's methods, which a test checks
		return
	}
	calls.ServeConn(&bounded{Conn: conn, left: maxFromClient, ended: gone})
}

// bounded is a connection that reads at most a given number of bytes. It says when it has
// ended.
type bounded struct {
	net.Conn
	left  int
	ended func(error)
}

var errTooMuch = errors.New("the other side says too much")

func (b *bounded) Read(to []byte) (n int, err error) {
	if n, err = b.Conn.Read(to); err == nil {
		if b.left -= n; b.left < 0 {
			err = errTooMuch
		}
	}
	if err != nil {
		b.ended(fmt.Errorf("the client has gone: %w", err))
	}
	return n, err
}
