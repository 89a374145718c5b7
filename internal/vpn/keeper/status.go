package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/fw/control"
	"weir/internal/fw/rundir"
	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
)

// Status is what is known of a tunnel.
type Status struct {
	Interface string      `json:"interface"`
	Engine    string      `json:"engine,omitempty"` // kernel, userspace or charon; empty: it does not work
	Why       string      `json:"why,omitempty"`    // this engine
	Problem   string      `json:"problem,omitempty"`
	Key       *key.Public `json:"public_key,omitempty"`
	Port      uint16      `json:"port,omitempty"`
	MTU       uint16      `json:"mtu"`
	Fixed     bool        `json:"mtu_fixed,omitempty"` // the configuration says so
	Peers     []Peer      `json:"peers"`
	Site      *Site       `json:"ipsec,omitempty"` // of a tunnel of IPsec, which has no other peers
	// Strangers have begun handshakes with this end, and no peer has their keys. The last one is at the end.
	Strangers []tunnel.Stranger `json:"strangers,omitempty"`
	// Says is what time handshakes say, if that is yet to come.
	Says time.Time `json:"handshakes_say,omitzero"`
}

// Peer is what is known of a peer.
type Peer struct {
	Name      string         `json:"name"`
	Key       string         `json:"public_key"`
	Session   Session        `json:"session"`
	Handshake time.Time      `json:"last_handshake,omitzero"`
	Endpoint  netip.AddrPort `json:"endpoint,omitzero"`
	Received  uint64         `json:"received_bytes"`
	Sent      uint64         `json:"sent_bytes"`
	Allowed   []netip.Prefix `json:"allowed"`
	Routes    []netip.Prefix `json:"routes"` // those of Allowed that weir's routes lead to
	Error     string         `json:"last_error,omitempty"`
	ErrorTime time.Time      `json:"last_error_time,omitzero"`
	Ways      []Way          `json:"ways,omitempty"`  // of a peer that has several, or one that is chosen
	Moved     *Moved         `json:"moved,omitempty"` // the last time, to another way
	Path      *PathMTU       `json:"path_mtu,omitempty"`
	Wide      *tunnel.Wide   `json:"wide,omitempty"` // of a link that is to be wide
	// Refused are packets of the peer that were dropped.
	Refused *tunnel.Refused `json:"refused,omitempty"`
	// Behind are handshakes of the peer that were dropped, as its clock seems to have gone back.
	Behind *tunnel.Behind `json:"behind,omitempty"`
}

// Noticed is for how long what somebody else does wrong counts as the reason why nothing goes. Handshakes are tried
// every 5 s.
const Noticed = time.Minute

// StrangerOf returns who has begun handshakes of late, and may be the peer: he comes from its address, or, if it has none,
// has a key of his own.
func (s *Status) StrangerOf(p *Peer, now time.Time) *tunnel.Stranger {
	for i := len(s.Strangers) - 1; i >= 0; i-- {
		is := &s.Strangers[i]
		if now.Sub(is.Time) < Noticed && (is.From.Addr() == p.Endpoint.Addr() || is.Key != nil && !p.Endpoint.IsValid()) {
			return is
		}
	}
	return nil
}

// Way is what is known of a way to a peer.
type Way struct {
	Endpoint  string         `json:"endpoint"` // as its statement says
	Address   netip.AddrPort `json:"address,omitzero"`
	Interface string         `json:"interface,omitempty"` // that packets leave by
	Used      bool           `json:"used"`
	State     WayState       `json:"state"`
	Answered  time.Time      `json:"last_answer,omitzero"`
	RTT       float64        `json:"rtt_ms,omitempty"` // of the last answer
}

// Moved is when and why another way is used.
type Moved struct {
	Time time.Time `json:"time"`
	Why  string    `json:"why"`
}

// WayState is what a way is good for.
type WayState string

// States of a way.
const (
	WayAnswers WayState = "answers"
	WaySilent  WayState = "silent" // the last probe was lost
	WayDown    WayState = "down"   // its interface is down or missing, or its name has no address
	WayUntried WayState = "untried"
)

// Session is what a peer's session keys are good for.
type Session string

// States of a session.
const (
	NoSession  Session = "none"    // there has been no handshake
	Current    Session = "current" // its keys are in use
	OldSession Session = "expired" // its keys are too old to use
)

// rejectAfter is how old session keys may be: REJECT_AFTER_TIME in section 6.1 of the WireGuard paper.
const rejectAfter = 180 * time.Second

// clockSlack is how much later than now a handshake may seem to be.
const clockSlack = time.Second

// Ahead reports whether the time of a peer's last handshake is yet to come: this end's clock has gone back since. How old the session is,
// is not known then.
func (p *Peer) Ahead(now time.Time) bool { return p.Handshake.Sub(now) > clockSlack }

func sessionOf(handshake, now time.Time) Session {
	switch {
	case handshake.IsZero():
		return NoSession
	case handshake.Sub(now) > clockSlack: // as the kernel's engine has it when the clock has gone back
		return OldSession
	case now.Sub(handshake) < rejectAfter:
		return Current
	}
	return OldSession
}

func socket(f rundir.Folder) string { return filepath.Join(f.VPN(), "control.sock") }

// ErrNotRunning means that weir vpn run does not run in this network namespace.
var ErrNotRunning = errors.New("weir vpn run does not run in this network namespace")

// answerPatience is how long an answer may take.
const answerPatience = 10 * time.Second

// Read asks the process that keeps the tunnels for their status.
func Read(ctx context.Context, f rundir.Folder) (all []Status, err error) {
	err = ask(ctx, f, http.MethodGet, "/status", nil, &all)
	return all, err
}

// ReadLog asks it for what has happened after an event of that number.
func ReadLog(ctx context.Context, f rundir.Folder, after uint64) (log Log, err error) {
	err = ask(ctx, f, http.MethodGet, fmt.Sprintf("/log?after=%d", after), nil, &log)
	return log, err
}

// ask asks the process that keeps the tunnels. What is not found is fs.ErrNotExist.
func ask(ctx context.Context, f rundir.Folder, method, path string, body io.Reader, to any) error {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket(f))
	}}}
	request, err := http.NewRequestWithContext(ctx, method, "http://weir"+path, body)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return ErrNotRunning
	}
	if err != nil {
		return fmt.Errorf("ask weir vpn run: %w", err)
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusNotFound:
		return fs.ErrNotExist
	case answer.StatusCode != http.StatusOK:
		text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<12))
		return errors.Join(fmt.Errorf("weir vpn run: %s", strings.TrimSpace(string(text))), err)
	case to == nil:
		return nil
	}
	if err := json.NewDecoder(answer.Body).Decode(to); err != nil {
		return fmt.Errorf("read the answer of weir vpn run: %w", err)
	}
	return nil
}

// serve answers who asks for the status, until ctx ends.
func (k *keeper) serve(ctx context.Context) error {
	l, err := control.Listen(socket(k.Folder))
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(k.status()) //nolint:errcheck // the other end has gone
	})
	mux.HandleFunc("GET /log", func(w http.ResponseWriter, r *http.Request) {
		after, err := strconv.ParseUint(r.FormValue("after"), 10, 64)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(k.journal.after(after)) //nolint:errcheck // the other end has gone
	})
	k.serveAffinity(mux)
	k.serveReconnect(mux)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: answerPatience}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the status: %w", err)
	}
	return nil
}

// status tells of all tunnels.
func (k *keeper) status() []Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := []Status{}
	now := time.Now()
	for i := range k.wanted.WireGuard {
		all = append(all, k.tunnels[k.wanted.WireGuard[i].Name].status(now))
	}
	for i := range k.wanted.IKEv2 {
		all = append(all, k.sites[k.wanted.IKEv2[i].Name].status())
	}
	return all
}
