package daemon

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// Task is something that runs as long as the daemon does.
type Task interface {
	// Run runs until ctx ends and then returns nil. An error ends the daemon.
	Run(ctx context.Context) error
	// Ready is closed once the task is working.
	Ready() <-chan struct{}
	// String names the task in messages.
	String() string
}

// serve runs the tasks until ctx ends or one of them fails. It calls ready once all tasks
// are ready.
func serve(ctx context.Context, tasks []Task, ready func()) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, t := range tasks {
		group.Go(func() error {
			if err := t.Run(ctx); err != nil {
				return fmt.Errorf("%s: %w", t, err)
			}
			return nil
		})
	}
	group.Go(func() error {
		for _, t := range tasks {
			select {
			case <-t.Ready():
			case <-ctx.Done():
				return nil
			}
		}
		ready()
		return nil
	})
	return group.Wait()
}

// readiness implements the Ready method of a task.
type readiness chan struct{}

func newReadiness() readiness              { return make(chan struct{}) }
func (r readiness) Ready() <-chan struct{} { return r }
func (r readiness) set()                   { close(r) }
