package daemon

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/dataplane"
)

func TestUntilFree(t *testing.T) {
	busy := fmt.Errorf("lock x: %w", dataplane.ErrBusy)
	broken := errors.New("broken")
	for _, test := range []struct {
		name     string
		patience time.Duration
		answers  []error // results of the tries; the last one repeats
		tries    int     // at least this many
		want     error
	}{
		{"free", time.Minute, []error{nil}, 1, nil},
		{"free after a while", time.Minute, []error{busy, busy, nil}, 3, nil},
		{"broken after a while", time.Minute, []error{busy, broken}, 2, broken},
		{"never free", 5 * otherPause, []error{busy}, 2, dataplane.ErrBusy},
	} {
		t.Run(test.name, func(t *testing.T) {
			tries := 0
			err := untilFree(t.Context(), test.patience, func() error {
				answer := test.answers[min(tries, len(test.answers)-1)]
				tries++
				return answer
			})
			if !errors.Is(err, test.want) || tries < test.tries {
				t.Errorf("%v after %d tries; want %v after %d", err, tries, test.want, test.tries)
			}
		})
	}
}

// A daemon that is asked to leave stops waiting: the process that asks it holds what it
// waits for.
func TestUntilFreeEndsWithTheDaemon(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	started := time.Now()
	err := untilFree(ctx, time.Minute, func() error {
		cancel(control.ErrEnding)
		return dataplane.ErrBusy
	})
	if !errors.Is(err, control.ErrEnding) || time.Since(started) > 10*time.Second {
		t.Errorf("%v after %v, want ErrLeaving at once", err, time.Since(started))
	}
}
