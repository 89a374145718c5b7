package daemon

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"weir/internal/fw/dataplane"
)

// retryFilePause is how long to wait before trying a file that did not load again, if the
// machine has not changed. A host may resolve by then, or the file may exist.
const retryFilePause = 5 * time.Second

// retrier loads the file that the start could not load, as soon as that is possible.
type retrier struct {
	readiness
	box *box
}

func (*retrier) String() string { return "load of the file" }

func (w *retrier) Run(ctx context.Context) error {
	w.set() // the box is filtered meanwhile
	for w.box.isRetrying() {
		if err := w.box.retryFile(ctx); err != nil {
			w.box.cfg.Log.Error("retry the file that did not load", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.box.changed:
			if !sleep(ctx, followPause) {
				return nil
			}
		case <-time.After(retryFilePause):
		}
	}
	<-ctx.Done()
	return nil
}

func (b *box) isRetrying() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.retrying
}

// retryFile loads the present text of the file that did not load at the start, if it
// fits the machine. It is not an error if it does not.
func (b *box) retryFile(ctx context.Context) error {
	wanted, fits := b.cfg.readWanted(ctx)
	if !fits {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.retrying || ctx.Err() != nil { // weir load came first
		return nil
	}
	m, err := b.machine()
	if err != nil {
		return err
	}
	wanted.keepAnchors(&b.source)
	wanted.dropGivenAnchors(m)
	if _, err := wanted.compile(m); err != nil {
		return nil
	}
	err = b.putInForce(wanted, m)
	if errors.Is(err, dataplane.ErrBusy) {
		return err
	}
	b.retrying = false // no retry: no change of the machine helps
	if err != nil {
		b.cfg.Log.Error("the rules do not load", "file", wanted.Name, "error", err)
		return nil
	}
	b.substitute = false
	b.logLoaded()
	return nil
}

// readWanted reads the file again and looks up its hosts. The caller must not hold
// box.mu. The start has already reported what is wrong with the file.
func (cfg *Config) readWanted(ctx context.Context) (wanted Source, fits bool) {
	wanted, err := cfg.readFile()
	if err != nil {
		return Source{}, false
	}
	m, err := readMachine(slog.New(slog.DiscardHandler))
	if err != nil {
		return Source{}, false
	}
	wanted.lookUp(ctx, m)
	_, err = wanted.compile(m)
	return wanted, err == nil
}
