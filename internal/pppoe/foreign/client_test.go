package foreign_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/pppoe/client"
	"weir/internal/pppoe/wire"
)

// running is a client that runs.
type running struct {
	events chan client.Event
	cancel func()
	done   chan error
	mutex  sync.Mutex
	lines  []string
}

func dial(t *testing.T, w *wire.Wire, config client.Config) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{events: make(chan client.Event, 1000), cancel: cancel, done: make(chan error, 1)}
	t.Cleanup(cancel)
	go func() { r.done <- client.Run(ctx, w, &client.Group{}, config, nil, r.tell) }()
	return r
}

func (r *running) tell(e client.Event) {
	r.mutex.Lock()
	r.lines = append(r.lines, fmt.Sprintf("%d %s", e.Kind, e.Text))
	r.mutex.Unlock()
	if e.Kind != client.Note {
		r.events <- e
	}
}

func (r *running) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}

func (r *running) log() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return strings.Join(r.lines, "\n")
}

func (r *running) await(t *testing.T, kind client.Kind) client.Event {
	t.Helper()
	end := time.After(patience)
	for {
		select {
		case e := <-r.events:
			if e.Kind == kind {
				return e
			}
		case <-end:
			t.Fatalf("no event %d:\n%s", kind, r.log())
		}
	}
}

// full awaits a session with both families.
func (r *running) full(t *testing.T) client.Session {
	t.Helper()
	s := r.await(t, client.Up).Session
	for !s.IPv4.IsValid() || s.ID6 == 0 {
		s = r.await(t, client.Changed).Session
	}
	return s
}

// check wants lines in the log.
func (r *running) check(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if log := r.log(); !strings.Contains(log, text) {
			t.Errorf("the log has no %q:\n%s", text, log)
		}
	}
}
