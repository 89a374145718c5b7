package ipsec

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"github.com/strongswan/govici/vici"
	"golang.org/x/sys/unix"
)

// Socket is where charon of the distributions listens.
const Socket = "/run/charon.vici"

// errNone means that no charon runs, so nobody knows what one was given.
var errNone = errors.New("no charon listens")

// How long charon may take to accept, to answer, and to begin a connection, for which it may ask the DNS.
const (
	dialPatience   = 2 * time.Second
	answerPatience = 5 * time.Second
	beginPatience  = 2 * time.Minute
)

// A client asks one charon. Its methods are called one at a time.
type client struct {
	session *vici.Session
	version string
}

// dial connects to charon, and asks for its version.
func dial(ctx context.Context, socket string) (*client, error) {
	s, err := open(socket)
	if err != nil {
		return nil, err
	}
	c := &client{session: s}
	m, err := c.call(ctx, "version", nil)
	if err != nil {
		s.Close()
		return nil, err
	}
	c.version = text(m, "version")
	return c, nil
}

// open connects to charon. One of another network namespace is refused: it would set up the tunnels there.
func open(socket string) (*vici.Session, error) {
	s, err := vici.NewSession(vici.WithDialContext(func(ctx context.Context, _, _ string) (net.Conn, error) {
		d := net.Dialer{Timeout: dialPatience}
		return d.DialContext(ctx, "unix", socket)
	}))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return nil, fmt.Errorf("%w on %s: install strongswan-swanctl and charon-systemd and start strongswan.service, or name its socket with --vici", errNone, socket)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("connect to charon: %w: %s belongs to another user, so charon has to run as root, or weir-vpn.service needs the group of the socket (SupplementaryGroups=)", err, socket)
	case err != nil:
		return nil, fmt.Errorf("connect to charon: %w", err)
	}
	if err := listensHere(socket); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// accepts is in the flags of a socket that listens. One that has accepted has the same path, and is in
// the network namespace of the other end.
const accepts = "00010000"

// listensHere reports whether the listener of a socket is in this network namespace: the kernel lists
// the others elsewhere.
func listensHere(socket string) error {
	list, err := os.ReadFile("/proc/self/net/unix")
	if err != nil {
		return fmt.Errorf("list sockets: %w", err)
	}
	wanted, err := os.Stat(socket)
	if err != nil {
		return fmt.Errorf("find charon's socket: %w", err)
	}
	for _, line := range strings.Split(string(list), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 8 || fields[3] != accepts || !strings.HasPrefix(fields[7], "/") {
			continue
		}
		if is, err := os.Stat(fields[7]); err == nil && os.SameFile(is, wanted) {
			return nil
		}
	}
	return fmt.Errorf("the charon that listens on %s is in another network namespace: start one in this, and name its socket with --vici", socket)
}

func (c *client) Close() { c.session.Close() }

// call asks for one thing.
func (c *client) call(ctx context.Context, command string, in section) (*vici.Message, error) {
	patience := answerPatience
	if command == "initiate" {
		patience = beginPatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m, err := c.session.Call(ctx, command, in.message())
	if err != nil && m != nil { // charon has refused
		return nil, &refusal{command, text(m, "errmsg")}
	}
	if err != nil {
		return nil, fmt.Errorf("ask charon (%s): %w", command, err)
	}
	return m, nil
}

// A refusal is what charon said no to. It is still there.
type refusal struct{ command, why string }

func (r *refusal) Error() string { return fmt.Sprintf("charon refuses %s: %s", r.command, r.why) }

// list asks for the names in a list.
func (c *client) list(ctx context.Context, command, key string) (map[string]bool, error) {
	m, err := c.call(ctx, command, nil)
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	names, _ := m.Get(key).([]string) // an empty list is left out
	for _, n := range names {
		all[n] = true
	}
	return all, nil
}

// associations asks for what keys there are for a connection. With only idle, charon leaves out what it
// works on; otherwise it waits for that, of other connections, too.
func (c *client) associations(ctx context.Context, name string, onlyIdle bool) (all []*vici.Message, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	for m, err := range c.session.CallStreaming(ctx, "list-sas", "list-sa", section{{"ike", name}, {"noblock", yes(onlyIdle)}}.message()) {
		if err != nil {
			return nil, fmt.Errorf("ask charon (list-sas): %w", err)
		}
		if ike, ok := m.Get(name).(*vici.Message); ok {
			all = append(all, ike)
		}
	}
	return all, nil
}

func text(m *vici.Message, key string) string {
	s, _ := m.Get(key).(string)
	return s
}
