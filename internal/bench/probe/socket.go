package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socket is a socket whose messages carry the time at which the kernel received
// them.
type socket struct{ fd int }

// open opens a socket bound to an address. The zero Addr means any.
func open(family, kind, protocol int, bind netip.AddrPort) (*socket, error) {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	s := &socket{fd}
	wake := unix.NsecToTimeval((50 * time.Millisecond).Nanoseconds())
	for _, err := range []error{
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<20),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wake),
	} {
		if err != nil {
			return nil, errors.Join(fmt.Errorf("set up a socket: %w", err), s.close())
		}
	}
	if bind.Addr().IsValid() || bind.Port() != 0 {
		if err := unix.Bind(fd, sockaddr(bind)); err != nil {
			return nil, errors.Join(fmt.Errorf("bind to %s: %w", bind, err), s.close())
		}
	}
	return s, nil
}

func (s *socket) close() error { return unix.Close(s.fd) }

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is6() {
		sa := &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
		if i, err := net.InterfaceByName(a.Addr().Zone()); err == nil {
			sa.ZoneId = uint32(i.Index)
		}
		return sa
	}
	sa := &unix.SockaddrInet4{Port: int(a.Port())}
	if a.Addr().IsValid() {
		sa.Addr = a.Addr().As4()
	}
	return sa
}

// errQuiet says that nothing arrived for a moment.
var errQuiet = errors.New("nothing was received")

// receive returns a message and when the kernel received it, in nanoseconds of the wall
// clock.
func (s *socket) receive(buffer []byte) (n int, at int64, err error) {
	control := make([]byte, 64)
	n, nc, _, _, err := unix.Recvmsg(s.fd, buffer, control, 0)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return 0, 0, errQuiet
	case err != nil:
		return 0, 0, fmt.Errorf("receive: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:nc])
	if err != nil {
		return 0, 0, fmt.Errorf("read the time of a packet: %w", err)
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			seconds, nanos := binary.NativeEndian.Uint64(m.Data), binary.NativeEndian.Uint64(m.Data[8:])
			return n, int64(seconds)*1e9 + int64(nanos), nil
		}
	}
	return 0, 0, errors.New("read the time of a packet: the kernel gave none")
}

// clock returns the wall clock, which the kernel also uses for times of arrival.
func clock() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &t); err != nil {
		return time.Now().UnixNano()
	}
	return t.Nano()
}

// pace calls send n times at fixed times from now on, on a thread of its own with
// priority over other programs. A late call does not delay the later ones. It begins none
// after until, unless that is zero. It returns the number of calls.
func pace(n int, interval time.Duration, until time.Time, send func(i int) error) (sent int, err error) {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its priority
		done <- func() error {
			// Without root the prober has the same priority as other
			// programs.
			err := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -20)
			if err != nil && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) {
				return fmt.Errorf("give the prober priority: %w", err)
			}
			next := time.Now()
			for i := range n {
				if wait := time.Until(next); wait > 0 {
					pause := unix.NsecToTimespec(wait.Nanoseconds())
					unix.Nanosleep(&pause, nil) //nolint:errcheck // a signal ends it early, by microseconds
				}
				if !until.IsZero() && !time.Now().Before(until) {
					return nil
				}
				if err := send(i); err != nil {
					return err
				}
				sent++
				next = next.Add(interval)
			}
			return nil
		}()
	}()
	err = <-done // nothing is sent or counted after this
	return sent, err
}
