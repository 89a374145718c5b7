package daemon

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"weir/internal/fw/dataplane"
)

// wantedPause is when a file that did not load is tried again if the machine has
// not changed: a host may be found by then, or the file may be there.
const wantedPause = 5 * time.Second

// wanter loads the file that the start could not load, as soon as it can be.
type wanter struct {
	readiness
	box *box
}

func (*wanter) String() string { return "load of the file" }

func (w *wanter) Run(ctx context.Context) error {
	w.set() // the box is filtered meanwhile
	for w.box.isWanting() {
		if err := w.box.loadWanted(ctx); err != nil {
			w.box.cfg.Log.Error("load the file that did not load", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.box.changed:
			if !sleep(ctx, followPause) {
				return nil
			}
		case <-time.After(wantedPause):
		}
	}
	<-ctx.Done()
	return nil
}

func (b *box) isWanting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wanting
}

// loadWanted loads the file that did not load when the daemon started, as it is
// now, if it fits the machine. A file that does not is no error.
func (b *box) loadWanted(ctx context.Context) error {
	wanted, fits := b.cfg.readWanted(ctx)
	if !fits {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.wanting || ctx.Err() != nil { // weir load was first
		return nil
	}
	m, err := look(b.cfg.Log)
	if err != nil {
		return err
	}
	if _, err := wanted.compile(m); err != nil {
		return nil
	}
	err = b.replace(wanted, m)
	if errors.Is(err, dataplane.ErrBusy) {
		return err
	}
	b.wanting = false // not again: nothing on the machine helps
	if err != nil {
		b.cfg.Log.Error("the rules do not load", "file", wanted.Name, "error", err)
		return nil
	}
	b.instead = false
	b.sayLoaded()
	return nil
}

// readWanted reads the file anew and looks its hosts up; the caller does not hold
// box.mu. What is wrong the start has said.
func (cfg *Config) readWanted(ctx context.Context) (wanted Source, fits bool) {
	wanted, err := cfg.readFile()
	if err != nil {
		return Source{}, false
	}
	m, err := look(slog.New(slog.DiscardHandler))
	if err != nil {
		return Source{}, false
	}
	wanted.lookUp(ctx, m)
	_, err = wanted.compile(m)
	return wanted, err == nil
}
