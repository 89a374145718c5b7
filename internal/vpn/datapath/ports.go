package datapath

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/device"
)

// A path may listen on several ports, which follow each other: the first is the tunnel's, the others are for lanes of
// wide links. Each worker has a port that it looks at each time, and looks at the others in turn.

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
			if err := unix.EpollCtl(w.poll, unix.EPOLL_CTL_ADD, r.socket.fd, &unix.EpollEvent{Events: socketEdge, Fd: int32(r.socket.fd)}); err != nil {
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

// work does what there is to do, and reports whether there was any. Before the worker sleeps it has looked everywhere.
func (w *worker) work() bool {
	more := *w.path.more.Load()
	ports := len(more) + 1
	own := w.number % ports
	worked := w.fromPort(more, own)
	if w.visit = (w.visit + 1) % ports; w.visit != own {
		worked = w.fromPort(more, w.visit) || worked
	}
	worked = w.fromTun() || worked
	for i := 0; !worked && i < ports; i++ {
		worked = i != own && w.fromPort(more, i)
	}
	return worked
}

func (w *worker) fromPort(more []port, place int) bool {
	four, six := w.path.four, w.path.six
	if place > 0 {
		four, six = more[place-1].four, more[place-1].six
	}
	worked := w.fromSocket(four)
	return w.fromSocket(six) || worked
}
