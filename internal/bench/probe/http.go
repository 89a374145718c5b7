package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/selfsigned"
)

// Resources of the server, as in the draft: an endless one, one of a byte, and one that
// accepts any upload.
const (
	pathLarge = "/large"
	pathSmall = "/small"
	pathSlurp = "/slurp"
)

// blockSize is the size of a write, and the limit of unsent bytes in a socket.
const blockSize = 128 << 10

// keepUnsentShort limits the unsent bytes in a socket, so that the socket's own queue is
// not measured as the line's. The draft asks this of both ends (TCP_NOTSENT_LOWAT).
func keepUnsentShort(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, blockSize)
	})
	return errors.Join(err, failed)
}

// server is an HTTP/2 server with a certificate that only its tests trust.
type server struct {
	http  *http.Server
	trust *x509.CertPool
}

func newServer(at Place, address netip.AddrPort) (*server, error) {
	certificate, err := selfsigned.New(address.Addr())
	if err != nil {
		return nil, err
	}
	var listener net.Listener
	err = at(func() (err error) {
		c := net.ListenConfig{Control: keepUnsentShort} // its connections inherit it
		listener, err = c.Listen(context.Background(), "tcp", address.String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc(pathLarge, serveLarge)
	// An error here ends the client's request, and the client reports it.
	mux.HandleFunc(pathSmall, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{'.'}) })
	mux.HandleFunc(pathSlurp, func(_ http.ResponseWriter, q *http.Request) { _, _ = io.Copy(io.Discard, q.Body) })
	trust := x509.NewCertPool()
	trust.AddCert(certificate.Leaf)
	s := &server{trust: trust, http: &http.Server{
		Handler: mux, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13},
		ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: 10 * time.Second,
	}}
	go func() { _ = s.http.ServeTLS(listener, "", "") }() // ends when the server is closed
	return s, nil
}

func (s *server) close() { s.http.Close() }

func serveLarge(w http.ResponseWriter, q *http.Request) {
	block := make([]byte, blockSize)
	for q.Context().Err() == nil {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// opened is a connection and how long each step of opening it took.
type opened struct {
	conn     *tls.Conn
	tcp, tls time.Duration
}

// dial opens a connection to the server. It measures only the time in the client's
// namespace.
func (l *load) dial(ctx context.Context) (*opened, error) {
	t := l.test
	o := &opened{}
	var plain net.Conn
	err := t.Client(func() (err error) {
		d := net.Dialer{Control: keepUnsentShort}
		if t.Source.IsValid() {
			d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(t.Source, 0))
		}
		begin := time.Now()
		plain, err = d.DialContext(ctx, "tcp", t.Address.String())
		o.tcp = time.Since(begin)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", t.Address, err)
	}
	o.conn = tls.Client(plain, &tls.Config{RootCAs: l.trust, ServerName: t.Address.Addr().String(), NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13})
	begin := time.Now()
	if err := o.conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("TLS handshake with %s: %w", t.Address, err), plain.Close())
	}
	o.tls = time.Since(begin)
	return o, nil
}

// client speaks HTTP/2 over one connection.
type client struct {
	http *http.Client
	conn *tls.Conn
	base string
}

func newClient(o *opened, address netip.AddrPort) *client {
	taken := false
	transport := &http.Transport{
		ForceAttemptHTTP2: true, DisableCompression: true,
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			if taken {
				return nil, errors.New("its only connection has ended")
			}
			taken = true
			return o.conn, nil
		},
	}
	return &client{http: &http.Client{Transport: transport}, conn: o.conn, base: "https://" + address.String()}
}

func (c *client) close() {
	c.http.CloseIdleConnections()
	c.conn.Close()
}

// small requests the byte and returns how long it took.
func (c *client) small(ctx context.Context) (time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+pathSmall, nil)
	if err != nil {
		return 0, fmt.Errorf("ask for %s: %w", pathSmall, err)
	}
	begin := time.Now()
	answer, err := c.http.Do(request)
	if err != nil {
		return 0, fmt.Errorf("ask for %s: %w", pathSmall, err)
	}
	defer answer.Body.Close()
	if answer.ProtoMajor != 2 {
		return 0, fmt.Errorf("the server answers in %s, not in HTTP/2", answer.Proto)
	}
	n, err := io.Copy(io.Discard, answer.Body)
	if err == nil && (n != 1 || answer.StatusCode != http.StatusOK) {
		err = fmt.Errorf("%s with %d bytes", answer.Status, n)
	}
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", pathSmall, err)
	}
	return time.Since(begin), nil
}

// load holds the connections that carry the load.
type load struct {
	test  *Responsiveness
	trust *x509.CertPool
	moved atomic.Int64
	fail  func(error) // ends the test. Nothing fails once the test has ended.

	mu      sync.Mutex
	clients []*client
}

func (l *load) bytes() int64 { return l.moved.Load() }

func (l *load) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.clients)
}

// any returns one of the loaded connections at random.
func (l *load) any() *client {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clients[mathrand.IntN(len(l.clients))]
}

func (l *load) add(ctx context.Context, n int) error {
	for range n {
		o, err := l.dial(ctx)
		if err != nil {
			return err
		}
		c := newClient(o, l.test.Address)
		if _, err := c.small(ctx); err != nil { // the connection is set up before it carries load
			c.close()
			return err
		}
		l.mu.Lock()
		l.clients = append(l.clients, c)
		l.mu.Unlock()
		go func() { // ends with ctx, or with the connection
			l.fail(fmt.Errorf("a connection that carried load ended: %w", l.move(ctx, c)))
		}()
	}
	return nil
}

// move moves data until the connection ends. It returns why it ended.
func (l *load) move(ctx context.Context, c *client) error {
	method, path, body := http.MethodGet, pathLarge, io.Reader(nil)
	if l.test.Up {
		method, path, body = http.MethodPost, pathSlurp, endless{ctx, &l.moved}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if l.test.Up { // the body has no end, so this response comes too early
		return fmt.Errorf("the server answered %s before everything was sent", answer.Status)
	}
	block := make([]byte, blockSize)
	for {
		n, err := answer.Body.Read(block)
		l.moved.Add(int64(n))
		if err != nil {
			return err
		}
	}
}

// endless is a body that lasts until its context ends.
type endless struct {
	ctx   context.Context
	moved *atomic.Int64
}

func (e endless) Read(b []byte) (int, error) {
	if e.ctx.Err() != nil {
		return 0, io.EOF
	}
	e.moved.Add(int64(len(b)))
	return len(b), nil
}

func (l *load) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.clients {
		c.close()
	}
}
