package datapath

import (
	"bytes"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/device"
)

// Limits of what is received at once.
const (
	socketReads = 8   // before a worker looks at what else there is to do
	deliveries  = 16  // the same, of batches that others may have decrypted
	inFlight    = 16  // batches of a socket, a power of two
	maxBatch    = 128 // messages of a batch: UDP_MAX_SEGMENTS of newer kernels
)

// A batch is what was read from a socket at once.
type batch struct {
	buffer  []byte
	size    int
	segment int  // of each message but the last
	class   byte // with ECN
	from    device.Endpoint
	count   int // of packets
	packets [maxBatch]packet
	done    atomic.Bool // everything is decrypted
}

// packet is a message that was decrypted.
type packet struct {
	peer    *device.Peer
	keypair *device.Keypair
	number  uint64
	size    int    // of the message
	packet  []byte // in the batch's buffer; nil: there is none to pass on
	empty   bool   // it is a keepalive
	probe   bool   // it measures a path
	note    bool   // it is a message of the far end's engine to this one
	refused bool   // the peer may not send it
	headers int    // as headersOf says, if its checksums are right
}

// A receiver has what comes to one socket. Workers take turns to read it; each decrypts the batch that it
// has read. The batches are then delivered in the order in which they were read, by whichever worker is
// done: none waits for another.
type receiver struct {
	socket *socket
	place  uint8               // of its port; 0: the first
	read   func(b *batch) bool // instead of the socket, in a [Stand]

	reading sync.Mutex    // is held while the socket is read
	missed  atomic.Bool   // somebody could not have it
	head    atomic.Uint64 // batches read
	ring    [inFlight]atomic.Pointer[batch]

	delivering sync.Mutex    // is held while batches are delivered
	tail       atomic.Uint64 // batches delivered

	mu   sync.Mutex
	free []*batch // the one used last is used first: it is in the cache
}

// fromSocket takes what has come to a socket, and passes it on. It reports whether there was any.
func (w *worker) fromSocket(r *receiver) bool {
	if r == nil {
		return false
	}
	left := deliveries
	worked := w.deliverReady(r, &left) // what it has left when it had delivered enough
	for range socketReads {
		b := w.readBatch(r)
		if b == nil {
			break
		}
		worked = true
		w.decrypt(b)
		b.done.Store(true)
		if w.deliverReady(r, &left); left == 0 {
			break
		}
	}
	return worked
}

// readBatch reads from a socket. It returns nil if there is nothing to read, if another worker reads, and if too
// much is in flight: whoever has that will come back.
func (w *worker) readBatch(r *receiver) *batch {
	for {
		if !r.reading.TryLock() {
			r.missed.Store(true) // whoever has it looks once more before it sleeps, unless it has just let it go
			if !r.reading.TryLock() {
				return nil
			}
		}
		if r.head.Load()-r.tail.Load() < inFlight {
			b := r.take()
			if w.fill(r, b) {
				r.ring[r.head.Load()%inFlight].Store(b)
				r.head.Add(1)
				r.reading.Unlock()
				return b
			}
			r.give(b)
		}
		r.reading.Unlock()
		if !r.missed.Swap(false) {
			return nil
		}
	}
}

// fill reads what there is. An error may be one that the socket was told of what was sent before: what has come is
// still there.
func (w *worker) fill(r *receiver, b *batch) bool {
	if r.read != nil {
		return r.read(b)
	}
	for try := 1; ; try++ {
		size, segment, class, e := w.datagram.receive(r.socket, b.buffer, &b.from)
		if e == 0 {
			b.size, b.segment, b.class, b.from.Place = size, segment, class, r.place
			return true
		}
		if e == unix.EAGAIN {
			return false
		}
		if try == 2 {
			w.path.device.Errorf("read from the port: %v", e)
			return false
		}
	}
}

func (r *receiver) take() *batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.free)
	if n == 0 {
		return &batch{buffer: make([]byte, maxDatagram)}
	}
	b := r.free[n-1]
	r.free = r.free[:n-1]
	return b
}

func (r *receiver) give(b *batch) {
	b.done.Store(false)
	clear(b.packets[:b.count]) // keys of sessions that end must not stay reachable
	b.count = 0
	r.mu.Lock()
	r.free = append(r.free, b)
	r.mu.Unlock()
}

// decrypt decrypts the messages of a batch where they are.
func (w *worker) decrypt(b *batch) {
	b.count = 0
	now := w.now()
	var index uint32
	var peer *device.Peer
	var keypair *device.Keypair
	several := b.size > b.segment
	for rest := b.buffer[:b.size]; len(rest) > 0 && b.count < maxBatch; {
		n := min(b.segment, len(rest))
		message := rest[:n:n]
		rest = rest[n:]
		if n < device.MessageTransportSize || binary.LittleEndian.Uint32(message) != device.MessageTransportType {
			w.path.device.Handshake(message, &b.from)
			continue
		}
		if i := binary.LittleEndian.Uint32(message[device.MessageTransportOffsetReceiver:]); keypair == nil || i != index {
			index = i
			if peer, keypair = w.path.device.Session(index, now); keypair != nil && peer.Place() != b.from.Place {
				keypair = nil // somebody has sent it to another port
			}
			if keypair == nil {
				w.tally.receivedLost++
				continue
			}
		}
		content, number := keypair.Open(message, &w.nonce)
		if content == nil {
			w.tally.receivedLost++
			continue
		}
		p := &b.packets[b.count]
		b.count++
		*p = packet{peer: peer, keypair: keypair, number: number, size: n, empty: len(content) == 0}
		w.admit(p, content, b.class, several)
	}
	w.allowed = allowed{}
}

// allowed is an address that was last found among the networks of a peer.
type allowed struct {
	peer    *device.Peer
	address [16]byte
	size    int
}

// admit looks whether what a peer has sent may pass.
func (w *worker) admit(p *packet, content []byte, outer byte, several bool) {
	n := lengthOf(content)
	if n == 0 {
		if p.note = noteOf(content); p.note {
			p.packet = content
		} else if len(content) > 0 {
			w.tally.receivedLost++
		}
		return
	}
	content = content[:n:n]
	from := source(content)
	if a, first := &w.allowed, p.peer.First(); a.peer != first || !bytes.Equal(a.address[:a.size], from) {
		if w.path.device.Route(from) != first {
			w.tally.receivedLost++
			p.packet, p.refused = content, true
			return
		}
		a.peer, a.size = first, copy(a.address[:], from)
	}
	if (outer|class(content))&ecnMask != 0 && !decapsulate(content, outer) {
		w.tally.receivedLost++
		return
	}
	p.packet = content
	p.probe = probeOf(content) != nil
	w.tally.receivedPackets++
	w.tally.receivedBytes += uint64(n)
	if !several {
		return
	}
	if p.headers = headersOf(content); p.headers > 0 && (!w.path.tun.UDP && protocolOf(content) == unix.IPPROTO_UDP || !intact(content)) {
		p.headers = 0
	}
}

// ready reports whether the next batch to be delivered is decrypted.
func (r *receiver) ready() bool {
	b := r.ring[r.tail.Load()%inFlight].Load()
	return b != nil && b.done.Load()
}

// deliverReady delivers the batches that are decrypted, up to the first that is not, and no more than left. It
// reports whether there were any. Whoever has delivered as many comes back, so what is left is not forgotten.
func (w *worker) deliverReady(r *receiver, left *int) (worked bool) {
	for *left > 0 && r.ready() {
		if !r.delivering.TryLock() {
			break // whoever has it looks again after that
		}
		for *left > 0 && r.ready() {
			at := &r.ring[r.tail.Load()%inFlight]
			b := at.Load()
			w.deliver(b)
			at.Store(nil)
			r.give(b)
			r.tail.Add(1)
			worked = true
			*left--
		}
		r.delivering.Unlock()
	}
	return worked
}

// deliver passes on the packets of a batch, in order.
func (w *worker) deliver(b *batch) {
	for i := 0; i < b.count; {
		from := i
		keypair := b.packets[i].keypair
		bytes, accepted, data := 0, 0, false
		keypair.Lock()
		for ; i < b.count && b.packets[i].keypair == keypair; i++ {
			p := &b.packets[i]
			if !keypair.Accept(p.number) {
				w.tally.receivedLost++
				p.packet = nil
				continue
			}
			accepted++
			if p.refused {
				p.peer.Refuse(source(p.packet), w.now())
				p.packet = nil
			}
			if !p.note && (!p.empty || p.peer.Place() == 0) {
				bytes += p.size
			}
			data = data || !p.empty && !p.note
		}
		keypair.Unlock()
		if peer := b.packets[from].peer; accepted > 0 && peer.Running() {
			peer.Received(keypair, &b.from, bytes, data)
			w.pass(b.packets[from:i])
		}
	}
}

// pass writes packets to the tun device, merged where they belong together.
func (w *worker) pass(all []packet) {
	m := &w.merge
	m.count = 0
	for i := range all {
		p := &all[i]
		if p.packet == nil || p.note && w.noted(p) || p.probe && w.probed(p) || m.count > 0 && m.add(p.packet, p.headers) {
			continue
		}
		w.write()
		m.begin(p.packet, p.headers)
	}
	w.write()
}

// write writes what the merger has. All packets of a connection go through the same queue of the tun device: the
// kernel then hands the answers out by the same.
func (w *worker) write() {
	m := &w.merge
	if m.count == 0 {
		return
	}
	queues := w.path.tun.Queues
	queue := queues[flowOf(m.first)%uint32(len(queues))]
	parts := m.end()
	_, _, e := unix.RawSyscall(unix.SYS_WRITEV, uintptr(queue), uintptr(unsafe.Pointer(&parts[0])), uintptr(len(parts)))
	if e != 0 {
		w.tally.receivedLost += uint64(m.count)
	}
	if e == unix.EBADFD || e == unix.EBADF {
		w.path.fail()
	} else if e != 0 && e != unix.EIO { // EIO: the interface is down
		w.path.device.Errorf("write to the tun device: %v", e)
	}
	m.count = 0
}
