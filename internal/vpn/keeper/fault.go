package keeper

import "log/slog"

// A fault is of something that is tried again each second. It is told when it begins and when it is over.
type fault struct{ lasts bool }

// tell tells what became of one more attempt.
func (f *fault) tell(log *slog.Logger, attempt string, err error) {
	switch {
	case err != nil && !f.lasts:
		log.Warn(attempt+"; this is tried again each second", "error", err)
	case err == nil && f.lasts:
		log.Info(attempt + ": it works again")
	}
	f.lasts = err != nil
}
