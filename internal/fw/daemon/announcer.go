package daemon

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"weir/internal/pppoe/advertise"
)

// An announcer tells the hosts of one interface what they have.
type announcer struct {
	name   string
	begun  time.Time
	link   *advertise.Link
	states chan advertise.State
	cancel context.CancelFunc
	done   chan struct{}
	fault  atomic.Pointer[error] // the first; nil: none
}

// newAnnouncer begins to announce. After the first fault it does not work any more.
func newAnnouncer(name string) (*announcer, error) {
	link, err := advertise.Open(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &announcer{name: name, begun: time.Now(), link: link, states: make(chan advertise.State, 1), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		link.Run(ctx, a.states, func(err error) { a.fault.CompareAndSwap(nil, &err) })
	}()
	return a, nil
}

// works says whether the interface is still the one, and messages could be sent.
func (a *announcer) works() bool { return a.fault.Load() == nil && a.isThere() }

// isThere says whether the interface is still the one.
func (a *announcer) isThere() bool {
	nic, err := net.InterfaceByName(a.name)
	return err == nil && nic.Index == a.link.Index()
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

// A rest is how long nothing is announced on an interface where it could not be sent.
type rest struct {
	until  time.Time
	length time.Duration
	why    error // of the last fault
}

const (
	// firstRest is longer than the least time between two advertisements (RFC 4861 10): the next announcer
	// does not know when the last one was.
	firstRest = 4 * time.Second
	lastRest  = time.Minute
)

// begin follows a fault of an announcer that has worked for a time. It returns whether the fault is news.
func (r *rest) begin(why error, worked time.Duration, now time.Time) (news bool) {
	if worked > lastRest {
		*r = rest{}
	}
	news = r.why == nil || r.why.Error() != why.Error()
	r.length = min(max(2*r.length, firstRest), lastRest)
	r.until, r.why = now.Add(r.length), why
	return news
}
