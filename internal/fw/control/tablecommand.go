package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"time"
)

// A TableCommand is what to do with a table: a command of pfctl -T.
type TableCommand string

// The commands for tables. TableList is pfctl's -s Tables.
const (
	TableAdd     TableCommand = "add"
	TableDelete  TableCommand = "delete"
	TableReplace TableCommand = "replace"
	TableTest    TableCommand = "test"
	TableExpire  TableCommand = "expire"
	TableFlush   TableCommand = "flush"
	TableZero    TableCommand = "zero"
	TableShow    TableCommand = "show"
	TableKill    TableCommand = "kill"
	TableList    TableCommand = "list"
)

// A TableRequest is the first line of the body of POST /table. The entries follow, one a
// line: a million of them in JSON would take seconds.
type TableRequest struct {
	Table    string        `json:"table,omitempty"`
	Command  TableCommand  `json:"command"`
	Lifetime time.Duration `json:"lifetime_ns,omitempty"` // of TableExpire
	DryRun   bool          `json:"dry_run,omitempty"`     // only says what would be done
	Marks    bool          `json:"marks,omitempty"`       // the result is to have Marks
	Only     bool          `json:"only,omitempty"`        // TableZero: only the Entries, not the whole table
	Given    bool          `json:"given,omitempty"`       // a rule file says what the table holds: a const table may change
	Entries  []TableEntry  `json:"-"`
}

// A Mark is pfctl's letter for what became of an entry.
type Mark byte

// Marks of entries.
const (
	MarkNone      Mark = ' '
	MarkMatch     Mark = 'M'
	MarkAdded     Mark = 'A'
	MarkDeleted   Mark = 'D'
	MarkChanged   Mark = 'C' // it was a "!" entry, and is none now, or the other way round
	MarkCleared   Mark = 'Z'
	MarkDuplicate Mark = 'X' // the request has the prefix twice
	MarkConflict  Mark = 'Y' // the table has the prefix, and only one of both is a "!" entry
)

// A TableResult is the first line of the response. The entries follow, one a line.
type TableResult struct {
	Table   string      `json:"table,omitempty"`   // its name for the daemon and for view.Table
	Created bool        `json:"created,omitempty"` // the table did not exist
	Total   int         `json:"total"`             // entries of the request; of TableExpire: expired ones
	Added   int         `json:"added,omitempty"`
	Deleted int         `json:"deleted,omitempty"`
	Changed int         `json:"changed,omitempty"`
	Matched int         `json:"matched,omitempty"`
	Cleared int         `json:"cleared,omitempty"`
	Marks   string      `json:"marks,omitempty"` // a Mark for each entry of the request
	Found   []string    `json:"found,omitempty"` // TableTest: the entry that decides for each address, or ""
	Tables  []TableInfo `json:"tables,omitempty"`

	// Entries are those of the table (TableShow), or those that are gone (TableReplace,
	// TableExpire).
	Entries []DatedEntry `json:"-"`
}

// A DatedEntry is an entry of a table, and when it was put there or its statistics were
// cleared.
type DatedEntry struct {
	TableEntry
	Since time.Time // in whole seconds; zero: not told
}

// A TableInfo describes a table.
type TableInfo struct {
	Table    string    `json:"table"` // its name for the daemon and for view.Table
	Name     string    `json:"name"`
	Anchor   string    `json:"anchor,omitempty"`
	Entries  int       `json:"entries"`
	Const    bool      `json:"const,omitempty"`
	Persist  bool      `json:"persist,omitempty"`
	Counters bool      `json:"counters,omitempty"`
	Made     bool      `json:"made,omitempty"` // by a command: no file defines it
	Rules    int       `json:"rules"`          // that name it
	Anchors  int       `json:"anchors"`        // that have such rules, or a table of their own of this name
	Cleared  time.Time `json:"cleared"`        // since when it is there, or its statistics were cleared
}

// Table does a command with a table, under traffic. An error means that nothing has
// changed, unless it says otherwise.
func (c *Client) Table(ctx context.Context, r *TableRequest) (*TableResult, error) {
	within, cancel := context.WithTimeoutCause(ctx, changePatience, ErrSilent)
	defer cancel()
	result, err := c.table(within, r)
	if err != nil && errors.Is(context.Cause(within), ErrSilent) {
		return nil, fmt.Errorf("%w within %v", ErrSilent, changePatience)
	}
	return result, err
}

func (c *Client) table(ctx context.Context, r *TableRequest) (*TableResult, error) {
	head, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("ask the daemon: %w", err)
	}
	body := append(head, '\n')
	for i := range r.Entries {
		body = append(r.Entries[i].appendTo(body), '\n')
	}
	answer, err := c.send(ctx, http.MethodPost, "/table", bytes.NewReader(body))
	if err != nil {
		return nil, orEnded(err)
	}
	defer answer.Close()
	result := new(TableResult)
	if result.Entries, err = readTable(answer, result); err != nil {
		return nil, fmt.Errorf("read the daemon's answer: %w", err)
	}
	return result, nil
}

// serveTable handles POST /table.
func serveTable(w http.ResponseWriter, r *http.Request, c Control) {
	request := new(TableRequest)
	entries, err := readTable(http.MaxBytesReader(w, r.Body, maxBody), request)
	if err != nil {
		respond(w, http.StatusBadRequest, failure{Error: "read the request: " + err.Error()})
		return
	}
	request.Entries = make([]TableEntry, len(entries))
	for i := range entries {
		request.Entries[i] = entries[i].TableEntry
	}
	result, err := c.Table(request)
	if err != nil {
		refuse(w, err)
		return
	}
	head, err := json.Marshal(result)
	if err != nil {
		refuse(w, err)
		return
	}
	body := append(head, '\n')
	for i := range result.Entries {
		body = append(result.Entries[i].appendTo(body), '\n')
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(body) // else the peer has disconnected
}

func (e *TableEntry) appendTo(text []byte) []byte {
	if e.Not {
		text = append(text, '!')
	}
	return e.Prefix.AppendTo(text)
}

func (e *DatedEntry) appendTo(text []byte) []byte {
	text = e.TableEntry.appendTo(text)
	if !e.Since.IsZero() {
		text = strconv.AppendInt(append(text, ' '), e.Since.Unix(), 10)
	}
	return text
}

// readTable reads the JSON of the first line into head, and the entries of all others.
func readTable(r io.Reader, head any) ([]DatedEntry, error) {
	text, err := io.ReadAll(bufio.NewReaderSize(r, 1<<20))
	if err != nil {
		return nil, err
	}
	first, rest, _ := bytes.Cut(text, []byte{'\n'})
	d := json.NewDecoder(bytes.NewReader(first))
	d.DisallowUnknownFields()
	if err := d.Decode(head); err != nil {
		return nil, err
	}
	entries := make([]DatedEntry, 0, bytes.Count(rest, []byte{'\n'}))
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte{'\n'})
		e, err := parseDated(string(line))
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func parseDated(line string) (e DatedEntry, err error) {
	if len(line) > 0 && line[0] == '!' {
		e.Not, line = true, line[1:]
	}
	for i := range len(line) {
		if line[i] != ' ' {
			continue
		}
		seconds, err := strconv.ParseInt(line[i+1:], 10, 64)
		if err != nil {
			return e, err
		}
		e.Since, line = time.Unix(seconds, 0), line[:i]
		break
	}
	e.Prefix, err = netip.ParsePrefix(line)
	return e, err
}
