package probe

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// patience is how long a prober waits for packets after the last one was sent.
const patience = time.Second

// Echo measures round trips by ICMP echo. The far host's kernel replies.
type Echo struct {
	From     Place
	Source   netip.Addr // the zero Addr: the route chooses
	To       netip.Addr
	Interval time.Duration
	Count    int       // at most 65,536
	Until    time.Time // nothing is sent after this; zero: no limit
}

// payload makes messages as long as ping's.
var payload = make([]byte, 56)

// ErrNoReply says that no packet of the series arrived.
var ErrNoReply = errors.New("none came back")

// Run sends the requests and waits for the replies. It returns an error if no reply
// arrives.
func (e *Echo) Run(ctx context.Context) (*Delays, error) {
	var s *socket
	var kind echoKind
	err := e.From(func() (err error) {
		s, kind, err = e.open()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("measure round trips to %s: %w", e.To, err)
	}
	kind.id = (os.Getpid() ^ s.fd<<8) & 0xffff
	series := newSeries(e.Count)
	receiver := series.collect(ctx, s, func(packet []byte) (int, bool) { return kind.answer(packet) })
	sent, err := pace(e.Count, e.Interval, e.Until, func(i int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		message, err := kind.message(i)
		if err != nil {
			return err
		}
		series.sent[i] = clock()
		if err := unix.Sendto(s.fd, message, 0, sockaddr(netip.AddrPortFrom(e.To, 0))); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return fmt.Errorf("send: %w", err)
		}
		return nil
	})
	return series.finish("measure round trips to "+e.To.String(), s, receiver, sent, err)
}

// echoKind is the format of requests and replies on a socket.
type echoKind struct {
	request, reply icmp.Type
	headed         bool // replies include their IPv4 header
	own            bool // the kernel chooses the id, and passes only replies to us
	id             int
}

// open opens a raw socket. Without root it opens a ping socket of the kernel, if
// net.ipv4.ping_group_range allows it.
func (e *Echo) open() (*socket, echoKind, error) {
	family, protocol, kind := unix.AF_INET, unix.IPPROTO_ICMP, echoKind{request: ipv4.ICMPTypeEcho, reply: ipv4.ICMPTypeEchoReply, headed: true}
	if e.To.Is6() {
		family, protocol, kind = unix.AF_INET6, unix.IPPROTO_ICMPV6, echoKind{request: ipv6.ICMPTypeEchoRequest, reply: ipv6.ICMPTypeEchoReply}
	}
	s, err := open(family, unix.SOCK_RAW, protocol, netip.AddrPortFrom(e.Source, 0))
	if errors.Is(err, unix.EPERM) {
		kind.headed, kind.own = false, true
		s, err = open(family, unix.SOCK_DGRAM, protocol, netip.AddrPortFrom(e.Source, 0))
	}
	return s, kind, err
}

func (k *echoKind) message(sequence int) ([]byte, error) {
	m := icmp.Message{Type: k.request, Body: &icmp.Echo{ID: k.id, Seq: sequence, Data: payload}}
	return m.Marshal(nil) // the kernel writes the checksum of ICMPv6
}

// answer returns the number of the request that a packet answers.
func (k *echoKind) answer(packet []byte) (sequence int, ok bool) {
	if k.headed && len(packet) > 0 {
		packet = packet[min(int(packet[0]&15)*4, len(packet)):]
	}
	m, err := icmp.ParseMessage(k.reply.Protocol(), packet)
	if err != nil || m.Type != k.reply {
		return 0, false
	}
	echo, ok := m.Body.(*icmp.Echo)
	if !ok || !k.own && echo.ID != k.id {
		return 0, false
	}
	return echo.Seq, true
}

// series holds the times of the packets of a run.
type series struct {
	sent, arrived []int64
	quit          chan struct{} // closed when nothing more is expected
}

func newSeries(n int) *series {
	return &series{make([]int64, n), make([]int64, n), make(chan struct{})}
}

// collect notes arrivals until all are there or [series.finish] has waited long enough.
// It returns why it ended.
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

// finish waits for packets under way and evaluates the packets that were sent, which are
// the first of the series.
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
		return d, fmt.Errorf("%s: %w of %d packets", what, ErrNoReply, d.Sent)
	}
	return d, nil
}
