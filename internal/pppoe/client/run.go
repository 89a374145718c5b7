package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	"weir/internal/pppoe/discovery"
	"weir/internal/pppoe/ppp"
	"weir/internal/pppoe/wire"
)

// Command asks a running client for something.
type Command struct {
	Do  Verb
	Ref Ref // of EndSeen: which session

	MTU  uint16 // of Resize
	Anew bool   // of Resize
	Why  error  // of Abandon
}

// Verb says what a client is asked for.
type Verb uint8

// The verbs.
const (
	Renew         Verb = iota + 1 // Machine.Reconnect
	CarrierOn                     // Machine.Carrier
	CarrierOff                    // likewise
	TrafficSeen                   // Machine.Traffic
	EndSeen                       // Machine.Ended
	Resize                        // Machine.Resize
	Leave                         // Run returns, and the session stays
	Abandon                       // Run returns Why: the interface is not what it was
	pollNothing   = time.Hour
	goodByeWithin = 3 * time.Second
)

// Group are the clients of one interface. They do not end each other's sessions as unknown.
// Its zero value is ready; its methods may be called concurrently.
type Group struct {
	mutex sync.Mutex
	refs  map[*Machine]Ref
}

// Has says whether a session is one of the group's.
func (g *Group) Has(ref Ref) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	for _, r := range g.refs {
		if r == ref {
			return true
		}
	}
	return false
}

// note keeps what session a machine has.
func (g *Group) note(m *Machine) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.refs == nil {
		g.refs = map[*Machine]Ref{}
	}
	if ref, ok := m.Ref(); ok {
		g.refs[m] = ref
	} else {
		delete(g.refs, m)
	}
}

// Run keeps a session up on an interface until ctx ends, then ends it properly, which takes
// up to 3 s. MAC, Interface and Foreign of config are set from the wire and the group. Events
// are given to tell in their order, from this goroutine.
func Run(ctx context.Context, w *wire.Wire, g *Group, config Config, commands <-chan Command, tell func(Event)) error {
	config.MAC, config.Interface, config.Foreign = w.MAC(), w.Interface.Index, g.Has
	m := New(config)
	m.Start(time.Now())
	done := ctx.Done()
	var end <-chan time.Time
	timer := time.NewTimer(pollNothing)
	defer timer.Stop()
	for {
		g.note(m)
		pass(m, w, tell)
		if end != nil && m.phase == off {
			return nil
		}
		timer.Reset(wait(m.Next()))
		select {
		case b, ok := <-w.Frames:
			if !ok {
				return fmt.Errorf("receive on %s: %w", w.Interface.Name, w.Err())
			}
			if m.concerns(b) {
				tellFrame(b, false, tell)
			}
			m.Receive(b, time.Now())
		case <-timer.C:
			m.Tick(time.Now())
		case c := <-commands:
			if c.Do == Leave || c.Do == Abandon {
				return c.Why
			}
			obey(m, c)
		case <-done:
			done, end = nil, time.After(goodByeWithin)
			m.Stop(time.Now())
		case <-end:
			m.abandon(time.Now())
			g.note(m)
			pass(m, w, tell)
			return nil
		}
	}
}

func obey(m *Machine, c Command) {
	switch now := time.Now(); c.Do {
	case Renew:
		m.Reconnect(now)
	case CarrierOn:
		m.Carrier(true, now)
	case CarrierOff:
		m.Carrier(false, now)
	case TrafficSeen:
		m.Traffic(now)
	case EndSeen:
		m.Ended(c.Ref, now)
	case Resize:
		m.Resize(c.MTU, c.Anew, now)
	}
}

// wait is the time until t; with no t, long.
func wait(t time.Time) time.Duration {
	if t.IsZero() {
		return pollNothing
	}
	return max(time.Until(t), 0)
}

// pass sends and tells what the machine has. A frame that cannot be sent, because the line is
// down, is as good as lost.
func pass(m *Machine, w *wire.Wire, tell func(Event)) {
	frames, events := m.Take()
	for _, b := range frames {
		tellFrame(b, true, tell)
		if err := w.Send(b); err != nil {
			tell(Event{Kind: Note, Text: err.Error()})
		}
	}
	for _, e := range events {
		if s, ok := m.Save(); ok && (e.Kind == Up || e.Kind == Changed) {
			e.Saved = &s
		}
		tell(e)
	}
}

// concerns says whether a frame that has come is worth telling of: discovery with this machine, and what the
// concentrator says in the session that there is, or is asked for. Few frames are kept, and neighbours could
// flush them with others.
func (m *Machine) concerns(b []byte) bool {
	f, err := discovery.Parse(b)
	if err != nil || f.To != m.config.MAC {
		return false
	}
	if f.Ether == discovery.EtherDiscovery {
		return true
	}
	if m.phase == discovering {
		asked, ok := m.finder.Asked()
		return ok && asked == f.From
	}
	ref, ok := m.Ref()
	return ok && ref == Ref{f.From, f.SessionID}
}

// tellFrame tells of a frame, without secrets.
func tellFrame(b []byte, out bool, tell func(Event)) {
	f, err := discovery.Parse(b)
	if err != nil {
		return
	}
	text := f.Code.String()
	if f.Ether == discovery.EtherSession && f.Code == discovery.Session {
		text = ppp.Describe(f.Payload)
		f.Payload = ppp.Redact(f.Payload)
	}
	tell(Event{Kind: Frame, Frame: f.Append(nil), Out: out, Text: text})
}
