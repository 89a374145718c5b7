package datapath

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/device"
)

// A path may listen on several ports, which follow each other: the first is the tunnel's, the others are for lanes of
// wide links. Each worker has a port of its own, which it looks at first.

// A port is one beside the first.
type port struct{ four, six *receiver }

// receivers are those of all ports. The caller holds p.mu or p.widening.
func (p *Path) receivers() (all []*receiver) {
	add := func(some ...*receiver) {
		for _, r := range some {
			if r != nil && r.socket != nil {
				all = append(all, r)
			}
		}
	}
	add(p.four, p.six)
	for _, other := range *p.more.Load() {
		add(other.four, other.six)
	}
	return all
}

// Widen has the path listen on so many ports. It returns on how many it does, and what is in the way of more. A path
// that is not open listens on none.
func (p *Path) Widen(ports int) (open int, err error) {
	p.widening.Lock()
	defer p.widening.Unlock()
	first, err := p.firstPort()
	if err != nil || first == 0 {
		return 0, err
	}
	ports = min(max(ports, 1), device.MostPorts)
	for 1+len(*p.more.Load()) < ports && err == nil {
		err = p.openPort(first)
	}
	if 1+len(*p.more.Load()) > ports {
		p.closePorts(ports)
	}
	return 1 + len(*p.more.Load()), err
}

func (p *Path) setMore(to []port) { p.more.Store(&to) }

// firstPort returns the number of the first port; 0: it is not open.
func (p *Path) firstPort() (uint16, error) {
	for _, r := range []*receiver{p.four, p.six} {
		if r != nil {
			return r.socket.port()
		}
	}
	return 0, nil
}

// openPort opens the next port, and has the workers wait for what comes to it.
func (p *Path) openPort(first uint16) error {
	before := *p.more.Load()
	place := len(before) + 1
	if int(first)+place > 1<<16-1 {
		return fmt.Errorf("listen on port %d: there is none", int(first)+place)
	}
	number := first + uint16(place)
	four, six, _, err := openSockets(number)
	if err != nil {
		return fmt.Errorf("listen on port %d: %w", number, err)
	}
	next := port{four, six}
	for _, r := range []*receiver{four, six} {
		if r != nil {
			r.place = uint8(place)
		}
	}
	p.mu.Lock()
	p.control.Lock()
	p.setMore(append(before[:len(before):len(before)], next))
	for _, r := range []*receiver{four, six} {
		if r != nil {
			r.socket.cut(p.cuts.Load()) //nolint:errcheck // the next probe tells
		}
	}
	p.control.Unlock()
	p.mu.Unlock()
	for _, w := range p.at {
		for _, r := range []*receiver{four, six} {
			if r == nil {
				continue
			}
			event := unix.EpollEvent{Events: socketEdge, Fd: int32(sourceOf(place, r.socket.six))}
			if err := unix.EpollCtl(w.poll, unix.EPOLL_CTL_ADD, r.socket.fd, &event); err != nil {
				p.closePorts(place)
				return fmt.Errorf("wait for packets: %w", err)
			}
		}
	}
	return nil
}

// closePorts closes the ports behind the first ones. No worker uses them any more then.
func (p *Path) closePorts(stay int) {
	before := *p.more.Load()
	p.mu.Lock()
	p.control.Lock()
	p.setMore(before[: stay-1 : stay-1])
	p.control.Unlock()
	p.mu.Unlock()
	for _, w := range p.at {
		w.awaitTurn()
	}
	for _, other := range before[stay-1:] {
		closeSockets(other.four, other.six)
	}
}

// turnPause is how long is waited before it is looked again whether a worker has come to the end of what it does.
const turnPause = 200 * time.Microsecond

// awaitTurn waits for the end of what the worker does at the moment: it knows of no port then that is gone.
func (w *worker) awaitTurn() {
	for n := w.turn.Load(); n%2 == 1 && w.turn.Load() == n; {
		time.Sleep(turnPause)
	}
}

// What a worker is told of when it sleeps: the tunnel's end, its tun device, or a socket. Sockets have a bit each.
const (
	sourceStop = -1 - iota
	sourceTun
	sourceSockets = 0
)

// sourceOf returns what stands for a socket: 0 is the first port's for IPv4, 1 its for IPv6, 2 the next port's, and so on.
func sourceOf(place int, six bool) int {
	if six {
		return sourceSockets + 2*place + 1
	}
	return sourceSockets + 2*place
}

var _ [32 - 2*device.MostPorts]struct{} // all of them have a bit of worker.told

// tell notes that there may be something at a source.
func (w *worker) tell(source int) {
	switch {
	case source >= sourceSockets:
		w.told |= 1 << source
	case source == sourceTun:
		w.tunTold = true
	}
}

// busyTurns is after how many turns, in which there was something each time, a worker looks also where it was told of
// nothing: it has not slept, so nobody could tell it.
const busyTurns = 2

// work does what there is to do, and reports whether there was any. A worker that was woken looks where it was told of
// something, until there is nothing: of all else it is told at once when it is to sleep. One that has much to do looks at its
// own port, at the others in turn, and at the tun device.
func (w *worker) work() bool {
	more := *w.path.more.Load()
	ports := len(more) + 1
	own := w.number % ports
	worked := false
	busy := w.busy >= busyTurns
	if busy {
		worked = w.fromPort(more, own)
		if w.visit = (w.visit + 1) % ports; w.visit != own {
			worked = w.fromPort(more, w.visit) || worked
		}
	}
	if busy || w.tunTold || w.stalled != nil {
		w.tunTold = w.fromTun()
		worked = worked || w.tunTold
	}
	for i := 0; i < ports && !(busy && worked); i++ {
		worked = w.fromToldPort(more, (own+i)%ports) || worked
	}
	if w.busy++; !worked {
		w.busy, w.told = 0, 0 // those of ports that are closed, too
	}
	return worked
}

// fromPort takes what has come to a port.
func (w *worker) fromPort(more []port, place int) bool {
	four, six := w.receiversAt(more, place)
	worked := w.from(four, sourceOf(place, false))
	return w.from(six, sourceOf(place, true)) || worked
}

// fromToldPort takes what has come to those of a port's sockets where there may be something.
func (w *worker) fromToldPort(more []port, place int) (worked bool) {
	if w.told>>sourceOf(place, false)&3 == 0 {
		return false
	}
	four, six := w.receiversAt(more, place)
	for i, r := range []*receiver{four, six} {
		if source := sourceOf(place, i == 1); w.told>>source&1 == 1 {
			worked = w.from(r, source) || worked
		}
	}
	return worked
}

func (w *worker) receiversAt(more []port, place int) (four, six *receiver) {
	if place == 0 {
		return w.path.four, w.path.six
	}
	return more[place-1].four, more[place-1].six
}

// from takes what has come to a socket. If there was something, there may be more: then others who found too much under way
// rely on it.
func (w *worker) from(r *receiver, source int) bool {
	worked := w.fromSocket(r)
	if w.told &^= 1 << source; worked {
		w.told |= 1 << source
	}
	return worked
}
