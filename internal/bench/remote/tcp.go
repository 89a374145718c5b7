package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// block is what a TCP connection sends again and again, in bytes.
const block = 256 << 10

// senderTail is how much longer than the window a TCP sender would go on: the
// receiver ends a run, by closing.
const senderTail = 2 * time.Second

// noise fills what is sent: zeros would be compressed on the way by some links.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) //nolint:errcheck // never fails (crypto/rand)
	return b
}

// sendTCP sends on all connections, together at most at a rate in bit/s (0: no
// bound), until the receiver closes them or the time is over.
func sendTCP(ctx context.Context, conns []*net.TCPConn, rate float64, span time.Duration, budget *account) (sent, error) {
	stop := context.AfterFunc(ctx, func() { closeConns(conns) })
	defer stop()
	data := noise(block)
	var total, retransmits atomic.Uint64
	end := time.Now().Add(span + senderTail)
	errs := each(conns, func(c *net.TCPConn) error {
		defer c.Close()
		if err := pace(c, rate/float64(len(conns))); err != nil {
			return err
		}
		err := sendUntil(c, data, end, budget, &total)
		retransmits.Add(retransmitted(c))
		return err
	})
	if ctx.Err() != nil {
		errs = context.Cause(ctx)
	}
	return sent{Bytes: total.Load(), Retransmits: retransmits.Load()}, errs
}

// sendUntil writes until the other side closes, which is how a run ends.
func sendUntil(c *net.TCPConn, data []byte, end time.Time, budget *account, total *atomic.Uint64) error {
	if err := c.SetWriteDeadline(end); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	for {
		if !budget.spend(len(data)) {
			return errBudget
		}
		n, err := c.Write(data)
		total.Add(uint64(n))
		switch {
		case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET),
			errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return fmt.Errorf("send: %w", err)
		}
	}
}

// pace makes the kernel space a connection's segments; 0 bit/s: it does not.
func pace(c *net.TCPConn, rate float64) error {
	if rate == 0 {
		return nil
	}
	return control(c, func(fd int) error {
		return os.NewSyscallError("set SO_MAX_PACING_RATE", unix.SetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, uint64(rate/8)))
	})
}

// retransmitted is how many segments a connection has sent again; 0 if it is
// not known any more.
func retransmitted(c *net.TCPConn) (n uint64) {
	err := control(c, func(fd int) error {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil {
			n = uint64(info.Total_retrans)
		}
		return err
	})
	if err != nil {
		return 0
	}
	return n
}

// receiveTCP counts what comes on all connections until they are closed, from
// either side.
func receiveTCP(conns []*net.TCPConn, m *meter, limit *bucket, budget *account) error {
	return each(conns, func(c *net.TCPConn) error {
		raw, err := c.SyscallConn()
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		scratch := make([]byte, limit.piece())
		for {
			n, err := discard(raw, scratch)
			switch {
			case errors.Is(err, syscall.ECONNRESET), errors.Is(err, net.ErrClosed), n == 0 && err == nil:
				return nil
			case err != nil:
				return fmt.Errorf("receive: %w", err)
			case !budget.spend(n):
				return errBudget
			}
			m.add(n)
			time.Sleep(limit.take(n))
		}
	})
}

// discard takes bytes from a connection without copying them out of the
// kernel (tcp(7), MSG_TRUNC): the receiver is to be no limit. 0 is the end.
func discard(raw syscall.RawConn, scratch []byte) (n int, err error) {
	waiting := raw.Read(func(fd uintptr) bool {
		for {
			n, _, err = unix.Recvfrom(int(fd), scratch, unix.MSG_TRUNC|unix.MSG_DONTWAIT)
			if !errors.Is(err, unix.EINTR) {
				return !errors.Is(err, unix.EAGAIN)
			}
		}
	})
	if waiting != nil {
		return 0, waiting
	}
	return n, err
}

func control(c syscall.Conn, f func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// each calls f for all connections at once and waits for all.
func each(conns []*net.TCPConn, f func(*net.TCPConn) error) error {
	errs := make([]error, len(conns))
	var all sync.WaitGroup
	for i, c := range conns {
		all.Go(func() { errs[i] = f(c) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err // they are alike
		}
	}
	return nil
}

func closeConns(conns []*net.TCPConn) {
	for _, c := range conns {
		c.Close()
	}
}
