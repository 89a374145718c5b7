package datapath

import "weir/internal/vpn/device"

// A note is a message of one end's engine to that of the other, in place of a packet. Its first four bits are zero,
// which is no version of IP: every WireGuard drops it, though it may count it as data and send a keepalive. No host behind
// an end can send it through the tunnel, and it does not reach the interface. So it comes from who has the keys.

// leastNote is the size of the smallest.
const leastNote = device.PaddingMultiple

func noteOf(content []byte) bool { return len(content) >= leastNote && content[0]>>4 == 0 }

// Hear has f be called with each note that comes, and whom it is from: a peer, or a lane of one. The note is gone when f
// returns, which must not wait.
func (p *Path) Hear(f func(from *device.Peer, note []byte)) { p.hear.Store(&f) }

// noted takes a note.
func (w *worker) noted(p *packet) bool {
	if f := w.path.hear.Load(); f != nil {
		(*f)(p.peer, p.packet)
	}
	return true
}

// Tell sends a note to a peer, or by a lane of one. Like what measures a path it says nothing of whether the session works,
// so the timers are not told of data.
func (p *Path) Tell(peer *device.Peer, note []byte) error {
	padded := append(make([]byte, 0, len(note)+device.PaddingMultiple), note...)
	message, to, err := sealOne(peer, padded, p.device.MTU())
	if err != nil {
		return err
	}
	if err := p.Send(message, to); err != nil {
		return err
	}
	peer.Told()
	return nil
}
