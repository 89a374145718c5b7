package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of what a server sends by UDP to an address before it is proven, and
// of what it sends back after.
const (
	maxChallenges = 16   // for one ticket
	maxEchoes     = 2000 // per second
)

// legs are the UDP flows of one session. Their common socket answers hellos
// only: those from the address that the authenticated connection came from, with a
// ticket of the session, by a challenge that is shorter than they are. A client
// that can repeat the challenge over TLS is at that address; a socket of its own is
// then connected to it, and the server never sends anything anywhere else.
type legs struct {
	local   netip.AddrPort
	peer    netip.Addr
	greeter *net.UDPConn
	mu      sync.Mutex
	waiting map[ticket]*claim
}

// claim is where somebody with a ticket says to be.
type claim struct {
	cookie     ticket
	addr       netip.AddrPort // not valid: nobody has said hello
	challenges int
}

// openLegs opens the greeting socket at the address that the client speaks to.
func openLegs(ctx context.Context, local netip.AddrPort, peer netip.Addr) (*legs, error) {
	c := net.ListenConfig{Control: reusePort}
	packets, err := c.ListenPacket(ctx, "udp", local.String())
	if err != nil {
		return nil, fmt.Errorf("open the UDP port: %w", err)
	}
	l := &legs{local: local, peer: peer.Unmap(), greeter: packets.(*net.UDPConn), waiting: map[ticket]*claim{}}
	go l.greet()
	return l, nil
}

// reusePort lets the sockets of a session share the server's port; the kernel
// allows it to sockets of the same user only.
func reusePort(_, _ string, c syscall.RawConn) error {
	var inner error
	if err := c.Control(func(fd uintptr) {
		inner = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}); err != nil {
		return err
	}
	return inner
}

// expect lets a ticket's holder prove its address.
func (l *legs) expect(t ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[t] = &claim{}
}

// forget ends that.
func (l *legs) forget(t ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, t)
}

func (l *legs) greet() {
	buffer := make([]byte, helloLen+1)
	for {
		n, from, err := l.greeter.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(time.Millisecond) // memory has run out, or an earlier answer was refused
			continue
		}
		if answer := l.challenge(buffer[:n], from); answer != nil {
			// What does not arrive is asked for again.
			_, _ = l.greeter.WriteToUDPAddrPort(answer, from)
		}
	}
}

// challenge is the answer to a datagram; nil: none.
func (l *legs) challenge(b []byte, from netip.AddrPort) []byte {
	d, err := parseDatagram(b)
	if err != nil || d.kind != kindHello || from.Addr().Unmap() != l.peer {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.waiting[d.ticket]
	if c == nil || c.challenges >= maxChallenges {
		return nil
	}
	if c.addr != from {
		c.addr, c.cookie = from, newTicket()
	}
	c.challenges++
	answer := datagram{kind: kindChallenge, ticket: d.ticket, cookie: c.cookie}
	return answer.append(nil)
}

// prove checks a proof and gives a socket connected to the address that is
// proven by it. A ticket is proven once.
func (l *legs) prove(ctx context.Context, t, cookie ticket) (*net.UDPConn, error) {
	l.mu.Lock()
	c := l.waiting[t]
	delete(l.waiting, t)
	l.mu.Unlock()
	if c == nil || !c.addr.IsValid() || !c.cookie.equal(cookie) {
		return nil, errors.New("this proves no address")
	}
	return connectUDP(ctx, l.local, c.addr)
}

// connectUDP opens a socket from which and to which the kernel lets pass only
// datagrams of one address and port. A local address that is not valid is chosen
// by the kernel.
func connectUDP(ctx context.Context, local, remote netip.AddrPort) (*net.UDPConn, error) {
	d := net.Dialer{}
	if local.IsValid() {
		d.LocalAddr, d.Control = net.UDPAddrFromAddrPort(local), reusePort
	}
	c, err := d.DialContext(ctx, "udp", remote.String())
	if err != nil {
		return nil, fmt.Errorf("open a UDP flow: %w", err)
	}
	u := c.(*net.UDPConn)
	if err := u.SetReadBuffer(udpBuffer); err != nil {
		return nil, errors.Join(fmt.Errorf("open a UDP flow: %w", err), u.Close())
	}
	return u, nil
}

func (l *legs) close() { l.greeter.Close() }

// echo sends probes back to the one address that the socket is connected to,
// each as it came, so many a second at most, until the socket is closed.
func echo(c *net.UDPConn, tag [tagLen]byte) {
	buffer := make([]byte, probeLen+1)
	limit := newBucket(maxEchoes * probeLen * 8)
	for {
		n, err := c.Read(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		d, err := parseDatagram(buffer[:n])
		if err != nil || d.kind != kindProbe || d.tag != tag {
			continue
		}
		if limit.take(n) > 0 {
			time.Sleep(time.Second / 10) // and what comes meanwhile is lost
		}
		buffer[0] = kindEcho
		_, _ = c.Write(buffer[:n]) // lost like any other datagram
	}
}

// sayHello sends hellos until the server's challenge comes, and gives its
// cookie.
func sayHello(ctx context.Context, c *net.UDPConn, t ticket) (cookie ticket, err error) {
	const tries, patience = 10, 200 * time.Millisecond
	d := datagram{kind: kindHello, ticket: t}
	packet, buffer := d.append(nil), make([]byte, challengeLen+1)
	for range tries {
		if err := ctx.Err(); err != nil {
			return cookie, err
		}
		if _, err := c.Write(packet); err != nil && !passing(err) {
			return cookie, fmt.Errorf("say hello by UDP: %w", err)
		}
		if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return cookie, fmt.Errorf("say hello by UDP: %w", err)
		}
		n, err := c.Read(buffer)
		if err != nil {
			if passing(err) {
				time.Sleep(patience)
			}
			continue
		}
		got, err := parseDatagram(buffer[:n])
		if err == nil && got.kind == kindChallenge && got.ticket.equal(t) {
			return got.cookie, c.SetReadDeadline(time.Time{})
		}
	}
	return cookie, errNoUDP
}

var errNoUDP = errors.New("the server's UDP port is not reached: a filter between, or address translation that gives UDP another address")
