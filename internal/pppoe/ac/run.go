package ac

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/pppoe/wire"
)

// Running is a concentrator on an interface.
type Running struct {
	mutex  sync.Mutex
	server *Server
	wake   chan struct{}
}

// Do calls f with the server, alone.
func (r *Running) Do(f func(s *Server, now time.Time)) {
	r.mutex.Lock()
	f(r.server, time.Now())
	r.mutex.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// NewRunning makes a concentrator that Run will run. Its MAC has to be the wire's.
func NewRunning(config Config) *Running {
	return &Running{server: New(config), wake: make(chan struct{}, 1)}
}

// Run serves on an interface until ctx ends. The sessions are not told of the end.
func (r *Running) Run(ctx context.Context, w *wire.Wire) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if err := r.pass(w); err != nil {
			return err
		}
		timer.Reset(r.wait())
		select {
		case b, ok := <-w.Frames:
			if !ok {
				return w.Err()
			}
			r.mutex.Lock()
			r.server.Receive(b, time.Now())
			r.mutex.Unlock()
		case <-timer.C:
			r.mutex.Lock()
			r.server.Tick(time.Now())
			r.mutex.Unlock()
		case <-r.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

func (r *Running) pass(w *wire.Wire) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, b := range r.server.Take() {
		if err := w.Send(b); err != nil && !errors.Is(err, unix.ENETDOWN) { // a frame into a line that is down is lost
			return err
		}
	}
	return nil
}

func (r *Running) wait() time.Duration {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if next := r.server.Next(); !next.IsZero() {
		return max(time.Until(next), 0)
	}
	return time.Hour
}
