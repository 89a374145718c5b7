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
const outboxes = 8

// fromTun takes packets from the worker's queue of the tun device, and sends them. It reports whether there were
// any.
func (w *worker) fromTun() bool {
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
		if w.split.start(w.read[:n]) {
			w.sendSegments()
		}
	}
	for i := range w.outboxes {
		w.flush(&w.outboxes[i])
	}
	return worked
}

// sendSegments sends what the splitter has. All of it goes to one peer.
func (w *worker) sendSegments() {
	s := &w.split
	peer := w.path.device.Route(destination(s.buffer))
	if peer == nil || !peer.Running() {
		return
	}
	if peer.Waiting() { // what waits goes first
		peer.SendStagedPackets()
	}
	keypair := peer.Sending(w.now())
	if keypair == nil {
		w.stage(peer)
		return
	}
	class := class(s.buffer) & ecnMask
	for s.count > 0 {
		n := min(s.count, maxSegments)
		number, ok := keypair.Reserve(n)
		if !ok {
			w.stage(peer)
			return
		}
		for i := range n {
			w.seal(peer, keypair, s.next(), number+uint64(i), class)
		}
	}
}

// stage has packets wait for a session.
func (w *worker) stage(peer *device.Peer) {
	for w.split.count > 0 {
		peer.Stage(w.split.next())
	}
	peer.SendStagedPackets() // there may be one by now
}

// seal encrypts a packet into the outbox of its peer.
func (w *worker) seal(peer *device.Peer, keypair *device.Keypair, packet []byte, number uint64, class byte) {
	b := w.outboxOf(peer)
	size := device.MessageSize(len(packet), w.mtu)
	if b.peer != nil && (b.class != class || size > b.segment || b.count == maxSegments || len(b.messages)+size > maxOutbox) {
		w.flush(b)
	}
	if b.peer == nil {
		b.peer, b.class, b.segment = peer, class, size
	}
	keypair.Seal(b.buffer[len(b.messages):], packet, number, w.mtu, &w.nonce)
	b.messages = b.buffer[:len(b.messages)+size]
	b.count++
	if size < b.segment {
		w.flush(b)
	}
}

// outboxOf returns the outbox of a peer, or an empty one.
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
		w.flush(empty)
	}
	if empty.buffer == nil {
		empty.buffer = make([]byte, maxOutbox+maxMessage)
	}
	return empty
}

// flush sends the messages of an outbox.
func (w *worker) flush(b *outbox) {
	if b.peer == nil {
		return
	}
	peer, n := b.peer, len(b.messages)
	to := peer.Endpoint()
	if to == nil {
		w.path.device.Errorf("%v - Failed to send data packets: no known endpoint for peer", peer)
	} else if err := w.path.send(&w.datagram, b.messages, b.segment, b.class, to, peer); err != nil {
		w.path.device.Errorf("%v - Failed to send data packets: %v", peer, err)
	} else {
		peer.Sent(n)
	}
	b.peer, b.messages, b.count = nil, b.buffer[:0], 0
}

// Waiting for room in a socket.
const (
	roomPause    = 10 // ms
	roomPatience = 10 // times
)

// send sends messages to where a peer is. What the kernel refuses to split is sent one by one.
func (p *Path) send(d *datagram, messages []byte, segment int, class byte, to *device.Endpoint, peer *device.Peer) error {
	s := p.socketOf(to)
	if s == nil {
		return unix.EAFNOSUPPORT
	}
	if len(messages) > segment && s.whole.Load() {
		return p.sendSingly(d, s, messages, segment, class, to)
	}
	err := d.sendPatiently(s, messages, segment, class, to)
	if errors.Is(err, unix.EINVAL) && to.Local.IsValid() { // the address may be gone
		if peer != nil {
			peer.ForgetLocal()
		}
		to = &device.Endpoint{Remote: to.Remote, Scope: to.Scope}
		err = d.sendPatiently(s, messages, segment, class, to)
	}
	if len(messages) > segment && (errors.Is(err, unix.EIO) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EMSGSIZE)) {
		if errors.Is(err, unix.EIO) { // the hardware does not make checksums
			s.whole.Store(true)
		}
		return p.sendSingly(d, s, messages, segment, class, to)
	}
	return err
}

func (p *Path) sendSingly(d *datagram, s *socket, messages []byte, segment int, class byte, to *device.Endpoint) (err error) {
	for len(messages) > 0 {
		n := min(segment, len(messages))
		if e := d.sendPatiently(s, messages[:n], segment, class, to); e != nil {
			err = e
		}
		messages = messages[n:]
	}
	return err
}

// sendPatiently waits for room in the socket, for a while.
func (d *datagram) sendPatiently(s *socket, messages []byte, segment int, class byte, to *device.Endpoint) error {
	for range roomPatience {
		err := d.send(s, messages, segment, class, to)
		if !errors.Is(err, unix.EAGAIN) {
			return err
		}
		wait := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLOUT}}
		unix.Poll(wait, roomPause) //nolint:errcheck // it is tried again
	}
	return unix.EAGAIN
}
