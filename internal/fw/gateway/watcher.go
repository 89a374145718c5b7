package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"weir/internal/fw/ruleset"
	"weir/internal/host/netif"
	"weir/pf/resolve"
)

// A Target is a gateway to watch.
type Target struct {
	ruleset.Hop
	resolve.Gateway // how; its Addr is the hop's
}

// A State says whether a gateway is up.
type State string

// States of gateways. Packets are sent to all but those that are down.
const (
	Up        State = "up"
	Down      State = "down"
	Pending   State = "pending"   // it has not answered yet
	Unwatched State = "unwatched" // monitor none
)

// A Status is what is known of a gateway.
type Status struct {
	Target
	Interface string // by which it is reached; "": there is no way to it
	State     State
	Since     time.Time     // zero: pending, or unwatched
	Loss      float64       // of the last 30 samples, 0 to 1
	RTT       time.Duration // of ping
	Why       string        // the last sample was lost; "": it was answered
}

// A Watcher watches gateways. Any task may call its methods.
type Watcher struct {
	mu      sync.Mutex
	watched []*watched
	down    map[ruleset.Hop]bool // from before this process
	pings   *pinger
}

// watched is one gateway.
type watched struct {
	Target
	health
	place  place
	asked  bool   // since the last sample
	cannot string // why it could not be asked
	why    string // why the last sample was lost
	ping   ping
}

// A place is where a gateway is.
type place struct {
	link netif.Link
	via  netif.Neighbour // the neighbour that leads to it
}

// A Change is a gateway that went down or came up.
type Change struct {
	Target
	Down bool
	Loss float64
	Why  string
}

// NewWatcher returns a Watcher. The given gateways are down until they answer.
func NewWatcher(down []ruleset.Hop) *Watcher {
	w := &Watcher{down: make(map[ruleset.Hop]bool), pings: newPinger()}
	for _, hop := range down {
		w.down[hop] = true
	}
	return w
}

// Close ends the watch.
func (w *Watcher) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pings.close()
}

// Watch sets which gateways are watched. Those that were watched in the same way keep what
// is known of them.
func (w *Watcher) Watch(targets []Target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []*watched
	for _, t := range targets {
		at := slices.IndexFunc(w.watched, func(x *watched) bool { return x.Target == t })
		if at >= 0 {
			all = append(all, w.watched[at])
			continue
		}
		x := &watched{Target: t}
		if w.down[t.Hop] && t.Monitor != resolve.NoMonitor {
			x.set(true, time.Now())
		}
		all = append(all, x)
	}
	w.watched = all
	clear(w.down)
}

// Down returns the gateways that are down. Before the first Watch these are those from
// before this process.
func (w *Watcher) Down() map[ruleset.Hop]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	down := make(map[ruleset.Hop]bool)
	for hop := range w.down {
		down[hop] = true
	}
	for _, x := range w.watched {
		if x.down {
			down[x.Hop] = true
		}
	}
	return down
}

// Status returns what is known of each gateway.
func (w *Watcher) Status() []Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []Status{}
	for _, x := range w.watched {
		s := Status{Target: x.Target, Interface: x.place.link.Name, State: x.state(), Since: x.since, Loss: x.loss(), Why: x.why}
		if x.Monitor == resolve.Ping {
			s.RTT = x.answer
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Status) int {
		return cmp.Or(a.Hop.Addr.Compare(b.Hop.Addr), cmp.Compare(a.Hop.Interface, b.Hop.Interface))
	})
	return all
}

func (x *watched) state() State {
	switch {
	case x.Monitor == resolve.NoMonitor:
		return Unwatched
	case x.down:
		return Down
	case x.since.IsZero():
		return Pending
	}
	return Up
}

// Sample takes a sample of every gateway, asks all again, and returns which have gone down
// or come up. Call it once a second.
func (w *Watcher) Sample() ([]Change, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.ContainsFunc(w.watched, func(x *watched) bool { return x.Monitor != resolve.NoMonitor }) {
		return nil, nil
	}
	links, err := netif.Links()
	if err != nil {
		return nil, err
	}
	neighbours, err := netif.Neighbours()
	if err != nil {
		return nil, err
	}
	var changes []Change
	now := time.Now()
	for _, x := range w.watched {
		if x.Monitor == resolve.NoMonitor {
			continue
		}
		if x.asked && x.take(neighbours, w.pings, now) {
			changes = append(changes, Change{x.Target, x.down, x.loss(), x.why})
		}
		x.ask(links, neighbours, w.pings)
	}
	return changes, nil
}

// take takes a sample: what has come since the gateway was asked.
func (x *watched) take(neighbours map[netif.Neighbour]netif.NeighbourState, pings *pinger, now time.Time) bool {
	var took time.Duration
	answered := false
	switch {
	case x.cannot != "":
	case x.Monitor == resolve.Ping:
		took, answered = pings.answer(&x.ping)
	default:
		answered = !x.place.link.Ethernet || neighbours[x.place.via].Answers
	}
	switch {
	case answered:
		x.why = ""
	case x.cannot != "":
		x.why = x.cannot
	default:
		x.why = "no answer"
	}
	return x.add(answered, took, now)
}

// ask asks the gateway. The answer is there at the next sample.
func (x *watched) ask(links []netif.Link, neighbours map[netif.Neighbour]netif.NeighbourState, pings *pinger) {
	err := x.find(links)
	if err == nil && x.place.link.Ethernet {
		err = netif.AskNeighbour(x.place.via, neighbours)
	}
	if err == nil && x.Monitor == resolve.Ping {
		err = pings.send(&x.ping, x.Gateway.Target, &x.place, neighbours[x.place.via].MAC)
	}
	x.asked, x.cannot = true, ""
	if err != nil {
		x.cannot = err.Error()
	}
}

// find finds the link and the neighbour that lead to the gateway.
func (x *watched) find(links []netif.Link) error {
	x.place = place{}
	named := x.Hop.Interface
	if named == "" {
		index, via, err := netif.WayTo(x.Hop.Addr)
		if err != nil {
			return errors.New("no route to it")
		}
		at := slices.IndexFunc(links, func(l netif.Link) bool { return l.Index == index })
		if at < 0 {
			return errors.New("no route to it")
		}
		x.place = place{links[at], netif.Neighbour{Link: index, Addr: via}}
	} else {
		at := slices.IndexFunc(links, func(l netif.Link) bool { return l.Name == named })
		if at < 0 {
			return fmt.Errorf("there is no interface %s", named)
		}
		x.place = place{links[at], netif.Neighbour{Link: links[at].Index, Addr: x.Hop.Addr}}
	}
	if !x.place.link.Up {
		return fmt.Errorf("%s is down", x.place.link.Name)
	}
	if x.place.link.Kind == netif.PPPoE && !x.place.link.Carrier {
		return fmt.Errorf("%s has no session", x.place.link.Name)
	}
	return nil
}
