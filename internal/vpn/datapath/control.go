package datapath

import (
	"bytes"
	"errors"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/device"
)

// maxLate is how many messages may wait for room in their socket.
const maxLate = 64

// late is a message that waits for room in its socket.
type late struct {
	message []byte
	to      device.Endpoint
}

// Send sends a message that is no data, or that has waited for a session. It never waits: whoever sends it may be a
// worker, or handle the handshakes of all peers. A message that its socket has no room for leaves when it has.
func (p *Path) Send(message []byte, to *device.Endpoint) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	p.control.Lock()
	defer p.control.Unlock()
	err := error(unix.EAGAIN) // none overtakes another
	if len(p.late) == 0 {
		_, _, err = p.send(&p.dg, message, len(message), p.outer(0), to, nil)
	}
	if !errors.Is(err, unix.EAGAIN) || len(p.late) == maxLate || p.ending.Load() {
		return err
	}
	p.late = append(p.late, late{bytes.Clone(message), *to})
	if len(p.late) == 1 {
		p.workers.Add(1)
		go p.sendLate()
	}
	return nil
}

// sendLate sends what waits for room, until there is none left or the path is closed.
func (p *Path) sendLate() {
	defer p.workers.Done()
	for {
		full := p.trySendLate()
		if full == nil {
			return
		}
		waits := []unix.PollFd{{Fd: int32(p.stop), Events: unix.POLLIN}, {Fd: int32(full.fd), Events: unix.POLLOUT}}
		unix.Poll(waits, -1)            //nolint:errcheck // a signal: it is tried again
		unix.Poll(waits[:1], roomPause) //nolint:errcheck // there may be no room though it was said, again and again
	}
}

// trySendLate returns the socket that the next message waits for, or nil.
func (p *Path) trySendLate() *socket {
	p.control.Lock()
	defer p.control.Unlock()
	for len(p.late) > 0 && !p.ending.Load() {
		m := &p.late[0]
		_, _, err := p.send(&p.dg, m.message, len(m.message), p.outer(0), &m.to, nil)
		if errors.Is(err, unix.EAGAIN) {
			return p.socketOf(&m.to)
		}
		if err != nil {
			p.device.Errorf("Failed to send a message that waited for room: %v", err)
		}
		p.late = p.late[1:]
	}
	p.late = nil
	return nil
}
