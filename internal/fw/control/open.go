package control

import (
	"context"
	"errors"
	"net/http"
)

// Opening is what pfctl does to pf as a whole.
type Opening string

// What pfctl does: -d, -e, and what -F names.
const (
	Disable       Opening = "disable"
	Enable        Opening = "enable"
	FlushRules    Opening = "rules"
	FlushNAT      Opening = "nat"
	FlushEthernet Opening = "ethernet"
	FlushOptions  Opening = "Reset"
	FlushAll      Opening = "all" // what the rule file says, but its options; not states and sources
)

// ErrMayNotOpen means that the rules in force do not allow pfctl to open the box.
var ErrMayNotOpen = errors.New("this would open the box, and the rules in force do not say set pfctl-may-open yes")

// OpenRequest is the body of POST /open.
type OpenRequest struct {
	Do Opening `json:"do"`
}

// Open does what pfctl asks for. After any error but ErrSilent, nothing has changed.
func (c *Client) Open(ctx context.Context, what Opening) error {
	var done struct{}
	return c.ask(ctx, loadPatience, http.MethodPost, "/open", OpenRequest{what}, &done)
}
