package ftp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// A session is one control connection.
type session struct {
	*Proxy
	log    *slog.Logger
	path   string // of its anchor
	client net.Conn
	server net.Conn

	// The ends as each host knows them: the client connects to called, and the server
	// sees own.
	from, called, real, own netip.AddrPort

	mu     sync.Mutex
	asked  []string // commands whose replies have not come, the oldest first
	secret bool     // the ends speak TLS: nothing can be read

	opening sync.Mutex // held while the anchor changes
	loaded  bool       // it has rules
	port    uint16     // that the proxy has chosen for an active data connection; 0: none
}

// maxAsked is how many commands may wait for their replies: a client and a server that
// conspire must not fill the memory.
const maxAsked = 100

var errUnanswered = fmt.Errorf("more than %d commands have no reply", maxAsked)

func (s *session) run(ctx context.Context) error {
	defer s.end()
	stop := context.AfterFunc(ctx, func() { s.client.Close(); s.server.Close() })
	defer stop()
	failed := make(chan error, 2)
	go func() { failed <- s.relay(ctx, s.client, s.server, s.fromClient) }()
	go func() { failed <- s.relay(ctx, s.server, s.client, s.fromServer) }()
	err := <-failed
	s.client.Close()
	s.server.Close()
	<-failed
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
		return nil
	}
	return err
}

// relay passes lines on, as change returns them.
func (s *session) relay(ctx context.Context, from, to net.Conn, change func(context.Context, string) (string, error)) error {
	r := bufio.NewReaderSize(from, maxLine)
	for {
		if err := from.SetReadDeadline(time.Now().Add(s.Idle)); err != nil {
			return err
		}
		// An end that has agreed to TLS sends no more lines. Its first bytes come after
		// the reply that says so.
		if _, err := r.Peek(1); err != nil {
			return err
		}
		if s.isSecret() {
			return s.copy(r, from, to)
		}
		line, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("a line of %s has more than %d bytes", from.RemoteAddr(), maxLine)
		}
		if err != nil {
			return err
		}
		out, err := change(ctx, string(line))
		if err != nil {
			return err
		}
		if out == "" { // it has been answered
			continue
		}
		if _, err := io.WriteString(to, out); err != nil {
			return err
		}
	}
}

// copy passes bytes on that nobody else can read.
func (s *session) copy(r io.Reader, from, to net.Conn) error {
	buffer := make([]byte, 4096)
	for {
		if err := from.SetReadDeadline(time.Now().Add(s.Idle)); err != nil {
			return err
		}
		n, err := r.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

func (s *session) isSecret() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.secret
}

// fromClient handles a command. An active data connection is prepared now.
func (s *session) fromClient(ctx context.Context, line string) (string, error) {
	word, rest := command(line)
	var at netip.AddrPort
	var err error
	switch word {
	case "PORT":
		at, err = parsePort(rest)
	case "EPRT":
		at, err = parseEPRT(rest)
	default:
		return line, s.ask(word)
	}
	if err == nil && (at.Addr() != s.from.Addr() || at.Port() < 1024) { // no bounce (RFC 2577, 3)
		err = errTarget
	}
	if err != nil {
		return "", s.refuse("501", err)
	}
	port, err := s.active(ctx, at)
	if err != nil {
		return "", s.refuse("425", err)
	}
	if err := s.ask(word); err != nil {
		return "", err
	}
	own := netip.AddrPortFrom(s.own.Addr(), port)
	if word == "PORT" {
		return "PORT " + formatPort(own) + "\r\n", nil
	}
	return "EPRT " + formatEPRT(own) + "\r\n", nil
}

// refuse answers the client in the server's place.
func (s *session) refuse(code string, why error) error {
	s.log.Warn("refused a data connection", "why", why)
	_, err := fmt.Fprintf(s.client, "%s %v\r\n", code, why)
	return err
}

func (s *session) ask(word string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) == maxAsked {
		return errUnanswered
	}
	s.asked = append(s.asked, word)
	return nil
}

// answered returns the command that a reply belongs to.
func (s *session) answered(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Some commands have more replies than one. So what opens a data connection is looked
	// for: no other reply has such a code.
	at := slices.Index(s.asked, map[int]string{227: "PASV", 229: "EPSV"}[n])
	if at < 0 {
		at = 0
	}
	if len(s.asked) == 0 {
		return "" // the greeting, or an end
	}
	word := s.asked[at]
	if n >= 200 { // else another reply follows
		s.asked = s.asked[at+1:]
	}
	if word == "AUTH" && (n == 234 || n == 334) {
		s.secret = true
	}
	return word
}

// fromServer handles a reply. A passive data connection is prepared before the client
// learns its port.
func (s *session) fromServer(ctx context.Context, line string) (string, error) {
	n := code(line)
	if n == 0 {
		return line, nil
	}
	word := s.answered(n)
	var port uint16
	var err error
	switch {
	case n == 227 && word == "PASV":
		var at netip.AddrPort
		at, err = parsePASV(line) // its address may be one that only the server knows
		port = at.Port()
	case n == 229 && word == "EPSV":
		port, err = parseEPSV(line)
	default:
		return line, nil
	}
	if err == nil && port < 1024 {
		err = errTarget
	}
	if err == nil {
		err = s.passive(ctx, port)
	}
	if err != nil {
		s.log.Warn("refused a data connection", "why", err)
		return fmt.Sprintf("425 %v\r\n", err), nil
	}
	called := netip.AddrPortFrom(s.called.Addr(), port)
	if word == "PASV" {
		return "227 Entering Passive Mode (" + formatPort(called) + ")\r\n", nil
	}
	return fmt.Sprintf("229 Entering Extended Passive Mode (|||%d|)\r\n", port), nil
}

// passive lets the client connect to a port of the server.
func (s *session) passive(ctx context.Context, port uint16) error {
	s.opening.Lock()
	defer s.opening.Unlock()
	c := connection{
		from: s.from.Addr(), to: netip.AddrPortFrom(s.called.Addr(), port),
		real: netip.AddrPortFrom(s.real.Addr(), port), as: s.own.Addr(),
	}
	return s.load(ctx, &c, false)
}

// active lets the server connect to a port of the client. It returns the port of the box
// that the server is told.
func (s *session) active(ctx context.Context, at netip.AddrPort) (uint16, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	s.release()
	port, err := s.ports.take()
	if err != nil {
		return 0, err
	}
	s.port = port
	c := connection{from: s.real.Addr(), to: netip.AddrPortFrom(s.own.Addr(), port), real: at, as: s.called.Addr()}
	return port, s.load(ctx, &c, true)
}

func (s *session) load(ctx context.Context, c *connection, keepPort bool) error {
	if err := s.Rules.Load(ctx, s.path, c.rules(keepPort)); err != nil {
		s.log.Error("load the rules of a data connection", "error", err)
		return errors.New("the firewall did not open the data connection")
	}
	s.loaded = true
	s.log.Debug("a data connection", "from", c.from, "to", c.to, "real", c.real, "as", c.as)
	return nil
}

func (s *session) release() {
	if s.port != 0 {
		s.ports.give(s.port)
		s.port = 0
	}
}

// end removes the session's rules. The data connections that they have let through go on.
func (s *session) end() {
	s.release()
	if !s.loaded {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := s.Rules.Flush(ctx, s.path, false); err != nil {
		s.log.Error("remove the rules of a session", "anchor", s.path, "error", err)
	}
}

// plainAddr is the address of a TCP connection's end without IPv4 in IPv6.
func plainAddr(a net.Addr) netip.AddrPort {
	at, err := netip.ParseAddrPort(strings.TrimSpace(a.String()))
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
}
