package gateway

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	answers "weir/internal/host/ping"
)

// A pinger sends echo requests through gateways and collects the replies. A request is
// handed to the gateway's device, so the box's routes do not matter. Rules decide about it
// as about any packet of the box, and make its state, which lets the reply in.
type pinger struct {
	replies4, replies6 *icmp.PacketConn // nil: not needed yet
	packets            int              // AF_PACKET socket; -1: none yet
	id                 uint16
	cookie             [8]byte // in each request: others may use the same id

	mu   sync.Mutex
	sent map[uint32]time.Time
	came map[uint32]time.Duration
	last uint32
}

// A ping is the last request of one gateway. 0: none.
type ping struct{ number uint32 }

func newPinger() *pinger {
	p := &pinger{packets: -1, sent: make(map[uint32]time.Time), came: make(map[uint32]time.Duration)}
	_, _ = rand.Read(p.cookie[:]) // never fails
	p.id = binary.NativeEndian.Uint16(p.cookie[:])
	return p
}

func (p *pinger) close() {
	for _, c := range []*icmp.PacketConn{p.replies4, p.replies6} {
		if c != nil {
			c.Close()
		}
	}
	if p.packets >= 0 {
		unix.Close(p.packets)
	}
}

// answer returns how long the reply to the last request took; false: there is none yet.
func (p *pinger) answer(of *ping) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	took, ok := p.came[of.number]
	delete(p.came, of.number)
	delete(p.sent, of.number)
	return took, ok
}

// send sends a request to a target by the neighbour at a place.
func (p *pinger) send(of *ping, target netip.Addr, at *place, mac net.HardwareAddr) error {
	if at.link.Ethernet && mac == nil {
		return errors.New("its neighbour does not answer")
	}
	from, err := sourceFor(target, at)
	if err != nil {
		return err
	}
	if err := p.open(target); err != nil {
		return err
	}
	p.mu.Lock()
	p.last++
	of.number = p.last
	p.mu.Unlock()
	packet, err := p.request(of.number, from, target)
	if err != nil {
		return err
	}
	to := &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_IP), Ifindex: at.link.Index, Halen: uint8(len(mac))}
	if target.Is6() {
		to.Protocol = networkOrder(unix.ETH_P_IPV6)
	}
	copy(to.Addr[:], mac)
	p.mu.Lock()
	p.sent[of.number] = time.Now()
	p.mu.Unlock()
	if err := unix.Sendto(p.packets, packet, 0, to); err != nil {
		if errors.Is(err, unix.ENOBUFS) {
			return errors.New("the ping was not sent: no rule passes it, or the queue is full")
		}
		return fmt.Errorf("send a ping: %w", err)
	}
	return nil
}

// sourceFor returns the address that the box has for a target at a link: of the same
// network, else the first one.
func sourceFor(target netip.Addr, at *place) (netip.Addr, error) {
	var first netip.Addr
	for _, a := range at.link.Addresses {
		own := a.Prefix.Addr()
		if own.Is4() != target.Is4() || own.IsLinkLocalUnicast() != target.IsLinkLocalUnicast() || a.Tentative {
			continue
		}
		if a.Prefix.Contains(at.via.Addr) {
			return own, nil
		}
		if !first.IsValid() {
			first = own
		}
	}
	if !first.IsValid() {
		return first, fmt.Errorf("%s has no address to ask from", at.link.Name)
	}
	return first, nil
}

// request returns an IP packet with an echo request.
func (p *pinger) request(number uint32, from, to netip.Addr) ([]byte, error) {
	data := binary.BigEndian.AppendUint32(bytes.Clone(p.cookie[:]), number)
	m := icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{ID: int(p.id), Seq: int(uint16(number)), Data: data}}
	if to.Is6() {
		m.Type = ipv6.ICMPTypeEchoRequest
		body, err := m.Marshal(icmp.IPv6PseudoHeader(from.AsSlice(), to.AsSlice()))
		if err != nil {
			return nil, err
		}
		header := make([]byte, 8, 40+len(body))
		header[0], header[6], header[7] = 6<<4, unix.IPPROTO_ICMPV6, 64
		binary.BigEndian.PutUint16(header[4:], uint16(len(body)))
		header = append(append(header, from.AsSlice()...), to.AsSlice()...)
		return append(header, body...), nil
	}
	body, err := m.Marshal(nil)
	if err != nil {
		return nil, err
	}
	header := make([]byte, 12, 20+len(body))
	header[0], header[6], header[8], header[9] = 4<<4|5, 1<<6, 64, unix.IPPROTO_ICMP // with DF
	binary.BigEndian.PutUint16(header[2:], uint16(20+len(body)))
	header = append(append(header, from.AsSlice()...), to.AsSlice()...)
	binary.BigEndian.PutUint16(header[10:], headerSum(header))
	return append(header, body...), nil
}

// headerSum is the checksum of an IPv4 header (RFC 791, 3.1).
func headerSum(header []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	sum = sum&0xffff + sum>>16
	return ^uint16(sum + sum>>16)
}

func networkOrder(x uint16) uint16 { return x<<8 | x>>8 }

// open opens what pings of a family need.
func (p *pinger) open(target netip.Addr) (err error) {
	if p.packets < 0 {
		if p.packets, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			return fmt.Errorf("open a socket for pings: %w", err)
		}
	}
	at := &p.replies4
	if target.Is6() {
		at = &p.replies6
	}
	if *at != nil {
		return nil
	}
	c, err := answers.Listen(target.Is6(), "")
	if err != nil {
		return err
	}
	*at = c
	go answers.Receive(c, p.receive)
	return nil
}

// receive looks at a reply.
func (p *pinger) receive(_ *net.IPAddr, body icmp.MessageBody) {
	if echo, ok := body.(*icmp.Echo); ok && echo.ID == int(p.id) && len(echo.Data) == 12 && bytes.Equal(echo.Data[:8], p.cookie[:]) {
		p.note(binary.BigEndian.Uint32(echo.Data[8:]))
	}
}

func (p *pinger) note(number uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sent, ok := p.sent[number]; ok {
		p.came[number] = time.Since(sent)
	}
}
