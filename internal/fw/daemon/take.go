package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
)

const (
	// leavePatience is how long a daemon may take to leave.
	leavePatience = 10 * time.Second
	// otherPatience is how long another start or stop of weir in this namespace may
	// take.
	otherPatience = 30 * time.Second
	// busyPatience is how long another process may take to replace the dataplane.
	busyPatience = 10 * time.Second
	otherPause   = 20 * time.Millisecond
)

// takeFolder takes the run folder's lock, or returns nil if a daemon lives. If the lock
// is held and no daemon answers, another start or stop is under way, and takeFolder waits
// for it.
func takeFolder(ctx context.Context, cfg *Config) (*os.File, error) {
	for deadline := time.Now().Add(otherPatience); ; {
		lock, err := tryFolder(cfg)
		if !errors.Is(err, rundir.ErrLocked) {
			return lock, err
		}
		_, silent := control.NewClient(cfg.Folder).Status(ctx)
		if !errors.Is(silent, control.ErrNoDaemon) {
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

// takeOver takes the run folder from the living daemon. That daemon ends, and its
// dataplane goes on. It may have ended by itself meanwhile, or be too new to answer yet.
// why has %d in place of this process's number.
func takeOver(ctx context.Context, cfg *Config, why string) (*os.File, error) {
	client := control.NewClient(cfg.Folder)
	for deadline := time.Now().Add(leavePatience); ; {
		other, err := client.End(ctx, fmt.Sprintf(why, os.Getpid()))
		if err != nil && !errors.Is(err, control.ErrNoDaemon) {
			return nil, fmt.Errorf("ask the daemon to end: %w", err)
		}
		whom, patience := "a daemon that does not respond", otherPause
		if err == nil {
			whom, patience = fmt.Sprintf("the daemon (process %d)", other.PID), leavePatience
		}
		lock, err := cfg.Folder.Lock(patience)
		if err == nil {
			return lock, nil
		}
		if !errors.Is(err, rundir.ErrLocked) || time.Now().After(deadline) {
			return nil, fmt.Errorf("wait for %s to end: %w", whom, err)
		}
	}
}

// untilFree calls try until no other process is replacing the dataplane, for at most
// patience. If ctx ends first, the error is its cause.
func untilFree(ctx context.Context, patience time.Duration, try func() error) error {
	for deadline := time.Now().Add(patience); ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := try()
		if !errors.Is(err, dataplane.ErrBusy) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("wait %v for another start or load here: %w", patience, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(otherPause):
		}
	}
}
