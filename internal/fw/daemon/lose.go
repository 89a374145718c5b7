package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"

	"weir/internal/fw/dataplane"
)

// errWouldLose ends a start that would lose connections without the administrator's consent.
var errWouldLose = errors.New("nothing was changed; add --lose-states to start anyway")

// A lossError ends a start that the administrator may allow.
type lossError struct{ forecast dataplane.Forecast }

func (e *lossError) Error() string { return fmt.Sprintf("%s; %v", e.forecast, errWouldLose) }

// Unwrap returns errWouldLose.
func (e *lossError) Unwrap() error { return errWouldLose }

// checkLoss returns a lossError if an upgrade would lose connections and nobody has allowed
// that.
func (b *box) checkLoss(dp *dataplane.Dataplane) error {
	forecast := dp.Forecast()
	if forecast.Converts && !forecast.LosesAny() {
		b.cfg.Log.Info("converting the states of another version of weir; no connection is lost", "connections", forecast.States)
	}
	switch {
	case !forecast.LosesAny():
	case b.cfg.LoseStates:
		b.cfg.Log.Warn("connections will be lost, as --lose-states allows", "forecast", forecast)
	case !b.mayLose:
		return &lossError{forecast}
	}
	return nil
}

// startAsking starts, and asks the administrator before an upgrade loses connections. An
// answer may take hours. Nothing is locked until then, so the daemon in force can still
// load and roll back. After the answer the start begins again, because everything may have
// changed.
func (b *box) startAsking(ctx context.Context) (*os.File, error) {
	lock, err := b.startFile(ctx)
	var loss *lossError
	if !errors.As(err, &loss) || b.cfg.Ask == nil {
		return lock, err
	}
	answer := make(chan bool, 1)
	go func() { answer <- b.cfg.Ask(loss.forecast.String()) }()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case b.mayLose = <-answer:
	}
	if !b.mayLose {
		return nil, err
	}
	return b.startFile(ctx)
}
