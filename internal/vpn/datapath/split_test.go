package datapath

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

var (
	four = [2]netip.AddrPort{netip.MustParseAddrPort("10.1.0.1:1000"), netip.MustParseAddrPort("10.2.0.1:80")}
	six  = [2]netip.AddrPort{netip.MustParseAddrPort("[fd01::1]:1000"), netip.MustParseAddrPort("[fd02::1]:80")}
)

func letters(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

func TestSum(t *testing.T) {
	for n := range 300 {
		b := letters(n)
		var got [2]byte
		put(got[:], sum(b, 0))
		if want := slowSum(b); binary.BigEndian.Uint16(got[:]) != want {
			t.Fatalf("the sum of %d bytes is %x, not %x", n, got, want)
		}
	}
	for _, b := range [][]byte{bytes.Repeat([]byte{0xff}, 1480), make([]byte, 64)} {
		if got := fold(sum(b, 0xffffffffffffffff)); got != 0xffff {
			t.Errorf("the sum of %d bytes %#x is %x", len(b), b[0], got)
		}
	}
}

// all returns what a splitter makes of what was read.
func all(read []byte) (packets [][]byte) {
	room := append(append([]byte{}, read...), make([]byte, 64)...)
	var s splitter
	if !s.start(room[:len(read)]) {
		return nil
	}
	for s.count > 0 {
		packets = append(packets, append([]byte{}, s.next()...))
	}
	return packets
}

// The packets are those that the sender would have sent without the kernel's help.
func TestSplit(t *testing.T) {
	for _, ends := range [][2]netip.AddrPort{four, six} {
		for _, protocol := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
			for _, size := range []int{1, 1200, 1201, 2400, 30000} {
				t.Run(fmt.Sprintf("%v protocol %d, %d bytes", ends[0], protocol, size), func(t *testing.T) {
					s := sample{from: ends[0], to: ends[1], protocol: protocol, class: 2, id: 0xfff0, seq: 0xffffff00, flags: flagACK | flagPSH | flagFIN | flagCWR, payload: letters(size)}
					if protocol == unix.IPPROTO_TCP {
						s.options = []byte{1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8}
					}
					got := all(together(&s, 1200))
					for i, at := 0, 0; at < size; i, at = i+1, at+1200 {
						w := s
						w.payload, w.id, w.seq = s.payload[at:min(at+1200, size)], s.id+uint16(i), s.seq+uint32(at)
						if at+1200 < size {
							w.flags &^= flagPSH | flagFIN
						}
						if i > 0 {
							w.flags &^= flagCWR
						}
						if i >= len(got) || !bytes.Equal(got[i], w.bytes()) {
							t.Fatalf("packet %d of %d is\n%x, not\n%x", i, len(got), got[i], w.bytes())
						}
					}
					if n := (size + 1199) / 1200; len(got) != n {
						t.Errorf("%d packets, not %d", len(got), n)
					}
				})
			}
		}
	}
}

// Whatever the tun device gives, nothing outside of it is read or written, and packets fit.
func FuzzSplit(f *testing.F) {
	for _, ends := range [][2]netip.AddrPort{four, six} {
		for _, protocol := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMP} {
			f.Add(together(&sample{from: ends[0], to: ends[1], protocol: protocol, flags: flagACK, payload: letters(3000)}, 1000))
		}
	}
	f.Fuzz(func(t *testing.T, read []byte) {
		for _, p := range all(read) {
			if len(p) == 0 || len(p) > len(read) {
				t.Errorf("a packet of %d bytes", len(p))
			}
		}
	})
}
