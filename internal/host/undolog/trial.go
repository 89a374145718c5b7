package undolog

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrUnconfirmed is the error of a trial that nobody confirmed. Everything is as before.
var ErrUnconfirmed = errors.New("not confirmed in time: everything is restored")

// look is how often a trial checks whether it has ended.
const look = 200 * time.Millisecond

// Await waits until a trial has ended, its deadline has come, or ctx ends.
func Await(ctx context.Context, deadline time.Time, ended func() bool) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if ended() {
				return
			}
		}
	}
}

// Confirmable returns why a trial that lasts until a time, zero for none, cannot be
// confirmed now.
func Confirmable(until time.Time, of string) error {
	switch {
	case until.IsZero():
		return errors.New("nothing waits to be confirmed")
	case time.Now().After(until):
		return fmt.Errorf("too late to confirm; %s revert restores everything", of)
	}
	return nil
}
