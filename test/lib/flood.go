package lib

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Flood is a stream of numbered echo requests beside the story. At its end it can wait
// for replies on their way, which ping cannot.
type Flood struct {
	b     *Box
	to    netip.Addr
	conn  *net.IPConn
	id    []byte // in each packet, in front of its number
	pause time.Duration
	began time.Time
	stop  chan struct{}
	end   func() // ends the sending
	sends sync.WaitGroup
	reads sync.WaitGroup

	took time.Duration // time of the sending, known when it has ended

	mu      sync.Mutex
	answers []int // number of replies to each packet
	err     error // the first error of sending
	heard   time.Time
}

// quiet is how long a flood that has ended waits for the next reply.
const quiet = 2 * time.Second

// catchUp is the most packets that leave at a tick. After a long pause, a queue of the
// kernel would not have room for all that are due.
const catchUp = 20

// rateReached is the part of its rate that a flood has to reach: it may be stopped while
// it catches up.
const rateReached = 0.97

// Flood starts a flood of 500 packets a second.
func (b *Box) Flood(host, to string) *Flood {
	b.Helper()
	return b.FloodEvery(host, to, 2*time.Millisecond)
}

// FloodEvery starts a flood with another pause between packets. It keeps its rate by the
// clock: if a busy machine delays packets, it sends them late, not never. An emulated
// machine has no time for that, so there late packets are left out.
func (b *Box) FloodEvery(host, to string, pause time.Duration) *Flood {
	b.Helper()
	f := &Flood{
		b: b, to: netip.MustParseAddr(to), id: binary.BigEndian.AppendUint64(nil, rand.Uint64()), //nolint:gosec // to tell floods apart
		pause: pause, began: time.Now(), stop: make(chan struct{}),
	}
	f.end = sync.OnceFunc(func() {
		close(f.stop)
		f.sends.Wait()
	})
	network := "ip4:icmp"
	if f.to.Is6() {
		network = "ip6:ipv6-icmp"
	}
	err := b.Do(host, func() (err error) {
		f.conn, err = net.DialIP(network, nil, &net.IPAddr{IP: f.to.AsSlice()})
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := f.roomForAnswers(); err != nil {
		b.Fatal(err)
	}
	f.sends.Go(f.send)
	f.reads.Go(f.read)
	b.Cleanup(f.close)
	return f
}

// roomForAnswers makes the kernel keep the replies to everything that is sent in a second
// or more, also by other floods. Otherwise a story without time to read would lose them.
func (f *Flood) roomForAnswers() error {
	raw, err := f.conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20)
	})
	return errors.Join(err, failed)
}

// recordRoute is an IPv4 option with room for three addresses, and its padding. Hosts put
// it into their replies too.
const recordRoute = "\x07\x0f\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// RecordRoute makes the packets sent from now on record their route, which routers do in
// the kernel's stack.
func (f *Flood) RecordRoute() {
	f.b.Helper()
	raw, err := f.conn.SyscallConn()
	if err != nil {
		f.b.Fatal(err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptString(int(fd), unix.IPPROTO_IP, unix.IP_OPTIONS, recordRoute)
	})
	if err := errors.Join(err, failed); err != nil {
		f.b.Fatal(err)
	}
}

func (f *Flood) close() {
	f.end()
	f.conn.Close()
	f.reads.Wait()
}

func (f *Flood) send() {
	ticker := time.NewTicker(f.pause) // drops ticks that are too late
	defer ticker.Stop()
	for number := 0; ; {
		select {
		case <-f.stop:
			f.took = time.Since(f.began)
			return
		case <-ticker.C:
		}
		due := number + 1
		if !emulated() {
			due = min(int(time.Since(f.began)/f.pause), number+catchUp)
		}
		for ; number < due; number++ {
			f.sendOne(number)
		}
	}
}

func (f *Flood) sendOne(number int) {
	f.mu.Lock()
	f.answers = append(f.answers, 0)
	f.mu.Unlock()
	if _, err := f.conn.Write(f.request(number)); err != nil {
		f.mu.Lock()
		if f.err == nil {
			f.err = err
		}
		f.mu.Unlock()
	}
}

// Types of echo requests and replies.
const (
	echo4, echoed4 = 8, 0
	echo6, echoed6 = 128, 129
)

// echoHead is the length of an echo request's header: type, code, checksum, id, sequence
// number.
const echoHead = 8

// request returns a packet. The kernel fills in the checksum for IPv6.
func (f *Flood) request(number int) []byte {
	p := make([]byte, echoHead, echoHead+16)
	p[0] = echo6
	copy(p[4:6], f.id)
	binary.BigEndian.PutUint16(p[6:], uint16(number))
	p = append(p, f.id...)
	p = binary.BigEndian.AppendUint64(p, uint64(number))
	if f.to.Is4() {
		p[0] = echo4
		binary.BigEndian.PutUint16(p[2:], sum(p))
	}
	return p
}

// sum returns the internet checksum (RFC 1071) of an even number of bytes.
func sum(p []byte) uint16 {
	var s uint32
	for ; len(p) > 0; p = p[2:] {
		s += uint32(binary.BigEndian.Uint16(p))
	}
	s = s>>16 + s&0xffff
	return ^uint16(s + s>>16)
}

// read counts replies until the connection is closed.
func (f *Flood) read() {
	answer := byte(echoed4)
	if f.to.Is6() {
		answer = echoed6
	}
	for p := make([]byte, 2048); ; {
		n, _, err := f.conn.ReadFromIP(p)
		if err != nil {
			return
		}
		rest, ours := bytes.CutPrefix(p[min(n, echoHead):n], f.id)
		if !ours || len(rest) != 8 || p[0] != answer {
			continue
		}
		f.mu.Lock()
		f.answers[binary.BigEndian.Uint64(rest)]++
		f.heard = time.Now()
		f.mu.Unlock()
	}
}

// AllAnswered ends the flood. At least this many packets must have been sent, and each
// must have one reply.
func (f *Flood) AllAnswered(least int) {
	f.b.Helper()
	f.end()
	ended := time.Now()
	sent, wrong := f.wrong()
	for len(wrong) > 0 && f.silence(ended) < Scaled(quiet) {
		time.Sleep(20 * time.Millisecond)
		sent, wrong = f.wrong()
	}
	f.close()
	f.b.Logf("%d packets to %s, %.0f a second", sent, f.to, float64(sent)/f.took.Seconds())
	if len(wrong) > 0 || sent < least || f.err != nil {
		f.b.Errorf("%d packets were sent to %s, %d at least should have been (%v); %d were not answered once, the first of them %q",
			sent, f.to, least, f.err, len(wrong), wrong[:min(len(wrong), 20)])
	}
}

// AllAnsweredAtRate is AllAnswered for a flood that must have kept its rate all the time,
// on machines that are able to.
func (f *Flood) AllAnsweredAtRate(least int) {
	f.b.Helper()
	f.end()
	if due := int(rateReached * float64(f.took/f.pause)); !emulated() {
		least = max(least, due)
	}
	f.AllAnswered(least)
}

// silence returns how long no reply has come since the sending ended.
func (f *Flood) silence(ended time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.heard.After(ended) {
		ended = f.heard
	}
	return time.Since(ended)
}

// wrong returns the packets that do not have exactly one reply.
func (f *Flood) wrong() (sent int, wrong []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for number, answers := range f.answers {
		if answers != 1 {
			wrong = append(wrong, fmt.Sprintf("%d: %d times", number, answers))
		}
	}
	return len(f.answers), wrong
}
