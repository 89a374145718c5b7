package keeper

import "log/slog"

// A fault is of a record that is written each second, if it has changed. It is told when it begins and when it is over.
type fault struct{ lasts bool }

// tell tells what became of one more attempt.
func (f *fault) tell(log *slog.Logger, record string, err error) {
	switch {
	case err != nil && !f.lasts:
		log.Warn("a record cannot be written; this is tried again each second", "record", record, "error", err)
	case err == nil && f.lasts:
		log.Info("a record can be written again", "record", record)
	}
	f.lasts = err != nil
}
