package control

import (
	"context"
	"errors"
	"net/http"
	"time"

	"weir/internal/fw/rundir"
)

// ErrNothingWaits means that there is no load to confirm.
var ErrNothingWaits = errors.New("no load is waiting for confirmation")

// ConfirmResult is the result of a confirmation.
type ConfirmResult struct {
	File string `json:"file"` // what stays in force
}

// Confirm confirms the waiting load, so its rules stay in force. The error is a
// *RefusedError if no load waits. If the daemon is dead, Confirm removes the record of
// the load.
func (c *Client) Confirm(ctx context.Context) (*ConfirmResult, error) {
	var a ConfirmResult
	err := c.ask(ctx, changePatience, http.MethodPost, "/confirm", nil, &a)
	if errors.Is(err, ErrNoDaemon) {
		return c.confirmAlone()
	}
	return &a, err
}

// lookPatience is how long a start in another namespace may hold the lock of a folder
// without a daemon, to see whether the folder is a leftover.
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

// waiting returns the record of the waiting load, or ErrNothingWaits.
func (c *Client) waiting() (*rundir.Rollback, error) {
	r, err := c.folder.ReadRollback()
	if err == nil && r == nil {
		err = ErrNothingWaits
	}
	return r, err
}
