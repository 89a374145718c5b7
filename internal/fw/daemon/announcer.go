package daemon

import (
	"context"
	"net"
	"sync/atomic"

	"weir/internal/pppoe/advertise"
)

// An announcer tells the hosts of one interface what they have.
type announcer struct {
	name    string
	link    *advertise.Link
	states  chan advertise.State
	cancel  context.CancelFunc
	done    chan struct{}
	faulted atomic.Bool
}

// newAnnouncer begins to announce. The first fault is reported, and ends it.
func newAnnouncer(name string, fault func(error)) (*announcer, error) {
	link, err := advertise.Open(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &announcer{name: name, link: link, states: make(chan advertise.State, 1), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		link.Run(ctx, a.states, func(err error) {
			if !a.faulted.Swap(true) {
				fault(err)
			}
		})
	}()
	return a, nil
}

// works says whether the interface is still the one, and messages could be sent.
func (a *announcer) works() bool {
	nic, err := net.InterfaceByName(a.name)
	return err == nil && nic.Index == a.link.Index() && !a.faulted.Load()
}

// set says what is announced from now on.
func (a *announcer) set(s advertise.State) {
	for {
		select {
		case a.states <- s:
			return
		case <-a.states:
		}
	}
}

func (a *announcer) close() {
	a.cancel()
	<-a.done
	a.link.Close() //nolint:errcheck // nothing was left to be written
}
