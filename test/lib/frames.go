package lib

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// Frames sends and receives the frames of a device in one of the hosts, as they are.
type Frames struct {
	b  *Box
	fd int
}

// Frames opens a device. What other programs of the host send is not received.
func (b *Box) Frames(host, device string) *Frames {
	b.Helper()
	f := &Frames{b: b}
	err := b.Do(host, func() (err error) {
		own, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // in network order
		if f.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all); err != nil {
			return err
		}
		if err := unix.SetsockoptInt(f.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
			return err
		}
		return unix.Bind(f.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: own.Index})
	})
	if err != nil {
		b.Fatalf("frames of %s in %s: %v", device, host, err)
	}
	b.Cleanup(func() { _ = unix.Close(f.fd) }) // nothing is written to it
	return f
}

// Send sends a frame.
func (f *Frames) Send(frame []byte) {
	f.b.Helper()
	if _, err := unix.Write(f.fd, frame); err != nil {
		f.b.Fatalf("send a frame: %v", err)
	}
}

// Next returns the next frame that arrives, or nil if none does in so long a time.
func (f *Frames) Next(patience time.Duration) []byte {
	f.b.Helper()
	for end := time.Now().Add(patience); ; {
		fds := []unix.PollFd{{Fd: int32(f.fd), Events: unix.POLLIN}} //nolint:gosec // a descriptor is small
		n, err := unix.Poll(fds, int(max(time.Until(end), 0).Milliseconds()))
		switch {
		case err == unix.EINTR: //nolint:errorlint // as it comes from the system call
			continue
		case err != nil:
			f.b.Fatalf("wait for a frame: %v", err)
		case n == 0:
			return nil
		}
		frame := make([]byte, 2048)
		if n, err = unix.Read(f.fd, frame); err != nil {
			f.b.Fatalf("read a frame: %v", err)
		}
		return frame[:n]
	}
}
