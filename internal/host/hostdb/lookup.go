package hostdb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Limit is how long all look-ups of one file may take together.
const Limit = 5 * time.Second

// errNotAsked is the reason why a host that may exist is not among the remembered ones.
var errNotAsked = errors.New("it has not been looked up")

// Resolver looks up the addresses of a host. net.Resolver implements it.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// DNS looks up hosts. It remembers what it found, so rules keep their meaning when they
// are resolved again. After Again, it looks up hosts that were not found. It is safe for
// concurrent use.
type DNS struct {
	resolver Resolver // nil: no look-ups

	mu    sync.Mutex
	left  time.Duration // rest of the limit
	known map[string]lookupResult
}

type lookupResult struct {
	addrs []netip.Addr
	err   error
}

// NewDNS returns a DNS that uses this machine's resolver.
func NewDNS() *DNS { return Asking(net.DefaultResolver) }

// Asking returns a DNS that asks r. If r is nil, it asks nobody and knows only what it is
// told to remember.
func Asking(r Resolver) *DNS {
	return &DNS{resolver: r, left: Limit, known: make(map[string]lookupResult)}
}

// Again restarts the limit, and forgets which hosts were not found.
func (d *DNS) Again() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = Limit
	for name, a := range d.known {
		if len(a.addrs) == 0 {
			delete(d.known, name)
		}
	}
}

// Known returns the hosts that were found. A nil DNS has none.
func (d *DNS) Known() map[string][]netip.Addr {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	found := make(map[string][]netip.Addr)
	for name, a := range d.known {
		if len(a.addrs) > 0 {
			found[name] = a.addrs
		}
	}
	return found
}

// Remember adds hosts as if the DNS had found them.
func (d *DNS) Remember(hosts map[string][]netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, addrs := range hosts {
		d.known[name] = lookupResult{addrs: addrs}
	}
}

// Recall returns the addresses of a remembered host. It never asks.
func (d *DNS) Recall(name string) ([]netip.Addr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a, ok := d.known[name]; ok {
		return a.addrs, a.err
	}
	if !hostName(name) {
		return nil, nil
	}
	return nil, errNotAsked
}

// Lookup returns the addresses of a host, in the order that the machine prefers.
func (d *DNS) Lookup(name string) ([]netip.Addr, error) {
	return d.LookupContext(context.Background(), name)
}

// LookupContext is Lookup, limited by ctx.
func (d *DNS) LookupContext(ctx context.Context, name string) ([]netip.Addr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a, ok := d.known[name]; ok {
		return a.addrs, a.err
	}
	if !hostName(name) {
		return nil, nil
	}
	if d.resolver == nil {
		return nil, errNotAsked
	}
	if d.left <= 0 {
		return nil, fmt.Errorf("look up %s: look-ups have already taken %v", name, Limit)
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, d.left)
	defer cancel()
	addrs, err := d.resolver.LookupNetIP(ctx, "ip", name)
	d.left -= time.Since(start)
	if err != nil {
		err = reason(err)
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	d.known[name] = lookupResult{addrs, err}
	return addrs, err
}

// reason returns why a look-up failed, without the name, which the caller knows. It
// returns nil if the host does not exist.
func reason(err error) error {
	var dns *net.DNSError
	if !errors.As(err, &dns) {
		return err
	}
	switch {
	case dns.IsNotFound:
		return nil
	case dns.IsTimeout:
		return fmt.Errorf("no answer within %v", Limit)
	}
	return errors.New(dns.Err)
}

// hostName reports whether s can name a host. A mistyped address cannot, and must not be
// looked up.
func hostName(s string) bool {
	const longest = 253 // RFC 1035, 2.3.4
	if s == "" || len(s) > longest {
		return false
	}
	letters := false
	for label := range strings.SplitSeq(strings.TrimSuffix(s, "."), ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		letters = false
		for _, c := range []byte(label) {
			letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
			if !letter && c != '-' && (c < '0' || c > '9') {
				return false
			}
			letters = letters || letter
		}
	}
	return letters // letters in the last label: 10.0.0.256 is no host
}
