package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"
)

// DatagramPlan is a stream of UDP datagrams that are large enough to be fragmented.
type DatagramPlan struct {
	Source, Target netip.Addr
	Size           int // bytes of a datagram, at least 8
	Sustain        time.Duration
}

// DatagramResult is the outcome of a DatagramPlan.
type DatagramResult struct {
	Sent, Arrived int // whole datagrams
}

// Loss is the share of datagrams that did not arrive (0 to 1).
func (r *DatagramResult) Loss() float64 {
	if r.Sent == 0 {
		return 0
	}
	return 1 - float64(r.Arrived)/float64(r.Sent)
}

// window is the number of datagrams that may be under way. The receiver confirms each
// half window. A sender that hears nothing waits a moment and goes on.
const (
	window        = 64
	windowTimeout = 20 * time.Millisecond
)

// Datagrams sends from one host to another. The receiver answers each half window, so
// neither end overruns the other: any loss happened between them.
func Datagrams(ctx context.Context, from, to Host, p DatagramPlan) (r DatagramResult, err error) {
	receiver, err := listenUDP(to, p.Target)
	if err != nil {
		return r, err
	}
	arrived := make(chan int, 1)
	go func() { arrived <- receive(receiver, p.Size) }()
	err = from.do(func() error {
		r.Sent, err = send(ctx, receiver.LocalAddr().(*net.UDPAddr).AddrPort(), p)
		return err
	})
	time.Sleep(windowTimeout) // for datagrams still under way
	err = errors.Join(err, receiver.SetReadDeadline(time.Now()))
	r.Arrived = <-arrived
	return r, errors.Join(err, receiver.Close())
}

func listenUDP(h Host, addr netip.Addr) (c *net.UDPConn, err error) {
	err = h.do(func() error {
		c, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen in %s: %w", h.namespace(), err)
	}
	return c, c.SetReadBuffer(4 << 20)
}

// receive counts whole datagrams until its socket's deadline.
func receive(c *net.UDPConn, size int) (n int) {
	b := make([]byte, size+1)
	for {
		length, from, err := c.ReadFromUDPAddrPort(b)
		if err != nil {
			return n // deadline: the sender is done
		}
		if length != size {
			continue
		}
		if n++; n%(window/2) == 0 {
			c.WriteToUDPAddrPort(b[:8], from) //nolint:errcheck // if it fails, the sender waits in vain and goes on
		}
	}
}

func send(ctx context.Context, to netip.AddrPort, p DatagramPlan) (sent int, err error) {
	c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(p.Source, 0)), net.UDPAddrFromAddrPort(to))
	if err != nil {
		return 0, fmt.Errorf("send datagrams: %w", err)
	}
	defer c.Close()
	datagram, answer := make([]byte, p.Size), make([]byte, 64)
	for end := time.Now().Add(p.Sustain); time.Now().Before(end) && ctx.Err() == nil; {
		for range window / 2 {
			if _, err := c.Write(datagram); err != nil {
				return sent, fmt.Errorf("send a datagram of %d bytes: %w", p.Size, err)
			}
			sent++
		}
		if sent < window {
			continue
		}
		if err := c.SetReadDeadline(time.Now().Add(windowTimeout)); err != nil {
			return sent, err
		}
		if _, err := c.Read(answer); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return sent, fmt.Errorf("wait for the receiver: %w", err)
		}
	}
	return sent, ctx.Err()
}
