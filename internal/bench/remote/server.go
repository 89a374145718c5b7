package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"weir/internal/bench/iperf"
	"weir/internal/bench/sample"
)

// DefaultPort is that of the control connection. Data goes to the next one.
const DefaultPort = 5202

// ServerOptions say what a server allows, and for how long.
type ServerOptions struct {
	Listen   string // address and port of the control connection
	DataPort uint16 // of its iperf3, TCP and UDP; 0: the port after Listen's
	Key      Key
	Limits   Limits
	Life     time.Duration // then it ends; 0: it does not
	Once     bool          // it ends after its first client
	// Router is a network namespace by its file that is sampled during runs;
	// "": that of the process. RouterName is what the report calls it.
	Router, RouterName string
	Program            string // what runs, with its version
	// Ready hears the address and port when clients may come; nil: nobody.
	Ready func(netip.AddrPort)
	// Log hears a line for each thing that happens. The address and the texts in
	// it may be printed. nil: nobody.
	Log func(format string, args ...any)
}

// Bounds of what comes without a key.
const (
	maxStrangers     = 32 // connections at once that have not proven anything
	maxStrangersEach = 8  // of one address
)

// server is one that runs.
type server struct {
	ServerOptions
	listener *net.TCPListener
	tool     *iperf.Tool
	machine  Host
	tasks    *errgroup.Group

	mu        sync.Mutex
	strangers map[netip.Addr]int
	unknown   int  // all of them
	busy      bool // a client is served
	served    chan struct{}
}

// Serve answers clients until ctx ends or its life is over. One client at a
// time is served; others are told so.
func Serve(ctx context.Context, o ServerOptions) error {
	if err := o.Limits.Check(); err != nil {
		return err
	}
	config, err := o.Key.config(roleServer, roleClient)
	if err != nil {
		return err
	}
	s, err := newServer(ctx, o)
	if err != nil {
		return err
	}
	ctx, cancel := s.lifetime(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { s.listener.Close() })
	defer stop()
	if o.Ready != nil {
		o.Ready(s.address())
	}
	s.tasks.Go(func() error { return s.accept(ctx, config) })
	if o.Once {
		s.tasks.Go(func() error {
			select {
			case <-s.served:
			case <-ctx.Done():
			}
			cancel()
			return nil
		})
	}
	return s.tasks.Wait()
}

func newServer(ctx context.Context, o ServerOptions) (*server, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	tool, err := iperf.Find(ctx)
	if err != nil {
		return nil, err
	}
	c := net.ListenConfig{}
	l, err := c.Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("wait for clients: %w", err)
	}
	host, err := thisHost()
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s := &server{
		ServerOptions: o, listener: l.(*net.TCPListener), tool: tool, machine: host, tasks: new(errgroup.Group),
		strangers: map[netip.Addr]int{}, served: make(chan struct{}, 1),
	}
	if s.DataPort == 0 {
		if s.DataPort = s.address().Port() + 1; s.DataPort == 0 {
			return nil, errors.Join(errors.New("no port comes after 65535: name one with --data-port"), l.Close())
		}
	}
	sampler, err := sample.Open(o.Router) // to fail now rather than at the first client
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sample %s: %w", o.RouterName, err), l.Close())
	}
	return s, sampler.Close()
}

func (s *server) lifetime(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.Life == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, s.Life)
}

func (s *server) address() netip.AddrPort { return addrPort(s.listener.Addr()) }

func addrPort(a net.Addr) netip.AddrPort {
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

func (s *server) accept(ctx context.Context, config *tls.Config) error {
	for {
		conn, err := s.listener.AcceptTCP()
		if ctx.Err() != nil {
			return nil // the listener is closed by it
		}
		if err != nil {
			// Files or memory have run out; others will give some back.
			s.Log("accept: %v", err)
			if sleep(ctx, time.Second/10) != nil {
				return nil
			}
			continue
		}
		from := addrPort(conn.RemoteAddr()).Addr()
		if !s.admit(from) {
			conn.Close()
			continue
		}
		s.tasks.Go(func() error {
			s.greet(ctx, conn, from, config)
			return nil
		})
	}
}

// admit counts a stranger in, unless there are too many.
func (s *server) admit(from netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unknown >= maxStrangers || s.strangers[from] >= maxStrangersEach {
		return false
	}
	s.unknown++
	s.strangers[from]++
	return true
}

// known counts a stranger out.
func (s *server) known(from netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown--
	if s.strangers[from]--; s.strangers[from] == 0 {
		delete(s.strangers, from)
	}
}

// greet does the TLS handshake: nobody without the key comes further.
func (s *server) greet(ctx context.Context, conn *net.TCPConn, from netip.Addr, config *tls.Config) {
	stranger := sync.OnceFunc(func() { s.known(from) })
	defer stranger()
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if conn.SetDeadline(time.Now().Add(handshakePatience)) != nil {
		return
	}
	secure := tls.Server(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		s.Log("%s: refused: %s", from, plain(err.Error()))
		return
	}
	if conn.SetDeadline(time.Time{}) != nil {
		return
	}
	stranger()
	s.talk(ctx, secure, from)
}

// talk serves an authenticated client, unless another one is served.
func (s *server) talk(ctx context.Context, conn *tls.Conn, from netip.Addr) {
	ctx, cancel := context.WithTimeout(ctx, s.Limits.Session)
	defer cancel()
	line := newLine(conn)
	defer line.close()
	c := &session{server: s, line: line, local: addrPort(conn.LocalAddr()), peer: from, left: int64(s.Limits.Data)}
	if !s.begin() {
		s.Log("%s: told that another client is served", from)
		if err := line.say(&message{Refused: &refused{Why: "another client is served"}}); err != nil {
			s.Log("%s: %v", from, err)
		}
		return
	}
	s.Log("%s: has the key, is served", from)
	err := c.serve(ctx)
	s.end()
	if err == nil {
		s.Log("%s: has gone", from)
		return
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("the time for one client, %s, is over (the server's --max-session)", s.Limits.Session)
	}
	why := plain(err.Error())
	s.Log("%s: %s", from, why)
	if !errors.Is(err, io.EOF) {
		// A client that is not there any more does not hear it.
		_ = line.say(&message{Refused: &refused{Why: why}})
	}
}

func (s *server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		return false
	}
	s.busy = true
	return true
}

func (s *server) end() {
	s.mu.Lock()
	s.busy = false
	s.mu.Unlock()
	select {
	case s.served <- struct{}{}:
	default:
	}
}
