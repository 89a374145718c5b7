package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"weir/internal/api"
)

const (
	// leavePatience is how long a daemon that was asked to leave may take.
	leavePatience = 10 * time.Second
	// otherPatience is how long another start or stop of weir in this namespace
	// may take.
	otherPatience = 30 * time.Second
	otherPause    = 20 * time.Millisecond
)

// takeFolder takes the run folder's lock, or returns nil where a daemon lives.
// A lock that is held and no daemon that answers are another start or stop,
// which is waited for.
func takeFolder(ctx context.Context, cfg *Config) (*os.File, error) {
	for deadline := time.Now().Add(otherPatience); ; {
		lock, err := tryFolder(cfg)
		if !errors.Is(err, api.ErrLocked) {
			return lock, err
		}
		_, silent := api.NewClient(cfg.Folder).Status(ctx)
		if !errors.Is(silent, api.ErrNoDaemon) {
			return nil, silent
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("wait for another start or stop here: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(otherPause):
		}
	}
}

func tryFolder(cfg *Config) (lock *os.File, err error) {
	err = shareRoot(func() error {
		lock, err = cfg.Folder.Lock(0)
		return err
	})
	if err != nil && lock != nil {
		lock.Close()
		lock = nil
	}
	return lock, err
}

// takeOver takes the run folder from the daemon that lives: that ends, and its
// dataplane goes on. It may have ended by itself meanwhile. why has %d in the
// place of this process's number.
func takeOver(ctx context.Context, cfg *Config, why string) (*os.File, error) {
	other, err := api.NewClient(cfg.Folder).Leave(ctx, fmt.Sprintf(why, os.Getpid()))
	if err != nil && !errors.Is(err, api.ErrNoDaemon) {
		return nil, fmt.Errorf("ask the daemon to leave: %w", err)
	}
	lock, err := cfg.Folder.Lock(leavePatience)
	if err != nil {
		return nil, fmt.Errorf("wait for the daemon (process %d) to leave: %w", other.PID, err)
	}
	return lock, nil
}
