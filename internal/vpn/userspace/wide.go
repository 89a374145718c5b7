package userspace

import (
	"slices"
	"sync"
	"time"

	"weir/internal/vpn/device"
	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
	"weir/internal/vpn/wide"
)

// Times of wide links.
const (
	widePause   = 250 * time.Millisecond // between looks at them
	portPause   = 5 * time.Second        // before a port is tried again that another program has
	answerPause = time.Second            // between answers to a peer whose link is not to be wide here
	mostNotes   = 256                    // of a peer in a second
	waiting     = 256                    // notes that wait
)

// wides keeps the wide links of an engine.
type wides struct {
	engine *Engine
	notes  chan note
	stop   chan struct{}
	ended  sync.WaitGroup

	mu      sync.Mutex // of all below
	port    uint16     // the first
	open    int        // ports
	tried   time.Time  // when ports were last opened
	taken   string     // what is in the way of more
	links   map[key.Public]*link
	boot    *wide.Link // what answers peers whose links are not to be wide
	refused map[*device.Peer]time.Time

	limit  sync.Mutex // of all below
	second int64
	count  map[*device.Peer]int
}

// note is one that has come.
type note struct {
	from *device.Peer
	text []byte
}

func newWides(e *Engine) *wides {
	w := &wides{engine: e, notes: make(chan note, waiting), stop: make(chan struct{}), links: map[key.Public]*link{}, boot: wide.New(), refused: map[*device.Peer]time.Time{}}
	e.path.Hear(w.hear)
	w.ended.Go(w.run)
	return w
}

func (w *wides) run() {
	look := time.NewTicker(widePause)
	defer look.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-look.C:
			w.look(time.Now())
		case n := <-w.notes:
			w.take(&n, time.Now())
		}
	}
}

func (w *wides) close() {
	close(w.stop)
	w.ended.Wait()
}

// hear takes a note from a worker, which does not wait. A peer that sends too many is not heard.
func (w *wides) hear(from *device.Peer, text []byte) {
	now := time.Now().Unix()
	w.limit.Lock()
	if w.second != now {
		w.second, w.count = now, map[*device.Peer]int{}
	}
	first := from.First()
	w.count[first]++
	over := w.count[first] > mostNotes
	w.limit.Unlock()
	if over {
		return
	}
	select {
	case w.notes <- note{from, slices.Clone(text)}:
	default:
	}
}

// apply has the links be as a configuration says.
func (w *wides) apply(from, to *tunnel.Config) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.port, w.tried = to.Port, time.Time{}
	for i := range to.Peers {
		p := &to.Peers[i]
		l := w.links[p.Key]
		if p.Wide < 2 {
			if l != nil {
				l.wanted = 0
			}
			continue
		}
		if l == nil {
			l = &link{wides: w, key: p.Key}
			w.links[p.Key] = l
			w.boot = wide.New() // the peer takes what was said with the one of before for late
		}
		l.wanted = min(p.Wide, wide.MostPorts)
		if from != nil && l.of != nil {
			at := find(from.Peers, p.Key)
			switch { // lanes have what was before
			case from.Private != to.Private || at >= 0 && from.Peers[at].Preshared != p.Preshared:
				l.of.Revoke(now)
			case at >= 0 && from.Peers[at].Keepalive != p.Keepalive:
				l.of.Rotate(now)
			}
		}
	}
	for k, l := range w.links {
		if find(to.Peers, k) < 0 {
			l.forget()
			delete(w.links, k)
		}
	}
	w.lookLocked(now)
}

func (w *wides) look(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookLocked(now)
}

func (w *wides) lookLocked(now time.Time) {
	w.openPorts(now)
	for k, l := range w.links {
		if l.look(now); l.wanted == 0 && (l.of == nil || l.of.Done()) {
			l.forget()
			delete(w.links, k)
		}
	}
}

// openPorts opens as many ports as the links need, and closes the others.
func (w *wides) openPorts(now time.Time) {
	need := 1
	for _, l := range w.links {
		need = max(need, l.wanted, l.ports)
	}
	if need == 1 && w.open <= 1 || need > w.open && w.taken != "" && now.Sub(w.tried) < portPause {
		return
	}
	open, err := w.engine.path.Widen(need)
	w.open, w.tried, w.taken = open, now, ""
	if err != nil {
		w.taken = err.Error()
	}
}

// take takes a note that has come.
func (w *wides) take(n *note, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := n.from.First()
	l := w.links[key.Public(first.Key())]
	if l != nil && (l.of == nil || l.peer != first) {
		l = nil
	}
	if !wide.IsOffer(n.text) {
		if p, err := wide.ParseProbe(n.text); err == nil && l != nil {
			l.probed(n.from, p)
		}
		return
	}
	o, err := wide.ParseOffer(n.text)
	if err != nil || n.from != first { // lanes are agreed on inside the first tunnel only
		return
	}
	if l != nil {
		l.of.Hear(o, now)
		l.look(now)
		return
	}
	if o.Ask && now.Sub(w.refused[first]) >= answerPause {
		w.refused[first] = now
		w.boot.Be(w.port, nil, now)
		w.boot.Hear(o, now)
		if no := w.boot.Offer(now, false); no != nil {
			no.Ask = false
			w.engine.path.Tell(first, no.Append(nil)) //nolint:errcheck // the other end asks again
		}
	}
	for p := range w.refused {
		if !p.Running() {
			delete(w.refused, p)
		}
	}
}

// follow has the lanes of a peer be where it is.
func (w *wides) follow(k key.Public) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.links[k]; l != nil && l.peer != nil {
		l.follow()
	}
}

// state tells of the link to a peer; nil: it is not to be wide.
func (w *wides) state(k key.Public) *tunnel.Wide {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.links[k]
	if l == nil || l.wanted == 0 {
		return nil
	}
	return l.state()
}
