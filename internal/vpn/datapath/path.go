package datapath

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/device"
)

// A Tun is a tun device.
type Tun struct {
	Queues []int
	UDP    bool // it takes datagrams that are put together: TUN_F_USO4 and TUN_F_USO6, Linux 6.2
}

// A Path is the path of data of a tunnel. It is the Network of its device.
type Path struct {
	device *device.Device
	tun    Tun
	failed func()
	once   sync.Once // of failed

	mu      sync.RWMutex // of the sockets
	four    *receiver    // nil: there is none
	six     *receiver
	stop    int // an eventfd that wakes the workers
	ending  atomic.Bool
	workers sync.WaitGroup

	widening sync.Mutex // is held while ports are opened and closed
	more     atomic.Pointer[[]port]
	at       []*worker // the workers; widening is held
	hear     atomic.Pointer[func(peer *device.Peer, note []byte)]

	works []*works // of the workers, by their queue; they outlive them

	control sync.Mutex // of what is no data
	dg      datagram
	late    []late // what waits for room in its socket; somebody sends it, if there is any

	marks atomic.Uint32 // how outer packets get a code point

	asked      sync.Map    // of a request's number: where its answer is told
	cuts       atomic.Bool // messages may be cut
	answeredAt int64       // the second of answers; control is held
	answers    int
}

// New returns the path between a tun device and a port. failed is called, once and while a worker runs, when the tun
// device is gone.
func New(tun Tun, failed func()) *Path {
	p := &Path{tun: tun, failed: failed}
	p.more.Store(&[]port{})
	for range tun.Queues {
		p.works = append(p.works, &works{})
	}
	return p
}

// Carry has the path carry the packets of a device, which has yet to be opened.
func (p *Path) Carry(d *device.Device) { p.device = d }

func (p *Path) fail() { p.once.Do(p.failed) }

// Open begins to listen on a port, and to carry packets.
func (p *Path) Open(port uint16) (uint16, error) {
	p.widening.Lock()
	defer p.widening.Unlock()
	four, six, port, err := openSockets(port)
	if err != nil {
		return 0, fmt.Errorf("listen on port %d: %w", port, err)
	}
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		closeSockets(four, six)
		return 0, fmt.Errorf("make an eventfd: %w", err)
	}
	p.mu.Lock()
	p.four, p.six, p.stop = four, six, stop
	p.mu.Unlock()
	p.Cut(p.cuts.Load())
	p.ending.Store(false)
	for i, queue := range p.tun.Queues {
		w, err := p.newWorker(queue, p.works[i])
		if err != nil {
			p.close() //nolint:errcheck // it has failed already
			return 0, err
		}
		w.number = i
		p.at = append(p.at, w)
		p.workers.Add(1)
		go w.run()
	}
	return port, nil
}

// tries is how often a port is looked for that is free with both families.
const tries = 100

// openSockets opens the sockets of both families, or of those that there are.
func openSockets(wanted uint16) (four, six *receiver, port uint16, err error) {
	for range tries {
		port = wanted
		var s *socket
		if s, err = openSocket(false, port); err == nil {
			four = &receiver{socket: s}
			port, err = s.port()
		}
		if err == nil || errors.Is(err, unix.EAFNOSUPPORT) {
			if s, err = openSocket(true, port); err == nil {
				six = &receiver{socket: s}
				port, err = s.port()
			} else if errors.Is(err, unix.EAFNOSUPPORT) && four != nil {
				err = nil
			}
		}
		if err == nil {
			return four, six, port, nil
		}
		closeSockets(four, six)
		four, six = nil, nil
		if wanted != 0 || !errors.Is(err, unix.EADDRINUSE) {
			break
		}
	}
	return nil, nil, wanted, err
}

func closeSockets(all ...*receiver) {
	for _, r := range all {
		if r != nil {
			unix.Close(r.socket.fd) //nolint:errcheck // what was received is gone either way
		}
	}
}

// Close ends that. Packets wait in the tun device then.
func (p *Path) Close() error {
	p.widening.Lock()
	defer p.widening.Unlock()
	return p.close()
}

func (p *Path) close() error {
	p.mu.RLock()
	open, stop := p.four != nil || p.six != nil, p.stop
	p.mu.RUnlock()
	if !open {
		return nil
	}
	p.control.Lock() // nothing begins to wait for room from here on
	p.ending.Store(true)
	p.control.Unlock()
	if _, err := unix.Write(stop, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		return fmt.Errorf("stop the workers: %w", err)
	}
	p.workers.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	closeSockets(p.four, p.six)
	p.four, p.six, p.at = nil, nil, nil
	for _, other := range *p.more.Swap(&[]port{}) {
		closeSockets(other.four, other.six)
	}
	return unix.Close(stop)
}

// socketOf returns the socket that sends to an endpoint, or nil.
func (p *Path) socketOf(to *device.Endpoint) *socket {
	four, six := p.four, p.six
	if to.Place != 0 {
		all := *p.more.Load()
		if int(to.Place) > len(all) {
			return nil
		}
		four, six = all[to.Place-1].four, all[to.Place-1].six
	}
	r := four
	if to.Remote.Addr().Is6() {
		r = six
	}
	if r == nil {
		return nil
	}
	return r.socket
}

// A worker carries packets in one thread. It has what it needs for that, so that nothing is allocated.
type worker struct {
	path     *Path
	works    *works
	number   int           // of the worker
	turn     atomic.Uint64 // how often it has looked what there is to do; odd while it does something
	visit    int           // the port that it looks at next, beside its own
	told     uint32        // at which sockets there may be something; a bit each
	tunTold  bool          // likewise the tun device
	events   [8]unix.EpollEvent
	busy     int   // turns since it slept in which there was something
	tally    tally // since it was last added to works
	queue    int   // of the tun device
	poll     int
	mtu      int
	clock    time.Time
	read     []byte
	split    splitter
	outboxes [outboxes]outbox
	evict    int
	stalled  *socket // it has no room for what is in an outbox; nil: there is none
	vain     bool    // it was said to have room, and had none
	waits    [2]unix.PollFd
	datagram datagram
	merge    merger
	nonce    device.Nonce
	allowed  allowed
}

// socketEdge is what a worker waits for at a socket: an edge, which one worker is told of. What reads a socket reads all
// that is there.
const socketEdge = unix.EPOLLIN | unix.EPOLLET | unix.EPOLLEXCLUSIVE

func (p *Path) newWorker(queue int, works *works) (*worker, error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("wait for packets: %w", err)
	}
	w := &worker{path: p, works: works, queue: queue, poll: poll, read: make([]byte, maxRead+device.PaddingMultiple)}
	add := func(fd int, events uint32, source int) {
		if err == nil {
			err = unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(source)})
		}
	}
	add(p.stop, unix.EPOLLIN, sourceStop)
	add(queue, unix.EPOLLIN, sourceTun)
	for _, r := range []*receiver{p.four, p.six} {
		if r != nil {
			add(r.socket.fd, socketEdge, sourceOf(0, r.socket.six))
		}
	}
	if err != nil {
		unix.Close(poll) //nolint:errcheck // it has failed already
		return nil, fmt.Errorf("wait for packets: %w", err)
	}
	return w, nil
}

// now returns the time, which is that of the batch in hand.
func (w *worker) now() time.Time { return w.clock }

// run carries packets until the path is closed.
func (w *worker) run() {
	defer w.path.workers.Done()
	defer unix.Close(w.poll) //nolint:errcheck // it has nothing to lose
	runtime.LockOSThread()   // the thread ends with it
	w.works.begin()
	defer w.works.end()
	for !w.path.ending.Load() {
		w.turn.Add(1)
		w.clock, w.mtu = time.Now(), w.path.device.MTU()
		worked := w.work()
		w.works.add(&w.tally)
		w.turn.Add(1)
		switch {
		case worked:
		case w.stalled != nil:
			w.awaitRoom()
			w.listen(0)
		default:
			w.listen(-1)
		}
	}
}

// listen finds out where there may be something, and waits for so many milliseconds; less than 0: until there is.
func (w *worker) listen(wait int) {
	n, _ := unix.EpollWait(w.poll, w.events[:], wait) // -1: a signal
	for _, e := range w.events[:max(n, 0)] {
		w.tell(int(e.Fd))
	}
}

// roomPause is how long a worker waits for room in its socket before it looks for what has come.
const roomPause = 1 // ms

// awaitRoom waits until the socket that was full has room. What the tun device has stays there. It does not
// wait for what comes in: another worker may be at it, and then poll would return at once, again and again. Where there
// was said to be room and nothing could be sent, it waits for the whole pause.
func (w *worker) awaitRoom() {
	w.waits = [2]unix.PollFd{{Fd: int32(w.path.stop), Events: unix.POLLIN}, {Fd: int32(w.stalled.fd), Events: unix.POLLOUT}}
	waits := w.waits[:]
	if w.vain {
		waits = waits[:1]
	}
	unix.Poll(waits, roomPause)      //nolint:errcheck // a signal: it is tried again
	w.vain = w.waits[1].Revents != 0 // unless something leaves now
}
