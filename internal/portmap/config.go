package portmap

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"weir/internal/portmap/igd"
	"weir/internal/portmap/mapping"
)

// Rules loads rules into an anchor under traffic.
type Rules interface {
	// Load replaces the rules of the anchor at a path.
	Load(ctx context.Context, path, text string) error
	// Flush removes the rules of the anchor at a path.
	Flush(ctx context.Context, path string, below bool) error
	// Loaded returns how many rules the anchor at a path has, and whether a rule
	// evaluates it.
	Loaded(ctx context.Context, path string) (rules int, called bool, err error)
	// Redirects returns the ports that rules outside the anchor at a path send on where they
	// come in by an interface.
	Redirects(path, on string) ([]mapping.Redirect, error)
	// Connection returns how the other end sees a host's end of a connection, and how long it
	// lives without packets; ok is false if there is none.
	Connection(p mapping.Protocol, host, peer netip.AddrPort) (seen netip.AddrPort, left time.Duration, ok bool, err error)
}

// A Network is what the box has on one interface.
type Network struct {
	Name     string
	Index    int
	MAC      string
	Networks []netip.Prefix // with the box's addresses, not masked
}

// Networks reads the state of the machine.
type Networks interface {
	// Of returns an interface with its addresses.
	Of(name string) (Network, error)
	// Next waits until something may have changed; it fails after Close.
	Next() error
	Close()
	// Same reports whether two neighbours on an interface have one link-layer address.
	Same(index int, a, b netip.Addr) bool
	// Traffic returns what an interface has counted.
	Traffic(name string) igd.Traffic
}

// A Server is the configuration of a running server.
type Server struct {
	mapping.Interfaces
	mapping.Limits
	Anchor      string
	Permissions mapping.Permissions
	External    netip.Addr // that hosts are told; not valid: the first of the wan interface
	Shortest    time.Duration
	Longest     time.Duration
	HTTPPort    uint16
	UPnP, PCP   bool   // which protocols are served
	Others      bool   // a host may map for another
	State       string // file
	Version     string
	Rules       Rules
	Machine     Networks
	Log         *slog.Logger
	Started     func() // is called once the server listens
}

// checkRule is a rule that no packet matches. An anchor without rules is not known to the
// daemon, so an empty one has this while it is checked.
const checkRule = "pass in quick on lo inet proto tcp from 127.0.0.1 to 127.0.0.1 port 1 no state\n"

// Times.
const (
	loadPatience = 30 * time.Second
	lookPause    = 10 * time.Second // between two looks at the anchor
	retryPause   = 2 * time.Second  // after a load that failed
)
