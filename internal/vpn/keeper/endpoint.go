package keeper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"weir/internal/fw/rundir"
	"weir/pf/resolve"
)

// endpoints are where peers are: the addresses of names, which are looked up in the background, and
// where peers were last seen, which is on disk for the next process.
type endpoints struct {
	path    string
	seen    map[string]netip.AddrPort // by seenKey
	written map[string]netip.AddrPort
	failed  fault

	mu    sync.Mutex
	names map[string]*lookup
}

// lookup is what is known of a name.
type lookup struct {
	addresses []netip.Addr
	had       map[netip.Addr]bool // at any time
	at        int                 // that was tried last
	asking    bool
	asked     time.Time
}

// lookupPause is the least time between two questions for a name.
const lookupPause = 5 * time.Second

// lookupTime is how long a question may take.
const lookupTime = 10 * time.Second

// read reads where peers were last seen.
func (e *endpoints) read(path string, log *slog.Logger) {
	e.path, e.seen, e.names = path, map[string]netip.AddrPort{}, map[string]*lookup{}
	if err := rundir.ReadJSON(path, &e.seen); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("read where peers were", "error", err)
	}
	e.written = maps.Clone(e.seen)
}

// write writes where peers were last seen, if that has changed.
func (e *endpoints) write(log *slog.Logger) {
	if maps.Equal(e.seen, e.written) {
		return
	}
	err := rundir.WriteJSON(e.path, e.seen)
	if e.failed.tell(log, "where peers are", err); err != nil {
		return
	}
	e.written = maps.Clone(e.seen)
}

// seenKey tells peers apart. With another endpoint in its statement a peer is looked for there.
func seenKey(tunnel string, p *resolve.Peer) string {
	return fmt.Sprintf("%s %s %s %d", tunnel, p.Key, p.Endpoint, p.Port)
}

func (e *endpoints) note(tunnel string, p *resolve.Peer, at netip.AddrPort) {
	e.seen[seenKey(tunnel, p)] = at
}

// first returns where a peer may be: where it was last seen, or where its statement says. It is not
// valid if the name has yet to be looked up.
func (e *endpoints) first(tunnel string, p *resolve.Peer) netip.AddrPort {
	if at, ok := e.seen[seenKey(tunnel, p)]; ok {
		return at
	}
	return e.next(p.Endpoint, p.Port)
}

// mostHad is how many addresses of a name are remembered that it has no more.
const mostHad = 256

// left reports whether an endpoint of a statement is a name which had an address and has it no more, as far as is known. It asks again.
func (e *endpoints) left(endpoint string, port uint16, at netip.AddrPort) bool {
	if _, err := netip.ParseAddr(endpoint); err == nil || at.Port() != port {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lookup(endpoint)
	return l.had[at.Addr()] && len(l.addresses) > 0 && !slices.Contains(l.addresses, at.Addr())
}

// lookup returns what is known of a name, and asks for it unless that was done just before. The lock is held.
func (e *endpoints) lookup(name string) *lookup {
	l := e.names[name]
	if l == nil {
		l = &lookup{at: -1, had: map[netip.Addr]bool{}}
		e.names[name] = l
	}
	if !l.asking && time.Since(l.asked) >= lookupPause {
		l.asking, l.asked = true, time.Now()
		go e.ask(name, l)
	}
	return l
}

// next returns the next of the addresses that an endpoint of a statement has.
func (e *endpoints) next(endpoint string, port uint16) netip.AddrPort {
	if endpoint == "" {
		return netip.AddrPort{}
	}
	if a, err := netip.ParseAddr(endpoint); err == nil {
		return netip.AddrPortFrom(a, port)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lookup(endpoint)
	if len(l.addresses) == 0 {
		return netip.AddrPort{}
	}
	l.at = (l.at + 1) % len(l.addresses)
	return netip.AddrPortFrom(l.addresses[l.at], port)
}

func (e *endpoints) ask(name string, l *lookup) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	e.mu.Lock()
	defer e.mu.Unlock()
	l.asking = false
	if err != nil {
		return // the addresses of before are better than none
	}
	l.addresses = l.addresses[:0]
	for _, a := range found {
		l.addresses = append(l.addresses, a.Unmap())
	}
	if len(l.had) > mostHad {
		clear(l.had)
	}
	for _, a := range l.addresses {
		l.had[a] = true
	}
}
