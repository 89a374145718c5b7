package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"weir/internal/killpoint"
)

// Rollback is the record of a load that waits for its confirmation. It is
// written before that load: whoever finds it loads what was before, unless the
// daemon that waits lives.
type Rollback struct {
	Until  time.Time `json:"until"`
	File   string    `json:"file"`             // what was loaded, absolute
	Before Source    `json:"before"`           // what comes back
	Failed string    `json:"failed,omitempty"` // why it has not, though its time is up
}

// Rollback is the file of a load that waits for its confirmation: a Rollback.
func (f Folder) Rollback() string { return f.path("rollback.json") }

// ErrNothingWaits says that there is no load to confirm.
var ErrNothingWaits = errors.New("no load waits for its confirmation")

// ReadRollback reads the record of a load that waits; nil if there is none.
func (f Folder) ReadRollback() (*Rollback, error) {
	var r Rollback
	err := ReadJSON(f.Rollback(), &r)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of a load that waits: %w", err)
	}
	return &r, nil
}

// RemoveRollback removes that record, if there is one.
func (f Folder) RemoveRollback() error {
	if err := killpoint.Remove(f.Rollback()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the record of a load that waits: %w", err)
	}
	return nil
}

// ConfirmAnswer is the answer to a confirmation.
type ConfirmAnswer struct {
	File string `json:"file"` // what stays in force
}

// Confirm keeps the rules in force that wait for their confirmation. The error
// is a *RefusedError if none do. A dead daemon needs none: its record goes.
func (c *Client) Confirm(ctx context.Context) (*ConfirmAnswer, error) {
	var a ConfirmAnswer
	err := c.ask(ctx, http.MethodPost, "/confirm", nil, &a)
	if errors.Is(err, ErrNoDaemon) {
		return c.confirmAlone()
	}
	return &a, err
}

// lookPatience is how long the lock of a folder without a daemon may be held by a start
// elsewhere, which looks whether the folder is a leftover.
const lookPatience = 500 * time.Millisecond

func (c *Client) confirmAlone() (*ConfirmAnswer, error) {
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
	return &ConfirmAnswer{r.File}, c.folder.RemoveRollback()
}

// waiting returns the record of the load that waits, or ErrNothingWaits.
func (c *Client) waiting() (*Rollback, error) {
	r, err := c.folder.ReadRollback()
	if err == nil && r == nil {
		err = ErrNothingWaits
	}
	return r, err
}
