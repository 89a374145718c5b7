package datapath

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"weir/internal/host/cpulist"
)

// Work is what the worker of a queue has done, and where it may run. The packets are those inside the tunnel.
type Work struct {
	Thread  int   // its id; 0: it does not run
	Allowed []int // the cores that it may run on

	SentPackets, SentBytes         uint64 // that it has encrypted
	ReceivedPackets, ReceivedBytes uint64 // that it has decrypted
	// SentLost are packets to nobody, and messages that the kernel refused. ReceivedLost are messages that are not
	// authentic, too old or not from an allowed network, and packets that the tun device refused.
	SentLost, ReceivedLost uint64
}

// tally counts in one thread.
type tally struct {
	sentPackets, sentBytes, receivedPackets, receivedBytes, sentLost, receivedLost uint64
}

// works has what a worker has done, for others to read. It outlives the worker's thread: with another port of the
// tunnel another one takes its place.
type works struct {
	sentPackets, sentBytes, receivedPackets, receivedBytes, sentLost, receivedLost atomic.Uint64

	mu     sync.Mutex // of all below
	thread int
	cores  []int // it is to run on; nil: as the process
}

// add adds what was counted since, and clears it.
func (w *works) add(t *tally) {
	if *t == (tally{}) {
		return
	}
	for _, c := range []struct {
		to *atomic.Uint64
		n  uint64
	}{
		{&w.sentPackets, t.sentPackets}, {&w.sentBytes, t.sentBytes}, {&w.sentLost, t.sentLost},
		{&w.receivedPackets, t.receivedPackets}, {&w.receivedBytes, t.receivedBytes}, {&w.receivedLost, t.receivedLost},
	} {
		if c.n > 0 {
			c.to.Add(c.n)
		}
	}
	*t = tally{}
}

// begin notes the thread that calls it, and has it run where it is to.
func (w *works) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.thread = unix.Gettid()
	if w.cores != nil {
		cpulist.Bind(w.thread, w.cores...) //nolint:errcheck // the core is gone: it runs where it can, as Work tells
	}
}

// end notes that the thread ends.
func (w *works) end() {
	w.mu.Lock()
	w.thread = 0
	w.mu.Unlock()
}

// ErrNoWorker is the error for a queue that has no worker.
var ErrNoWorker = errors.New("there is no such worker")

// Place has the worker of a queue run on some cores from now on, and after it was begun anew. No packet waits for
// that.
func (p *Path) Place(queue int, cores []int) error {
	if queue < 0 || queue >= len(p.works) {
		return ErrNoWorker
	}
	w := p.works[queue]
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.thread != 0 {
		if err := cpulist.Bind(w.thread, cores...); err != nil {
			return fmt.Errorf("have worker %d run on cores %s: %w", queue, cpulist.Format(cores), err)
		}
	}
	w.cores = cores
	return nil
}

// Work returns what the workers have done, by their queue.
func (p *Path) Work() []Work {
	all := make([]Work, len(p.works))
	for i, w := range p.works {
		all[i] = w.read()
	}
	return all
}

func (w *works) read() Work {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := Work{
		Thread: w.thread, Allowed: w.cores, SentPackets: w.sentPackets.Load(), SentBytes: w.sentBytes.Load(), SentLost: w.sentLost.Load(),
		ReceivedPackets: w.receivedPackets.Load(), ReceivedBytes: w.receivedBytes.Load(), ReceivedLost: w.receivedLost.Load(),
	}
	if w.thread != 0 {
		if cores, err := cpulist.OfThread(w.thread); err == nil {
			r.Allowed = cores
		}
	}
	return r
}

// SocketLost returns how many datagrams the kernel has dropped because a socket of the tunnel had no room.
func (p *Path) SocketLost() uint64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	n := uint64(0)
	for _, r := range p.receivers() {
		n += r.lost()
	}
	return n
}

// The counters of a socket: SO_MEMINFO, and the place of the drops among them (SK_MEMINFO_DROPS).
const (
	memoryInfo  = 55
	memoryDrops = 8
)

// lost returns what the kernel has dropped for want of room.
func (r *receiver) lost() uint64 {
	if r == nil || r.socket == nil {
		return 0
	}
	var info [memoryDrops + 1]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(r.socket.fd), unix.SOL_SOCKET, memoryInfo, uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 || size < uint32(unsafe.Sizeof(info)) {
		return 0 // the socket counts nothing
	}
	return uint64(info[memoryDrops])
}
