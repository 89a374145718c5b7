package control

import (
	"context"
	"net/http"
	"net/netip"
	"time"
)

// A Gateway is what the daemon knows of a next hop that it watches.
type Gateway struct {
	Address   netip.Addr    `json:"address"`
	Interface string        `json:"interface,omitempty"` // by which it is reached; "": there is no way to it
	Monitor   string        `json:"monitor"`             // none, arp or ping
	Target    netip.Addr    `json:"target,omitzero"`     // of ping, if it is not the gateway
	Kill      bool          `json:"kill_states,omitempty"`
	State     string        `json:"state"`            // up, down, pending (no answer yet; counts as up) or unwatched
	Since     time.Time     `json:"since,omitzero"`   // it has been up or down
	Loss      float64       `json:"loss"`             // of the last 30 samples, 0 to 1
	RTT       time.Duration `json:"rtt_ns,omitempty"` // of ping
	Why       string        `json:"why,omitempty"`    // the last sample had no answer
}

// Gateways returns the gateways that the daemon watches. The error is ErrNoDaemon if none
// runs.
func (c *Client) Gateways(ctx context.Context) ([]Gateway, error) {
	var all []Gateway
	err := orEnded(c.ask(ctx, answerPatience, http.MethodGet, "/gateways", nil, &all))
	return all, err
}
