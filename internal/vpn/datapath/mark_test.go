package datapath

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// All classes of inner packets, with the code point cleared, copied and given. The inner packet keeps its own.
func TestMark(t *testing.T) {
	for _, at := range []string{"127.0.0.1", "::1"} {
		a, b := pairOf(t, at, 1)
		a.reaches(b, numbered(0))
		for _, c := range []struct {
			copied bool
			dscp   uint8
		}{{}, {copied: true}, {dscp: 46}, {dscp: 63}, {dscp: 1}, {}} {
			a.path.Mark(c.copied, c.dscp)
			for class := range 256 {
				inner := byte(class)
				want := inner&ecnMask | c.dscp<<2
				if c.copied {
					want = inner
				}
				payload := []byte(fmt.Sprintf("%v %d", c, inner))
				a.reaches(b, (&sample{from: six[0], to: six[1], protocol: unix.IPPROTO_UDP, class: inner, payload: payload}).bytes())
				for until := time.Now().Add(patience); b.path.lastClass(at) != want; time.Sleep(100 * time.Microsecond) {
					if time.Now().After(until) {
						t.Fatalf("over %s, %+v: a packet of class %#x came in one of %#x", at, c, inner, b.path.lastClass(at))
					}
				}
			}
		}
	}
}

// Packets of several classes leave in datagrams of their own.
func TestMarkApart(t *testing.T) {
	a, b := pairOf(t, "127.0.0.1", 1)
	a.path.Mark(true, 0)
	a.reaches(b, numbered(0))
	for i := range 200 {
		s := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, class: byte(i % 5 * 8), payload: letters(500)}
		a.put(0, append(make([]byte, sizeVnet), s.bytes()...))
	}
	for came := 0; came < 200; {
		got := b.takeAny(patience)
		if got == nil {
			t.Fatalf("only %d packets came", came)
		}
		for _, p := range got {
			if want := byte(came % 5 * 8); class(p) != want {
				t.Fatalf("packet %d has the class %#x, not %#x", came, class(p), want)
			}
			came++
		}
	}
}
