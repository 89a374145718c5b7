package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"weir/internal/fw/rundir"
)

// ErrNoDaemon says that no daemon answers in this network namespace.
var ErrNoDaemon = errors.New("no daemon runs in this network namespace; weir run starts one")

// RefusedError is what the daemon said when it refused.
type RefusedError struct {
	Text   string
	Faults bool // diagnostics of the rules, each beginning with its place
}

func (e *RefusedError) Error() string { return e.Text }

// Client asks the daemon of one run folder.
type Client struct {
	http   http.Client
	folder rundir.Folder
}

// NewClient makes a client; it connects when it asks.
func NewClient(f rundir.Folder) *Client {
	socket := f.Socket()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return &Client{http: http.Client{Transport: &http.Transport{DialContext: dial}}, folder: f}
}

// Status asks who answers. The error is ErrNoDaemon if nobody does.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	var s Status
	return &s, c.ask(ctx, http.MethodGet, "/status", nil, &s)
}

// nextPatience is how long after a daemon was asked to leave its successor may
// take to answer.
const nextPatience = 10 * time.Second

// nextPause is how long Load waits before it asks again.
const nextPause = 20 * time.Millisecond

// Load replaces the ruleset. Any error but a broken connection means that
// nothing has changed; ErrNoDaemon that nobody answers. Where a daemon is
// about to leave, the one that takes over is asked.
func (c *Client) Load(ctx context.Context, r LoadRequest) (*LoadResult, error) {
	var a LoadResult
	err := c.ask(ctx, http.MethodPost, "/load", r, &a)
	if !errors.Is(err, ErrEnding) {
		return &a, err
	}
	for deadline := time.Now().Add(nextPatience); time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(nextPause):
		}
		err = c.ask(ctx, http.MethodPost, "/load", r, &a)
		if !errors.Is(err, ErrEnding) && !errors.Is(err, ErrNoDaemon) {
			break
		}
	}
	return &a, err
}

// End asks the daemon to end, and returns who it was. It has not ended yet
// when this returns: the folder's lock tells when it has.
func (c *Client) End(ctx context.Context, why string) (*Status, error) {
	var s Status
	return &s, c.ask(ctx, http.MethodPost, "/leave", EndRequest{why}, &s)
}

func (c *Client) ask(ctx context.Context, method, path string, body, into any) error {
	answer, err := c.stream(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer answer.Close()
	if err := json.NewDecoder(answer).Decode(into); err != nil {
		return fmt.Errorf("read the daemon's answer: %w", err)
	}
	return nil
}

// refusal is the error of an answer that is none.
func refusal(response *http.Response) error {
	var f failure
	if err := json.NewDecoder(response.Body).Decode(&f); err != nil {
		return fmt.Errorf("ask the daemon: it answered %s", response.Status)
	}
	if response.StatusCode == http.StatusServiceUnavailable {
		return ErrEnding
	}
	return &RefusedError{f.Error, f.Faults}
}
