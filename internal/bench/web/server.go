package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"weir/internal/lab"
	"weir/internal/selfsigned"
)

// Host is one end of a lab, on which clients or servers run. The zero value is this
// program's own network.
type Host struct {
	Lab  *lab.Lab
	Name string
}

// do runs a function on a thread of the host.
func (h Host) do(f func() error) error {
	if h.Lab == nil {
		return f()
	}
	return h.Lab.Do(h.Name, f)
}

func (h Host) namespace() string {
	if h.Lab == nil {
		return "this network"
	}
	return h.Lab.Namespace(h.Name)
}

// maxObject is the largest object of a server, in bytes.
const maxObject = 16 << 20

// Server answers GET /N with an object of N bytes.
type Server struct {
	plain, secure netip.AddrPort
	http          http.Server
	done          chan error
	serving       int
}

// content is the text that objects are cut from.
var content = []byte(strings.Repeat("weir measures what it says. ", 1<<12))

// StartServer listens on two ports of a host's address: one for HTTP, one for HTTPS with
// a certificate of its own (ECDSA P-256, as RFC 9411 recommends).
func StartServer(h Host, addr netip.Addr) (*Server, error) {
	certificate, err := selfsigned.New(addr)
	if err != nil {
		return nil, err
	}
	s := &Server{done: make(chan error, 2), http: http.Server{Handler: http.HandlerFunc(serve), ErrorLog: log.New(io.Discard, "", 0)}}
	for _, secure := range []bool{false, true} {
		l, err := s.listen(h, addr)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		if secure {
			s.secure = l.Addr().(*net.TCPAddr).AddrPort()
			l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
		} else {
			s.plain = l.Addr().(*net.TCPAddr).AddrPort()
		}
		s.serving++
		go func() { s.done <- s.http.Serve(l) }()
	}
	return s, nil
}

func (s *Server) listen(h Host, addr netip.Addr) (l net.Listener, err error) {
	err = h.do(func() error {
		l, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen in %s: %w", h.namespace(), err)
	}
	return l, nil
}

// Address returns the address of HTTP or HTTPS.
func (s *Server) Address(secure bool) netip.AddrPort {
	if secure {
		return s.secure
	}
	return s.plain
}

// Close ends the server and its connections.
func (s *Server) Close() error {
	err := s.http.Close()
	for range s.serving {
		if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
	}
	s.serving = 0
	return err
}

// serve writes as many bytes as the path says.
func serve(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil || n < 0 || n > maxObject {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(n))
	w.Header().Set("Content-Type", "application/octet-stream")
	for n > 0 {
		written, err := w.Write(content[:min(n, len(content))])
		if err != nil {
			return // the client is gone, and counts that itself
		}
		n -= written
	}
}

// awaitPort waits a moment until a server in another program listens.
func awaitPort(ctx context.Context, h Host, port uint16) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return h.Lab.AwaitListener(ctx, h.Name, port)
}
