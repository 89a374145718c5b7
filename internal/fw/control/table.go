package control

import (
	"context"
	"net/http"
	"net/netip"
)

// A TableEntry is an element of a table.
type TableEntry struct {
	Prefix netip.Prefix `json:"prefix"`
	Not    bool         `json:"not,omitempty"` // it excludes the prefix
}

// TableChange is the body of POST /table/change.
type TableChange struct {
	Table  string         `json:"table"`
	Remove []netip.Prefix `json:"remove,omitempty"` // before Put
	Put    []TableEntry   `json:"put,omitempty"`
	Whole  bool           `json:"whole,omitempty"` // the table is to have exactly the entries of Put
}

// TableChanged is the result of a change: how many entries it has changed.
type TableChanged struct {
	Changed int `json:"changed"`
}

// TableRead is the body of POST /table/read.
type TableRead struct {
	Table string `json:"table"`
}

// TableEntries is the result: the entries of a table, in order.
type TableEntries struct {
	Entries []TableEntry `json:"entries"`
}

// ChangeTable changes a table under traffic. An error means that nothing has changed,
// unless it says otherwise.
func (c *Client) ChangeTable(ctx context.Context, r *TableChange) (*TableChanged, error) {
	var a TableChanged
	return &a, c.ask(ctx, changePatience, http.MethodPost, "/table/change", r, &a)
}

// ReadTable returns the entries of a table.
func (c *Client) ReadTable(ctx context.Context, r *TableRead) (*TableEntries, error) {
	var a TableEntries
	return &a, c.ask(ctx, changePatience, http.MethodPost, "/table/read", r, &a)
}
