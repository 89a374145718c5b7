package daemon

import (
	"errors"
	"fmt"

	"weir/internal/fw/dataplane"
)

// errWouldLose ends a start that would lose connections without the administrator's consent.
var errWouldLose = errors.New("nothing was changed; add --lose-states to start anyway")

// confirmLoss asks the administrator before an upgrade loses connections.
func (b *box) confirmLoss(dp *dataplane.Dataplane) error {
	forecast := dp.Forecast()
	if forecast.Converts && !forecast.LosesAny() {
		b.cfg.Log.Info("converting the states of another version of weir; no connection is lost", "connections", forecast.States)
	}
	if !forecast.LosesAny() {
		return nil
	}
	if b.cfg.LoseStates {
		b.cfg.Log.Warn("connections will be lost, as --lose-states allows", "forecast", forecast)
		return nil
	}
	if b.cfg.Ask != nil && b.cfg.Ask(forecast.String()) {
		return nil
	}
	return fmt.Errorf("%s; %w", forecast, errWouldLose)
}
