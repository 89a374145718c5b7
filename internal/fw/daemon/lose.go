package daemon

import (
	"errors"
	"fmt"

	"weir/internal/fw/dataplane"
)

// errLoses ends a start that would lose connections without the administrator's consent.
var errLoses = errors.New("nothing was changed; to start all the same, add --lose-states")

// agree asks the administrator before an upgrade loses connections.
func (b *box) agree(dp *dataplane.Dataplane) error {
	outlook := dp.Outlook()
	if outlook.Converts && !outlook.Loses() {
		b.cfg.Log.Info("the states are of another version of weir and are converted: all connections go on", "connections", outlook.States)
	}
	if !outlook.Loses() {
		return nil
	}
	if b.cfg.LoseStates {
		b.cfg.Log.Warn("connections are lost, as --lose-states allows", "outlook", outlook)
		return nil
	}
	if b.cfg.Ask != nil && b.cfg.Ask(outlook.String()) {
		return nil
	}
	return fmt.Errorf("%s; %w", outlook, errLoses)
}
