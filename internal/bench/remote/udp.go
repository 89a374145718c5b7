package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// udpTail is how much longer than the window a UDP sender goes on, so that the
	// window, which begins when the first datagram arrives, is filled.
	udpTail = 100 * time.Millisecond
	// udpDrain is how long a receiver waits for what is still under way.
	udpDrain = 300 * time.Millisecond
	// udpBurst is the longest pause that a sender makes up for. What it missed
	// beyond that is not sent: a burst would be another test.
	udpBurst = 5 * time.Millisecond
	// keptUp is the share of the datagrams due that a sender has to have sent.
	keptUp = 0.97
	// udpBuffer is what a receiver asks for, in bytes.
	udpBuffer = 4 << 20
)

// sendUDP sends datagrams of a run at its rate, evenly, for its time.
func sendUDP(ctx context.Context, c *net.UDPConn, tag [tagLen]byte, r *Run, budget *account) (sent, error) {
	perSecond := r.Rate / 8 / float64(r.Frame)
	head := datagram{kind: kindData, tag: tag}
	packet := append(head.append(nil), noise(r.Payload-dataHeader)...)
	begun := time.Now()
	span := r.Omit + r.Count + udpTail
	var s sent
	missed := 0.0
	for ctx.Err() == nil {
		now := time.Since(begun)
		if now >= span {
			break
		}
		due := now.Seconds()*perSecond - missed - float64(s.Packets) + 1
		if most := max(perSecond*udpBurst.Seconds(), 1) + 1; due > most {
			missed += due - most
			due = most
		}
		for range int(due) {
			if !budget.spend(r.Frame) {
				return s, errBudget
			}
			binary.BigEndian.PutUint32(packet[10:], uint32(s.Packets))
			binary.BigEndian.PutUint32(packet[14:], uint32(microseconds(time.Since(begun))))
			if _, err := c.Write(packet); err != nil && !passing(err) {
				return s, err
			}
			s.Packets++
			s.Bytes += uint64(r.Payload)
		}
		time.Sleep(wait(s.Packets, missed, perSecond, begun))
	}
	s.Held = float64(s.Packets) < keptUp*perSecond*time.Since(begun).Seconds()
	return s, context.Cause(ctx)
}

// wait is the time until the next datagram is due.
func wait(packets uint64, missed, perSecond float64, begun time.Time) time.Duration {
	next := (float64(packets) + missed) / perSecond
	return min(time.Duration(next*float64(time.Second))-time.Since(begun), 10*time.Millisecond)
}

// passing are errors that tell of the path, not of the socket: the queue of the
// own link is full, or somebody answered that nobody is there.
func passing(err error) bool {
	return errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
}

// udpReceiver counts datagrams of a run. Only its own goroutine writes what is
// not atomic; it is read after that has ended.
type udpReceiver struct {
	meter
	tag       [tagLen]byte
	payload   int // bytes of a datagram that counts
	overhead  int // bytes of a frame besides
	reordered atomic.Uint64
	jitter    atomic.Int64 // nanoseconds
}

// receive reads until the socket is closed. Limit is for the server: a client
// that sends more than it was given is cut off. A datagram of another length than
// was agreed on is charged with what it has, and counts for nothing.
func (u *udpReceiver) receive(c *net.UDPConn, limit *bucket, budget *account) error {
	buffer := make([]byte, maxPayload+1)
	begun := time.Now()
	var highest uint32
	var transit, jitter float64 // of microseconds
	for first := true; ; {
		n, err := c.Read(buffer)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil && passing(err):
			continue
		case err != nil:
			return err
		}
		d, err := parseDatagram(buffer[:n])
		if err != nil || d.kind != kindData || d.tag != u.tag {
			continue
		}
		frame := n + u.overhead
		if !budget.spend(frame) {
			return errBudget
		}
		if limit.take(frame) > time.Second {
			return errTooFast
		}
		if n != u.payload {
			continue
		}
		u.add(frame)
		now := float64(time.Since(begun).Microseconds()) - float64(d.sent)
		if !first && d.number < highest {
			u.reordered.Add(1)
		}
		if !first {
			jitter += (abs(now-transit) - jitter) / 16
			u.jitter.Store(int64(jitter * 1e3))
		}
		first, transit, highest = false, now, max(highest, d.number)
	}
}

func abs(v float64) float64 { return max(v, -v) }

// overflowed is how many datagrams found no room in a socket's buffer.
func overflowed(c *net.UDPConn) (n uint64) {
	const drops = 8 // SK_MEMINFO_DROPS (linux/sock_diag.h)
	var info [drops + 1]uint32
	size := uint32(unsafe.Sizeof(info))
	err := control(c, func(fd int) error {
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
		if errno != 0 {
			return errno
		}
		return nil
	})
	if err != nil {
		return 0
	}
	return uint64(info[drops])
}
