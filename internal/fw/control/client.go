package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/fw/rundir"
)

// ErrNoDaemon means that no daemon runs in this network namespace.
var ErrNoDaemon = errors.New("no daemon runs in this network namespace; weir run starts one")

// ErrSilent means that a daemon runs but does not answer in time. It may still do what it
// was asked.
var ErrSilent = errors.New("the daemon does not answer")

// RefusedError is the daemon's reason for refusing a request.
type RefusedError struct {
	Text   string
	Faults bool // diagnostics of the rules, each beginning with its place
}

func (e *RefusedError) Error() string { return e.Text }

// Client sends requests to the daemon of one run folder.
type Client struct {
	http   http.Client
	folder rundir.Folder
}

// How long the daemon may take to answer. Under a deadline, a daemon that hangs is an
// error, and no command waits forever.
const (
	answerPatience = 10 * time.Second // it needs nothing but its own state
	changePatience = time.Minute      // a load may be under way
	loadPatience   = 5 * time.Minute  // the kernel verifies programs, on a slow machine
)

// NewClient returns a client. It connects with its first request.
func NewClient(f rundir.Folder) *Client {
	socket := f.Socket()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return &Client{http: http.Client{Transport: &http.Transport{DialContext: dial}}, folder: f}
}

// Status asks which daemon runs. The error is ErrNoDaemon if none does, or if it ends while
// it is asked.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	var s Status
	return &s, orEnded(c.ask(ctx, answerPatience, http.MethodGet, "/status", nil, &s))
}

// orEnded returns ErrNoDaemon for a connection that ended without an answer: so did the
// daemon.
func orEnded(err error) error {
	if errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) || errors.Is(err, io.EOF) {
		return ErrNoDaemon
	}
	return err
}

// nextPatience is how long to wait for the next daemon after one was asked to end.
const nextPatience = 10 * time.Second

// nextPause is how long Load waits before it tries again.
const nextPause = 20 * time.Millisecond

// Load replaces the ruleset. After any error but a broken connection or ErrSilent, nothing
// has changed. The error is ErrNoDaemon if no daemon runs. If a daemon is ending, Load asks
// the one that takes over.
func (c *Client) Load(ctx context.Context, r LoadRequest) (*LoadResult, error) {
	var a LoadResult
	err := c.ask(ctx, loadPatience, http.MethodPost, "/load", r, &a)
	if !errors.Is(err, ErrEnding) {
		return &a, err
	}
	for deadline := time.Now().Add(nextPatience); time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(nextPause):
		}
		err = c.ask(ctx, loadPatience, http.MethodPost, "/load", r, &a)
		if !errors.Is(err, ErrEnding) && !errors.Is(err, ErrNoDaemon) {
			break
		}
	}
	return &a, err
}

// End asks the daemon to end and returns its status. The daemon may still run when End
// returns. It has ended when the folder's lock is free.
func (c *Client) End(ctx context.Context, why string) (*Status, error) {
	var s Status
	return &s, orEnded(c.ask(ctx, answerPatience, http.MethodPost, "/leave", EndRequest{why}, &s))
}

// ask sends a request and reads the answer, which must come within patience.
func (c *Client) ask(ctx context.Context, patience time.Duration, method, path string, body, into any) error {
	within, cancel := context.WithTimeoutCause(ctx, patience, ErrSilent)
	defer cancel()
	answer, err := c.stream(within, method, path, body)
	if err == nil {
		defer answer.Close()
		if err = json.NewDecoder(answer).Decode(into); err != nil {
			err = fmt.Errorf("read the daemon's answer: %w", err)
		}
	}
	if err != nil && errors.Is(context.Cause(within), ErrSilent) {
		return fmt.Errorf("%w within %v", ErrSilent, patience)
	}
	return err
}

// refusal returns the error for a response that is not a success.
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
