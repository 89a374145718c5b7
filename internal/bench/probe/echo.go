package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a prober waits for packets after the last one was sent.
const patience = time.Second

// Echo measures round trips by ICMP echo, which the far host's kernel answers.
type Echo struct {
	From     Place
	Source   netip.Addr // IPv4; the zero Addr: whichever the route gives
	To       netip.Addr // IPv4
	Interval time.Duration
	Count    int       // at most 65,536
	Until    time.Time // no request is sent after it; zero: however long it takes
}

// Types of ICMP (RFC 792) and the length of the messages that are sent: as many
// bytes as ping's.
const (
	icmpEchoReply   = 0
	icmpEchoRequest = 8
	icmpHeader      = 8
	echoLength      = 64
)

// Run sends the requests and waits for the answers. It is an error if none
// comes of those that were sent.
func (e *Echo) Run(ctx context.Context) (*Delays, error) {
	var s *socket
	err := e.From(func() (err error) {
		s, err = open(unix.SOCK_RAW, unix.IPPROTO_ICMP, netip.AddrPortFrom(e.Source, 0))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("measure round trips to %s: %w", e.To, err)
	}
	id := uint16(os.Getpid()) ^ uint16(s.fd<<8)
	series := newSeries(e.Count)
	receiver := series.collect(ctx, s, func(packet []byte) (int, bool) { return echoAnswer(packet, id) })
	sent, err := pace(e.Count, e.Interval, e.Until, func(i int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		message := echoMessage(id, uint16(i))
		series.sent[i] = clock()
		if err := unix.Sendto(s.fd, message, 0, sockaddr(netip.AddrPortFrom(e.To, 0))); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return fmt.Errorf("send: %w", err)
		}
		return nil
	})
	return series.finish("measure round trips to "+e.To.String(), s, receiver, sent, err)
}

func echoMessage(id, sequence uint16) []byte {
	m := make([]byte, echoLength)
	m[0] = icmpEchoRequest
	binary.BigEndian.PutUint16(m[4:], id)
	binary.BigEndian.PutUint16(m[6:], sequence)
	binary.BigEndian.PutUint16(m[2:], checksum(m))
	return m
}

// echoAnswer finds which request an IPv4 packet answers.
func echoAnswer(packet []byte, id uint16) (sequence int, ok bool) {
	if len(packet) < 1 {
		return 0, false
	}
	header := int(packet[0]&15) * 4
	if len(packet) < header+icmpHeader {
		return 0, false
	}
	m := packet[header:]
	if m[0] != icmpEchoReply || binary.BigEndian.Uint16(m[4:]) != id {
		return 0, false
	}
	return int(binary.BigEndian.Uint16(m[6:])), true
}

// checksum is that of RFC 1071, over an even number of bytes.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	sum = sum>>16 + sum&0xffff
	sum += sum >> 16
	return ^uint16(sum)
}

// series are the times of the packets of a run.
type series struct {
	sent, arrived []int64
	quit          chan struct{} // closed when nothing more is waited for
}

func newSeries(n int) *series {
	return &series{make([]int64, n), make([]int64, n), make(chan struct{})}
}

// collect notes arrivals until all that may come are there or [series.finish] has
// waited long enough. What it gives ends with the reason.
func (s *series) collect(ctx context.Context, from *socket, which func([]byte) (int, bool)) <-chan error {
	done := make(chan error, 1)
	go func() {
		buffer := make([]byte, 2048)
		for left := len(s.arrived); left > 0; {
			select {
			case <-s.quit:
				done <- nil
				return
			case <-ctx.Done():
				done <- ctx.Err()
				return
			default:
			}
			n, at, err := from.receive(buffer)
			if errors.Is(err, errQuiet) {
				continue
			}
			if err != nil {
				done <- err
				return
			}
			if i, ok := which(buffer[:n]); ok && i < len(s.arrived) && s.arrived[i] == never {
				s.arrived[i] = at
				left--
			}
		}
		done <- nil
	}()
	return done
}

// finish waits for what is still under way and evaluates the packets that were
// sent, the first of the series.
func (s *series) finish(what string, from *socket, receiver <-chan error, sent int, sending error) (*Delays, error) {
	var receiving error
	if sending == nil {
		select {
		case receiving = <-receiver:
			receiver = nil
		case <-time.After(patience):
		}
	}
	close(s.quit)
	if receiver != nil {
		receiving = <-receiver
	}
	if err := errors.Join(sending, receiving, from.close()); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	d := delays(s.sent[:sent], s.arrived[:sent])
	if d.Lost == d.Sent && d.Sent > 0 {
		return nil, fmt.Errorf("%s: none of %d packets came back", what, d.Sent)
	}
	return d, nil
}
