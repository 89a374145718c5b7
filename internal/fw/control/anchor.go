package control

import (
	"context"
	"net/http"

	"weir/pf/source"
)

// AnchorChange is the body of POST /anchor: what to load into an anchor, or which ones to
// flush.
type AnchorChange struct {
	Load  *source.Anchor `json:"load,omitempty"`
	Flush string         `json:"flush,omitempty"` // path
	Below bool           `json:"below,omitempty"` // flush: all anchors below the path instead of this one
	Kind  source.Kind    `json:"kind,omitempty"`  // flush: only rules of this kind; empty: all
	NoDNS bool           `json:"no_dns,omitempty"`
	Check bool           `json:"check,omitempty"` // change nothing: only say what would be wrong
}

// AnchorChanged is the result.
type AnchorChanged struct {
	LoadResult
	Flushed []string `json:"flushed,omitempty"` // the paths of anchors that have lost their rules
	Lines   []string `json:"lines,omitempty"`   // of a check: the rules of the anchor to be loaded, as weir check prints rules
}

// ChangeAnchor changes anchors under traffic. After any error but ErrSilent, nothing has
// changed.
func (c *Client) ChangeAnchor(ctx context.Context, r *AnchorChange) (*AnchorChanged, error) {
	var a AnchorChanged
	return &a, c.ask(ctx, loadPatience, http.MethodPost, "/anchor", r, &a)
}
