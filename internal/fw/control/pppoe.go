package control

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"weir/internal/pppoe/line"
)

// PPPoEState is how far a PPPoE interface is.
type PPPoEState string

// States of a PPPoE interface.
const (
	PPPoEStarting PPPoEState = "starting" // a session is being made
	PPPoEUp       PPPoEState = "up"
	PPPoEWaiting  PPPoEState = "waiting" // for the next attempt
	PPPoEDown     PPPoEState = "down"    // by command
	PPPoEFailed   PPPoEState = "failed"  // the box is not ready for it
)

// PPPoE is what the daemon knows of a PPPoE interface.
type PPPoE struct {
	Interface string       `json:"interface"`
	On        string       `json:"on"`
	State     PPPoEState   `json:"state"`
	Since     time.Time    `json:"since,omitzero"`
	Why       string       `json:"why,omitempty"`
	Step      string       `json:"step,omitempty"`   // that the last attempt has not done, as client.Ladder has it
	Quirks    []string     `json:"quirks,omitempty"` // of the provider, likewise
	Small     string       `json:"small,omitempty"`  // why packets are asked for that are smaller than the rules say
	Retry     time.Time    `json:"next_attempt,omitzero"`
	Session   string       `json:"session,omitempty"`
	AC        string       `json:"concentrator,omitempty"`
	Peer      string       `json:"concentrator_mac,omitempty"`
	Auth      string       `json:"authentication,omitempty"`
	MTU       uint16       `json:"mtu,omitempty"`
	MRU       uint16       `json:"mru,omitempty"`
	IPv4      netip.Addr   `json:"ipv4,omitzero"`
	PeerIPv4  netip.Addr   `json:"peer_ipv4,omitzero"`
	IPv6      netip.Addr   `json:"ipv6,omitzero"`
	PeerIPv6  netip.Addr   `json:"peer_ipv6,omitzero"`
	DNS       []netip.Addr `json:"dns,omitempty"`
	Prefix    *PPPoEPrefix `json:"prefix,omitempty"` // nil: none is asked for
	Drops     line.Drops   `json:"drops"`            // of all PPPoE interfaces
	Ended     line.Ends    `json:"ended"`            // likewise
	Log       []PPPoELine  `json:"log"`
}

// PPPoEPrefix is what the provider has delegated.
type PPPoEPrefix struct {
	Why       string            `json:"why,omitempty"` // what was said last, if there is no prefix
	Delegated []DelegatedPrefix `json:"delegated,omitempty"`
	Renew     time.Time         `json:"renew,omitzero"`
	DNS       []netip.Addr      `json:"dns,omitempty"`
	Links     []DelegatedLink   `json:"links"`
}

// DelegatedPrefix is a prefix, and until when hosts use it for new connections, and at all. The zero
// time is never.
type DelegatedPrefix struct {
	Prefix    netip.Prefix `json:"prefix"`
	Preferred time.Time    `json:"preferred_until,omitzero"`
	Valid     time.Time    `json:"valid_until,omitzero"`
}

// DelegatedLink is what the hosts of an interface are told.
type DelegatedLink struct {
	Interface string         `json:"interface"`
	Prefixes  []netip.Prefix `json:"prefixes,omitempty"`
	Withdrawn []netip.Prefix `json:"withdrawn,omitempty"`
	Why       string         `json:"why,omitempty"` // why there is none
}

// PPPoELine is a line of the log of a session.
type PPPoELine struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// PPPoEFrames are the last frames of discovery and of the control protocols, without secrets.
type PPPoEFrames struct {
	Interface string       `json:"interface"`
	On        string       `json:"on"`
	Frames    []PPPoEFrame `json:"frames"`
}

// PPPoEFrame is a frame of Ethernet.
type PPPoEFrame struct {
	Time   time.Time `json:"time"`
	Out    bool      `json:"out"`
	Length int       `json:"length"`
	Data   []byte    `json:"data"` // the first bytes
	Text   string    `json:"text"` // what it says
}

// PPPoEFrames returns the last frames of the PPPoE interfaces.
func (c *Client) PPPoEFrames(ctx context.Context) ([]PPPoEFrames, error) {
	var all []PPPoEFrames
	err := orEnded(c.ask(ctx, answerPatience, http.MethodGet, "/pppoe/frames", nil, &all))
	return all, err
}

// PPPoERequest is the body of POST /pppoe.
type PPPoERequest struct {
	Interface string `json:"interface"`
	Down      bool   `json:"down"` // until the next request; otherwise the session is made anew
}

// PPPoE returns the PPPoE interfaces. The error is ErrNoDaemon if no daemon runs.
func (c *Client) PPPoE(ctx context.Context) ([]PPPoE, error) {
	var all []PPPoE
	err := orEnded(c.ask(ctx, answerPatience, http.MethodGet, "/pppoe", nil, &all))
	return all, err
}

// DialPPPoE makes a session anew, or ends it.
func (c *Client) DialPPPoE(ctx context.Context, r *PPPoERequest) error {
	return c.ask(ctx, answerPatience, http.MethodPost, "/pppoe", r, &struct{}{})
}
