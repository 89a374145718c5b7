package autorate

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"weir/internal/host/ping"
)

// A prober asks hosts by ICMP, and collects their answers. A host that answers requests for its
// time (RFC 792) with times that fit is asked in this way: they say how long each direction takes.
type prober struct {
	began   time.Time // of all times here; the monotonic clock
	hosts   []asked
	sockets map[bool]*icmp.PacketConn // by whether it is IPv6
	id      uint16
	cookie  [8]byte // in each echo request: others may use the same id

	mu      sync.Mutex
	waiting map[uint16]Probe // by sequence number
	done    []Probe
	next    uint16
}

// asked is a host.
type asked struct {
	addr netip.Addr
	// What is known of its clock.
	told       int // times that fit the one before
	wrong      int // times that do not fit, or requests for them without an answer
	last, when time.Duration
}

// A host's times are used after so many that fit. It is not asked for them any more after so many
// that do not.
const (
	timesFit   = 3
	timesWrong = 6
	timesNear  = 100 * time.Millisecond // of two times: their difference and that of this clock
)

// open returns a prober for hosts. Its sockets are bound to a device if there is one.
func open(hosts []netip.Addr, device string) (*prober, error) {
	p := &prober{began: time.Now(), sockets: make(map[bool]*icmp.PacketConn), waiting: make(map[uint16]Probe)}
	_, _ = rand.Read(p.cookie[:]) // never fails
	p.id = binary.NativeEndian.Uint16(p.cookie[:])
	for _, addr := range hosts {
		if p.sockets[addr.Is6()] == nil {
			c, err := ping.Listen(addr.Is6(), device)
			if err != nil {
				p.close()
				return nil, err
			}
			p.sockets[addr.Is6()] = c
		}
		p.hosts = append(p.hosts, asked{addr: addr})
	}
	return p, nil
}

func (p *prober) close() {
	for _, c := range p.sockets {
		c.Close()
	}
}

// now is the time on the prober's clock.
func (p *prober) now() time.Duration { return time.Since(p.began) }

// ask sends a probe to a host. One that cannot be sent is lost.
func (p *prober) ask(host int) {
	h := &p.hosts[host]
	p.mu.Lock()
	p.next++
	number := p.next
	sent := Probe{Host: host, Sent: p.now(), Split: h.addr.Is4() && h.told < timesFit && h.wrong < timesWrong && number%2 == 0 || h.told >= timesFit}
	p.waiting[number] = sent
	p.mu.Unlock()
	message, err := p.request(number, &sent, h.addr)
	if err == nil {
		_, err = p.sockets[h.addr.Is6()].WriteTo(message, &net.IPAddr{IP: h.addr.AsSlice(), Zone: h.addr.Zone()})
	}
	if err != nil { // no route now, for example
		p.mu.Lock()
		p.giveUp(number)
		p.mu.Unlock()
	}
}

// request returns a request for an echo, or for the host's time.
func (p *prober) request(number uint16, sent *Probe, to netip.Addr) ([]byte, error) {
	if sent.Split {
		data := binary.BigEndian.AppendUint16(nil, p.id)
		data = binary.BigEndian.AppendUint16(data, number)
		data = binary.BigEndian.AppendUint32(data, uint32(p.ofDay(sent.Sent)/time.Millisecond))
		data = append(data, make([]byte, 8)...)
		m := icmp.Message{Type: ipv4.ICMPTypeTimestamp, Body: &icmp.RawBody{Data: data}}
		return m.Marshal(nil)
	}
	m := icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{ID: int(p.id), Seq: int(number), Data: p.cookie[:]}}
	if to.Is6() {
		m.Type = ipv6.ICMPTypeEchoRequest // the kernel fills in the checksum
	}
	return m.Marshal(nil)
}

const day = 24 * time.Hour

// ofDay is the time of day (UTC) of a time on the prober's clock, as if nobody had set the clock
// since it began.
func (p *prober) ofDay(at time.Duration) time.Duration {
	return time.Duration(p.began.UnixNano()%int64(day)+int64(at)) % day
}

// receive looks at an answer.
func (p *prober) receive(from *net.IPAddr, body icmp.MessageBody) {
	switch body := body.(type) {
	case *icmp.Echo:
		if body.ID == int(p.id) && bytes.Equal(body.Data, p.cookie[:]) {
			p.answered(uint16(body.Seq), from, nil)
		}
	case *icmp.RawBody:
		if len(body.Data) >= 16 && binary.BigEndian.Uint16(body.Data) == p.id {
			p.answered(binary.BigEndian.Uint16(body.Data[2:]), from, body.Data[4:16])
		}
	}
}

// answered enters the answer to a probe, with the host's times if it has told them.
func (p *prober) answered(number uint16, from *net.IPAddr, times []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	probe, ok := p.waiting[number]
	if !ok || probe.Split != (times != nil) {
		return
	}
	h := &p.hosts[probe.Host]
	if addr, ok := netip.AddrFromSlice(from.IP); !ok || addr.Unmap() != h.addr.WithZone("") {
		return
	}
	delete(p.waiting, number)
	now := p.now()
	probe.RTT = now - probe.Sent
	if probe.Split {
		there := time.Duration(binary.BigEndian.Uint32(times[4:])) * time.Millisecond
		back := time.Duration(binary.BigEndian.Uint32(times[8:])) * time.Millisecond
		probe.Ways[Up], probe.Ways[Down] = ofDays(there-p.ofDay(probe.Sent)), ofDays(p.ofDay(now)-back)
		h.judge(there, probe.Sent, probe.RTT)
		probe.Split = h.told >= timesFit
	}
	p.done = append(p.done, probe)
}

// ofDays brings the difference of two times of day to half a day at most.
func ofDays(d time.Duration) time.Duration {
	d = (d%day + day) % day
	if d > day/2 {
		d -= day
	}
	return d
}

// judge compares a host's time with the one before.
func (h *asked) judge(told, sent, took time.Duration) {
	if h.when > 0 {
		if drift := ofDays((told - h.last) - (sent - h.when)); drift.Abs() < timesNear+took && told < day {
			h.told++
		} else {
			h.told = 0
			h.wrong++
		}
	}
	h.last, h.when = told, sent
}

// giveUp counts a probe as lost.
func (p *prober) giveUp(number uint16) {
	probe, ok := p.waiting[number]
	if !ok {
		return
	}
	delete(p.waiting, number)
	h := &p.hosts[probe.Host]
	if probe.Split && h.told < timesFit { // most hosts do not tell the time
		h.wrong++
		return
	}
	probe.Lost = true
	p.done = append(p.done, probe)
}

// take returns what has become of probes since it was called last, and those that wait.
func (p *prober) take() (done, waiting []Probe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for number, probe := range p.waiting {
		switch {
		case p.now()-probe.Sent > Patience:
			p.giveUp(number)
		case !probe.Split || p.hosts[probe.Host].told >= timesFit:
			waiting = append(waiting, probe)
		}
	}
	done, p.done = p.done, nil
	return done, waiting
}

// run receives answers until ctx ends.
func (p *prober) run(ctx context.Context) {
	for _, c := range p.sockets {
		go ping.Receive(c, p.receive)
	}
	context.AfterFunc(ctx, p.close)
}
