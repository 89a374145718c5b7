package datapath

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/device"
)

// Limits of what a worker does before it looks at what else there is to do, and of one datagram.
const (
	tunReads    = 64
	maxSegments = 64    // UDP_MAX_SEGMENTS of older kernels
	maxOutbox   = 65000 // with headers it has to be below 65,536
	maxRead     = sizeVnet + 0xffff + 64
	maxMessage  = maxRead + device.MessageTransportSize + device.PaddingMultiple
)

// An outbox has messages for a peer that have yet to leave, all of one size but the last.
type outbox struct {
	peer     *device.Peer // nil: it is empty
	class    byte
	messages []byte // in buffer
	segment  int
	count    int
	buffer   []byte
}

// outboxes is how many peers a worker collects messages for at the same time.
const outboxes = 16

// fromTun takes packets from the worker's queue of the tun device, and sends them. It reports whether there were
// any. When a socket is full, what is left waits, and no more is taken: the worker has something to receive, too.
func (w *worker) fromTun() bool {
	if w.stalled != nil && !w.resume() {
		return false
	}
	worked := false
	for range tunReads {
		n, _, e := unix.RawSyscall(unix.SYS_READ, uintptr(w.queue), uintptr(unsafe.Pointer(&w.read[0])), uintptr(maxRead))
		if e != 0 {
			if e == unix.EBADFD || e == unix.EBADF {
				w.path.fail()
			}
			break
		}
		worked = true
		if !w.split.start(w.read[:n]) {
			continue
		}
		if w.sendSegments(); w.stalled != nil {
			return true
		}
	}
	w.flushAll()
	return worked
}

// resume goes on where a full socket has stopped the worker. It returns false if there is still no room.
func (w *worker) resume() bool {
	w.stalled = nil
	if w.flushAll(); w.stalled == nil && w.split.count > 0 {
		w.sendSegments()
	}
	return w.stalled == nil
}

// flushAll sends the messages of all outboxes.
func (w *worker) flushAll() {
	for i := range w.outboxes {
		if !w.flush(&w.outboxes[i]) {
			return
		}
	}
}

// sendSegments sends what the splitter has, until a socket is full. All of it goes to one peer.
func (w *worker) sendSegments() {
	s := &w.split
	peer := w.path.device.Route(destination(s.buffer))
	if peer == nil || !peer.Running() {
		w.tally.sentLost += uint64(s.count)
		s.count = 0
		return
	}
	if peer.Waiting() { // what waits goes first
		peer.SendStagedPackets()
	}
	peer, keypair := w.lane(peer)
	if keypair == nil {
		w.stage(peer)
		return
	}
	class := w.path.outer(class(s.buffer))
	for s.count > 0 {
		n := min(s.count, maxSegments)
		number, ok := keypair.Reserve(n)
		if !ok {
			w.stage(peer)
			return
		}
		for i := range n {
			if !w.seal(peer, keypair, number+uint64(i), class) {
				return // the numbers that are left are nobody's
			}
		}
	}
}

// lane returns by which tunnel to a peer the packets of the splitter go, with its keys; nil if there are none. A lane
// without keys is left out: the peer's own tunnel carries what it would.
func (w *worker) lane(peer *device.Peer) (*device.Peer, *device.Keypair) {
	if over := peer.Over(); over != nil {
		if lane := peer.Lane(over, flowOf(w.split.buffer)); lane != peer && lane.Running() {
			if keypair := lane.Sending(w.now()); keypair != nil {
				return lane, keypair
			}
		}
	}
	return peer, peer.Sending(w.now())
}

// stage has packets wait for a session.
func (w *worker) stage(peer *device.Peer) {
	for w.split.count > 0 {
		peer.Stage(w.split.next())
	}
	peer.SendStagedPackets() // there may be one by now
}

// seal encrypts the next packet of the splitter into the outbox of its peer. It returns false if a socket is full:
// then there is nothing to be done until it has room.
func (w *worker) seal(peer *device.Peer, keypair *device.Keypair, number uint64, class byte) bool {
	b := w.outboxOf(peer)
	if b == nil {
		return false
	}
	size := device.MessageSize(w.split.nextSize(), w.mtu)
	if b.peer != nil && (b.class != class || size > b.segment || b.count == maxSegments || len(b.messages)+size > maxOutbox) && !w.flush(b) {
		return false
	}
	if b.peer == nil {
		b.peer, b.class, b.segment = peer, class, size
	}
	packet := w.split.next()
	keypair.Seal(b.buffer[len(b.messages):], packet, number, w.mtu, &w.nonce)
	w.tally.sentPackets++
	w.tally.sentBytes += uint64(len(packet))
	b.messages = b.buffer[:len(b.messages)+size]
	b.count++
	return size == b.segment || w.flush(b)
}

// outboxOf returns the outbox of a peer, or an empty one; nil if a socket is full.
func (w *worker) outboxOf(peer *device.Peer) *outbox {
	var empty *outbox
	for i := range w.outboxes {
		switch b := &w.outboxes[i]; b.peer {
		case peer:
			return b
		case nil:
			if empty == nil {
				empty = b
			}
		}
	}
	if empty == nil {
		w.evict = (w.evict + 1) % outboxes
		empty = &w.outboxes[w.evict]
		if !w.flush(empty) {
			return nil
		}
	}
	if empty.buffer == nil {
		empty.buffer = make([]byte, maxOutbox+maxMessage)
	}
	return empty
}

// flush sends the messages of an outbox. It returns false if the socket is full: what is left stays in the outbox,
// and goes first when the worker resumes.
func (w *worker) flush(b *outbox) bool {
	if b.peer == nil {
		return true
	}
	if b.peer.Running() {
		b.peer.Leaving()
		to := b.peer.Endpoint()
		if to == nil {
			to = &device.Endpoint{}
		}
		rest, sent, err := w.path.send(&w.datagram, b.messages, b.segment, b.class, to, b.peer)
		b.peer.Sent(sent)
		w.vain = w.vain && sent == 0
		if errors.Is(err, unix.EAGAIN) {
			if s := w.path.socketOf(to); s != nil { // else its port has just been closed
				b.messages, w.stalled = rest, s
				return false
			}
		}
		if err != nil {
			w.tally.sentLost += uint64(max(1, (len(b.messages)-sent)/b.segment))
			w.path.device.Errorf("%v - Failed to send data packets: %v", b.peer, err)
		}
	}
	b.peer, b.messages, b.count = nil, b.buffer[:0], 0
	return true
}

// send sends messages to where a peer is, as one datagram that the kernel splits, or one by one if it refuses that.
// It returns what is left if the socket is full, and how many bytes have left.
func (p *Path) send(d *datagram, messages []byte, segment int, class byte, to *device.Endpoint, peer *device.Peer) (rest []byte, sent int, err error) {
	if !to.Remote.IsValid() {
		return nil, 0, errNoEndpoint
	}
	s := p.socketOf(to)
	if s == nil {
		return nil, 0, unix.EAFNOSUPPORT
	}
	if len(messages) > segment && (peer == nil || peer.Splits()) {
		switch e := d.send(s, messages, segment, class, to); e {
		case 0:
			return nil, len(messages), nil
		case unix.EIO: // the device on the way to this peer does not make checksums
			if peer != nil {
				peer.Unsplit()
			}
		case unix.EINVAL, unix.EMSGSIZE, unix.ENODEV, unix.ENETUNREACH: // a message is too long, or gone says why
		default:
			return messages, 0, e
		}
	}
	for len(messages) > 0 {
		n := min(segment, len(messages))
		e := d.send(s, messages[:n], segment, class, to)
		if gone(e) && to.Held == nil && (to.Local.IsValid() || to.Interface != 0) {
			if peer != nil {
				peer.ForgetLocal()
			}
			to = to.Anyhow()
			e = d.send(s, messages[:n], segment, class, to)
		}
		switch e {
		case 0:
			sent += n
		case unix.EAGAIN:
			return messages, sent, e
		default:
			err = e
		}
		messages = messages[n:]
	}
	return nil, sent, err
}

// gone reports whether an error may be that the address is gone which messages come from, or that the interface is
// gone or down.
func gone(e unix.Errno) bool { return e == unix.EINVAL || e == unix.ENODEV || e == unix.ENETUNREACH }

var errNoEndpoint = errors.New("no known endpoint for peer")
