package control

import (
	"context"
	"net/http"
)

// QueueRate is the body of POST /queue/rate: another rate for the queues of an interface and
// direction, until it is set again or queues with other rates are loaded.
type QueueRate struct {
	Interface string `json:"interface"`
	In        bool   `json:"in,omitempty"`
	Rate      uint64 `json:"rate"`               // bytes per second; 0: that of the rules
	Autorate  bool   `json:"autorate,omitempty"` // nobody has chosen it
}

// QueueRateSet is the result.
type QueueRateSet struct {
	Rate    uint64 `json:"rate"`
	OfRules uint64 `json:"rate_of_rules"`
}

// SetQueueRate sets the rate of queues under traffic. The error is ErrNoDaemon if no daemon runs.
func (c *Client) SetQueueRate(ctx context.Context, r *QueueRate) (*QueueRateSet, error) {
	var a QueueRateSet
	return &a, c.ask(ctx, changePatience, http.MethodPost, "/queue/rate", r, &a)
}
