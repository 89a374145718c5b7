package tunnel

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"weir/internal/vpn/key"
)

// alias is that of every interface which weir makes for a tunnel. One without it is somebody else's.
const alias = "weir: a WireGuard tunnel"

// ipsecAlias is that of interfaces for IPsec.
const ipsecAlias = "weir: an IPsec tunnel"

// ErrForeign is the error for an interface of that name which weir has not made.
var ErrForeign = errors.New("there is an interface of that name which is not weir's")

// Config is what is asked of a tunnel.
type Config struct {
	Private  key.Secret
	Port     uint16
	CopyDSCP bool  // outer packets have the code point of inner ones
	DSCP     uint8 // else they have this one
	Peers    []Peer
}

// Peer is a peer as it is asked for.
type Peer struct {
	Key       key.Public
	Preshared key.Secret     // zero: none
	Endpoint  netip.AddrPort // not valid: where it last came from
	Allowed   []netip.Prefix
	Keepalive uint16 // seconds; 0: none
	Wide      int    // ports of a wide link, if the other end is a weir that has it; less than 2: it is none
}

// State is what an engine tells of a peer.
type State struct {
	Key       key.Public
	Endpoint  netip.AddrPort // not valid: unknown
	Interface int            // the index of the one that packets to it leave by; 0: routes decide
	Local     netip.Addr     // the address that they come from; not valid: routes decide
	Mark      uint32         // that they have for the rules for routing
	Handshake time.Time      // the last; zero: none yet
	Received  uint64         // bytes of packets from the peer, with what WireGuard adds
	Sent      uint64
	Error     string    // what last went wrong; empty: nothing
	ErrorTime time.Time // when
	Wide      *Wide     // nil: the link is not to be wide
	Refused   *Refused  // nil: none, or the engine does not tell
	Behind    *Behind   // nil likewise
}

// Behind are first messages of handshakes that were dropped, as the last one that counted has a later time: the peer's clock has gone back, or
// somebody sends messages of the peer again.
type Behind struct {
	Messages uint64    `json:"messages"`
	Theirs   time.Time `json:"theirs"` // that the last of them has
	Last     time.Time `json:"last"`   // that the last one had that counted
	Time     time.Time `json:"time"`   // when it was dropped
}

// Refused are packets of a peer that were dropped, as their source is in none of its allowed networks.
type Refused struct {
	Packets uint64     `json:"packets"`
	Source  netip.Addr `json:"source"` // of the last
	Time    time.Time  `json:"time"`
}

// A Stranger is somebody who has begun a handshake with this end, which no peer has.
type Stranger struct {
	From netip.AddrPort `json:"from"`
	Key  *key.Public    `json:"public_key,omitempty"` // nil: the handshake was for another public key than this end's
	Time time.Time      `json:"time"`
}

// A Doorkeeper is an engine that knows who has begun handshakes in vain.
type Doorkeeper interface {
	// Strangers returns them, the last one at the end.
	Strangers() []Stranger
}

// Wide is what is known of a link that is to have several ports.
type Wide struct {
	Wanted int    `json:"wanted"`          // ports, the first among them
	Ports  []Port `json:"ports"`           // those that both ends have, the first among them
	Used   int    `json:"used"`            // how many of these carry something
	Why    string `json:"why,omitempty"`   // it is not all that are wanted
	Fewer  bool   `json:"fewer,omitempty"` // as the other end has fewer, and all of these are used: no fault
}

// Port is one of a wide link.
type Port struct {
	Port     uint16         `json:"port"` // of this end
	Endpoint netip.AddrPort `json:"endpoint,omitzero"`
	Works    bool           `json:"works"`
	Sent     uint64         `json:"sent_bytes"`
	Received uint64         `json:"received_bytes"`
}

// At is where a peer is, and how it is reached.
type At struct {
	Remote    netip.AddrPort
	Interface int // the index of the one that packets leave by; 0: routes decide
}

// Reach is what an engine knows of how a peer that is held can be reached.
type Reach struct {
	At             At
	Sent, Received uint64        // bytes, probes not counted as sent
	Stray          time.Time     // when a packet came last by another way
	Answered       bool          // the last probe
	Took           time.Duration // the answer
}

// A Holder is an engine that can choose by which of several ways a peer is reached.
type Holder interface {
	// Hold has a peer be reached by one way. Packets that come by others do not change that.
	Hold(k key.Public, at At, others []netip.AddrPort) error
	// Probe begins a handshake to see whether a way works, or the one in use. It reports whether it was begun.
	Probe(k key.Public, apart *At) (begun bool, err error)
	// Recall sends something by the way in use.
	Recall(k key.Public)
	// Reach tells how a peer can be reached; false: it is not there.
	Reach(k key.Public) (Reach, bool)
}

// A Follower is an engine that sends by the interface that a peer's last packet came by. The kernel's is none: it follows the routes.
type Follower interface {
	// Lead has what is sent to a peer leave by the interface that the routes lead by, also when packets of it come by others.
	Lead(k key.Public, by int)
}

// A Stamper is an engine whose first messages of handshakes have times that it can be told of. The kernel's have the clock's.
type Stamper interface {
	// StampAfter has them be later than a time.
	StampAfter(t time.Time)
	// Stamped returns the latest that one had; zero: there was none.
	Stamped() time.Time
}

// An Engine encrypts and decrypts the packets of one tunnel. Its methods are called one at a time.
type Engine interface {
	// Name is what the configuration calls the engine.
	Name() string
	// Apply has the tunnel be as c says. Peers that stay as they were keep their sessions.
	Apply(c *Config) error
	// States tells of the peers.
	States() ([]State, error)
	// Move has the peer be at another endpoint.
	Move(k key.Public, to netip.AddrPort) error
	// Greet begins a handshake with a peer whose endpoint is known.
	Greet(k key.Public) error
	// Renew has other keys be agreed on with a peer, at the latest when something is sent to it.
	Renew(k key.Public) error
	// Failed is closed when the engine has ended by itself.
	Failed() <-chan struct{}
	// Close ends the engine. The interface stays.
	Close()
}

// A Question is an echo request to an address behind a peer.
type Question struct {
	Peer     key.Public
	From, To netip.Addr
	Size     int
	Wait     time.Duration // for the answer; 0: not at all
}

// A Prober is an engine that asks. Its methods may be called at any time.
type Prober interface {
	// Ask sends a request, and waits for the answer. No router cuts what it sends, if the engine can do that.
	Ask(ctx context.Context, q *Question) (took time.Duration, answered bool)
	// Resize says how large the interface's packets are now.
	Resize(mtu int)
	// Cut has routers cut the engine's messages over IPv4, or not. It reports whether that can be chosen.
	Cut(on bool) bool
	// Beyond reports whether the engine can ask with packets that are too large for the interface.
	Beyond() bool
}
