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

func routeTables(mux *http.ServeMux, c Control) {
	mux.HandleFunc("POST /table/change", func(w http.ResponseWriter, r *http.Request) {
		var body TableChange
		if read(w, r, &body) {
			done, err := c.ChangeTable(&body)
			reply(w, done, err)
		}
	})
	mux.HandleFunc("POST /table/read", func(w http.ResponseWriter, r *http.Request) {
		var body TableRead
		if read(w, r, &body) {
			entries, err := c.ReadTable(&body)
			reply(w, entries, err)
		}
	})
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
