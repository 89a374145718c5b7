package control

import (
	"context"
	"errors"
	"net/http"
	"time"

	"weir/internal/fw/rundir"
)

// ErrNothingWaits says that there is no load to confirm.
var ErrNothingWaits = errors.New("no load waits for its confirmation")

// ConfirmResult is the answer to a confirmation.
type ConfirmResult struct {
	File string `json:"file"` // what stays in force
}

// Confirm keeps the rules in force that wait for their confirmation. The error
// is a *RefusedError if none do. A dead daemon needs none: its record goes.
func (c *Client) Confirm(ctx context.Context) (*ConfirmResult, error) {
	var a ConfirmResult
	err := c.ask(ctx, http.MethodPost, "/confirm", nil, &a)
	if errors.Is(err, ErrNoDaemon) {
		return c.confirmAlone()
	}
	return &a, err
}

// lookPatience is how long the lock of a folder without a daemon may be held by a start
// elsewhere, which looks whether the folder is a leftover.
const lookPatience = 500 * time.Millisecond

func (c *Client) confirmAlone() (*ConfirmResult, error) {
	if _, err := c.waiting(); err != nil {
		return nil, err
	}
	lock, err := c.folder.Lock(lookPatience) // a start here would be about to roll back
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	r, err := c.waiting()
	if err != nil {
		return nil, err
	}
	return &ConfirmResult{r.File}, c.folder.RemoveRollback()
}

// waiting returns the record of the load that waits, or ErrNothingWaits.
func (c *Client) waiting() (*rundir.Rollback, error) {
	r, err := c.folder.ReadRollback()
	if err == nil && r == nil {
		err = ErrNothingWaits
	}
	return r, err
}
