package lib

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"
)

// A Flood is a stream of numbered echo requests that runs beside the story. At its
// end it can wait for the answers that are under way, as ping cannot.
type Flood struct {
	b     *Box
	to    netip.Addr
	conn  *net.IPConn
	id    []byte // stands in each packet, in front of its number
	began time.Time
	stop  chan struct{}
	end   func() // ends the sending
	sends sync.WaitGroup
	reads sync.WaitGroup

	mu      sync.Mutex
	answers []int // to each packet that was sent
	err     error // the first of sending
	heard   time.Time
}

// quiet is how long a flood that has ended waits for the next answer.
const quiet = 2 * time.Second

// Flood starts one that sends a packet every 2 ms.
func (b *Box) Flood(host, to string) *Flood {
	b.Helper()
	return b.FloodEvery(host, to, 2*time.Millisecond)
}

// FloodEvery starts one with another pause between packets.
func (b *Box) FloodEvery(host, to string, pause time.Duration) *Flood {
	b.Helper()
	f := &Flood{
		b: b, to: netip.MustParseAddr(to), id: binary.BigEndian.AppendUint64(nil, rand.Uint64()), //nolint:gosec // to tell floods apart
		began: time.Now(), stop: make(chan struct{}),
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
	f.sends.Go(func() { f.send(pause) })
	f.reads.Go(f.read)
	b.Cleanup(f.close)
	return f
}

func (f *Flood) close() {
	f.end()
	f.conn.Close()
	f.reads.Wait()
}

func (f *Flood) send(pause time.Duration) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-ticker.C:
		}
		f.mu.Lock()
		number := len(f.answers)
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
}

// Types of echo requests and their answers.
const (
	echo4, echoed4 = 8, 0
	echo6, echoed6 = 128, 129
)

// echoHead is how long the header of an echo request is: type, code, checksum, id,
// sequence number.
const echoHead = 8

// request is a packet. The kernel fills in the checksum of IPv6's.
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

// sum is the internet checksum (RFC 1071) of an even number of bytes.
func sum(p []byte) uint16 {
	var s uint32
	for ; len(p) > 0; p = p[2:] {
		s += uint32(binary.BigEndian.Uint16(p))
	}
	s = s>>16 + s&0xffff
	return ^uint16(s + s>>16)
}

// read counts answers until the connection is closed.
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

// AllAnswered ends the flood; at least so many packets must have been sent, and each
// answered once.
func (f *Flood) AllAnswered(least int) {
	f.b.Helper()
	f.end()
	took, ended := time.Since(f.began), time.Now()
	sent, wrong := f.wrong()
	for len(wrong) > 0 && f.silence(ended) < Scaled(quiet) {
		time.Sleep(20 * time.Millisecond)
		sent, wrong = f.wrong()
	}
	f.close()
	f.b.Logf("%d packets to %s, %.0f a second", sent, f.to, float64(sent)/took.Seconds())
	if len(wrong) > 0 || sent < least || f.err != nil {
		f.b.Errorf("%d packets were sent to %s, %d at least should have been (%v); %d were not answered once, the first of them %q",
			sent, f.to, least, f.err, len(wrong), wrong[:min(len(wrong), 20)])
	}
}

// silence is for how long no answer has come since the sending ended.
func (f *Flood) silence(ended time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.heard.After(ended) {
		ended = f.heard
	}
	return time.Since(ended)
}

// wrong are the packets that were not answered once.
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
