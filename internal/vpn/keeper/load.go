package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sys/unix"

	"weir/internal/host/doctor"
	"weir/internal/host/doctor/collect"
	"weir/pf/resolve"
)

// AskPort is the TCP port, inside a tunnel, at which a peer asks which cores and links are full here, and what this end is
// configured as.
const AskPort = 51820

// Limits of who asks.
const (
	loadInterval = time.Second     // how long the machine is watched for an answer
	loadFresh    = 2 * time.Second // for which an answer is given again
	loadAsking   = 8               // connections at an address at the same time
	loadPatience = 5 * time.Second
	mostLoad     = 1 << 20 // bytes of an answer
)

// A teller tells peers which cores and links are full here, if their statement has show-load, and what this end is
// configured as for them, if it has show-summary. It listens at the addresses of their tunnel, on its interface, so that
// nobody else reaches it.
type teller struct {
	counts  func() []doctor.VPNCount
	summary func(tunnel, peer string) ([]byte, error)
	open    map[place]*told

	mu   sync.Mutex // of the answer
	last *doctor.VPN
	at   time.Time
}

// place is an address of a tunnel's interface.
type place struct {
	tunnel string
	at     netip.Addr
}

// tellLoad has the teller follow the tunnels that there are to be. The lock is held.
func (k *keeper) tellLoad() {
	why := ""
	if err := k.tell.follow(k.wanted.WireGuard); err != nil {
		why = err.Error()
	}
	if why != "" && why != k.untold {
		k.Log.Warn("answer peers that ask", "error", why)
	}
	k.untold = why
}

// told is a place at which peers ask.
type told struct {
	index    int // of the interface, which may be made again
	listener net.Listener
	server   *http.Server

	mu    sync.Mutex
	peers []resolve.Peer // of the tunnel
}

// follow has the teller listen where peers may ask now. What does not work is tried again.
func (t *teller) follow(wanted []resolve.WireGuard) error {
	stay := map[place]bool{}
	var errs []error
	for i := range wanted {
		w := &wanted[i]
		if !slices.ContainsFunc(w.Peers, mayAsk) {
			continue
		}
		l, err := net.InterfaceByName(w.Name)
		if err != nil {
			errs = append(errs, fmt.Errorf("find %s: %w", w.Name, err))
			continue
		}
		for _, a := range w.Addresses {
			p := place{w.Name, a.Addr()}
			stay[p] = true
			if o := t.open[p]; o != nil && o.index == l.Index {
				o.allow(w.Peers)
				continue
			}
			t.close(p)
			errs = append(errs, t.listen(p, l.Index, w.Peers))
		}
	}
	for p := range t.open {
		if !stay[p] {
			t.close(p)
		}
	}
	return errors.Join(errs...)
}

func (t *teller) listen(p place, index int, peers []resolve.Peer) error {
	c := net.ListenConfig{Control: onDevice(p.tunnel)}
	l, err := c.Listen(context.Background(), "tcp", netip.AddrPortFrom(p.at, AskPort).String())
	if err != nil {
		return fmt.Errorf("listen for peers that ask: %w", err)
	}
	o := &told{index: index, listener: netutil.LimitListener(l, loadAsking), peers: peers}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /load", func(w http.ResponseWriter, r *http.Request) {
		if of := o.asks(r); of == nil || !of.ShowLoad {
			http.NotFound(w, r)
			return
		}
		t.answer(w, r, p.tunnel)
	})
	mux.HandleFunc("GET /summary", func(w http.ResponseWriter, r *http.Request) {
		of := o.asks(r)
		if of == nil || !of.ShowSummary {
			http.NotFound(w, r)
			return
		}
		t.summarize(w, p.tunnel, of)
	})
	o.server = &http.Server{Handler: mux, ReadTimeout: loadPatience, WriteTimeout: 2 * loadPatience, IdleTimeout: loadPatience, MaxHeaderBytes: 1 << 12}
	o.server.SetKeepAlivesEnabled(false)
	t.open[p] = o
	go o.server.Serve(o) //nolint:errcheck // it ends when it is closed
	return nil
}

// onDevice has a socket send and receive through one interface only.
func onDevice(name string) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = unix.BindToDevice(int(fd), name) })
		return errors.Join(err, failed)
	}
}

func (t *teller) close(p place) {
	if o := t.open[p]; o != nil {
		o.server.Close() //nolint:errcheck // nobody waits for it
		delete(t.open, p)
	}
}

func (t *teller) closeAll() {
	for p := range t.open {
		t.close(p)
	}
}

func (o *told) allow(peers []resolve.Peer) {
	o.mu.Lock()
	o.peers = peers
	o.mu.Unlock()
}

// Accept takes connections of peers that may ask, and ends others.
func (o *told) Accept() (net.Conn, error) {
	for {
		c, err := o.listener.Accept()
		if err != nil {
			return nil, err
		}
		if of := o.peerAt(c.RemoteAddr().String()); of != nil && mayAsk(*of) {
			return c, nil
		}
		c.Close()
	}
}

func mayAsk(p resolve.Peer) bool { return p.ShowLoad || p.ShowSummary }

// asks returns who asks; nil: nobody knows.
func (o *told) asks(r *http.Request) *resolve.Peer { return o.peerAt(r.RemoteAddr) }

// peerAt finds the peer of an address as the engine does: by its longest network.
func (o *told) peerAt(address string) (of *resolve.Peer) {
	from, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	longest := -1
	for i := range o.peers {
		for _, n := range o.peers[i].Allowed {
			if n.Bits() > longest && n.Contains(from.Addr().Unmap()) {
				longest, of = n.Bits(), &o.peers[i]
			}
		}
	}
	return of
}

// Close closes the listener.
func (o *told) Close() error { return o.listener.Close() }

// Addr returns where it listens.
func (o *told) Addr() net.Addr { return o.listener.Addr() }

// answer tells a peer of its tunnel, and of the cores.
func (t *teller) answer(w http.ResponseWriter, r *http.Request, tunnel string) {
	all, err := t.load(r.Context())
	if err != nil {
		http.Error(w, "the load cannot be read now", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(only(all, tunnel)) //nolint:errcheck // the other end has gone
}

// only leaves out what is of other tunnels.
func only(all *doctor.VPN, tunnel string) *doctor.VPN {
	its := *all
	its.Tunnels = slices.DeleteFunc(slices.Clone(all.Tunnels), func(v doctor.VPNTunnel) bool { return v.Interface != tunnel })
	its.Cores = slices.Clone(all.Cores)
	for i := range its.Cores {
		c := &its.Cores[i]
		c.Runs = slices.DeleteFunc(slices.Clone(c.Runs), func(name string) bool { return !strings.HasPrefix(name, tunnel+":") })
		c.Receives = slices.DeleteFunc(slices.Clone(c.Receives), func(name string) bool {
			return !slices.ContainsFunc(its.Tunnels, func(t doctor.VPNTunnel) bool { return t.Receives(name) })
		})
	}
	return &its
}

// load watches the machine, or returns what it was a moment ago.
func (t *teller) load(ctx context.Context) (*doctor.VPN, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last != nil && time.Since(t.at) < loadFresh {
		return t.last, nil
	}
	s, err := collect.Collect(ctx, collect.Options{Interval: loadInterval, VPN: func() ([]doctor.VPNCount, error) { return t.counts(), nil }})
	if err != nil {
		return nil, err
	}
	t.last, t.at = doctor.Tunnels(s), time.Now()
	return t.last, nil
}

// noAnswer is why a peer does not tell something that an option of its statement has it tell.
func noAnswer(option string) error {
	return fmt.Errorf("it does not tell: it is no weir, its statement of this end has no %s, or its rules block TCP port %d", option, AskPort)
}

// Errors for peers that do not tell.
var (
	ErrNoLoad    = noAnswer("show-load")
	ErrNoSummary = noAnswer("show-summary")
)

// askPeer asks a peer behind a tunnel's interface for something, at an address of its own. What it says is not to be
// trusted. The error for one that does not tell is none.
func askPeer(ctx context.Context, tunnel string, at netip.Addr, path string, none error) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, loadPatience)
	defer cancel()
	dialer := net.Dialer{Control: onDevice(tunnel)}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+netip.AddrPortFrom(at, AskPort).String()+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", none, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostLoad))
	if err != nil || answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w (status %d)", none, answer.StatusCode)
	}
	return text, nil
}

// AskLoad asks a peer which of its cores and links are full.
func AskLoad(ctx context.Context, tunnel string, at netip.Addr) (*doctor.VPN, error) {
	text, err := askPeer(ctx, tunnel, at, "/load", ErrNoLoad)
	if err != nil {
		return nil, err
	}
	var all doctor.VPN
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%w: it is no JSON", ErrNoLoad)
	}
	return &all, nil
}
