package datapath

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
)

// The table of section 4.2 of RFC 6040. -1 is a packet that is dropped.
func TestDecapsulate(t *testing.T) {
	const notECT, ect0, ect1, ce = 0, 2, 1, 3
	for _, c := range []struct{ inner, outer, want int }{
		{notECT, notECT, notECT}, {notECT, ect0, notECT}, {notECT, ect1, notECT}, {notECT, ce, -1},
		{ect0, notECT, ect0}, {ect0, ect0, ect0}, {ect0, ect1, ect1}, {ect0, ce, ce},
		{ect1, notECT, ect1}, {ect1, ect0, ect1}, {ect1, ect1, ect1}, {ect1, ce, ce},
		{ce, notECT, ce}, {ce, ect0, ce}, {ce, ect1, ce}, {ce, ce, ce},
	} {
		const dscp = 46 << 2
		for _, ends := range [...][2]int{{4, 0}, {6, 0}} {
			s := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, class: dscp | byte(c.inner), payload: letters(10)}
			if ends[0] == 6 {
				s.from, s.to = six[0], six[1]
			}
			p := s.bytes()
			passes := decapsulate(p, byte(c.outer))
			if passes != (c.want >= 0) || passes && class(p) != dscp|byte(c.want) {
				t.Errorf("IPv%d, inner %d, outer %d: %v, class %#x", ends[0], c.inner, c.outer, passes, class(p))
			}
			if !right(p) {
				t.Errorf("IPv%d, inner %d, outer %d: a checksum is wrong", ends[0], c.inner, c.outer)
			}
		}
	}
}

// A header that was damaged on its way to the tunnel stays so.
func TestDamaged(t *testing.T) {
	s := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, class: ecnECT0, payload: letters(10)}
	for bit := range 8 * size4 {
		p := s.bytes()
		if p[bit/8] ^= 1 << (bit % 8); lengthOf(p) == 0 || p[0] != 0x45 || bit/8 == 1 {
			continue
		}
		if setClass(p, ecnCE); right(p) {
			t.Errorf("bit %d of a header is wrong, and after a mark of congestion its checksum is right", bit)
		}
	}
}

// Both directions of a connection have one number, and connections spread.
func TestFlow(t *testing.T) {
	queues := [4]int{}
	for port := range uint16(400) {
		s := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_TCP, flags: flagACK, payload: letters(10)}
		s.from = netipPort(s.from, 40000+port)
		back := s
		back.from, back.to = s.to, s.from
		there := flowOf(s.bytes())
		if there != flowOf(back.bytes()) {
			t.Fatalf("the two directions of %v have other numbers", s.from)
		}
		queues[there%4]++
	}
	for i, n := range queues {
		if n < 60 || n > 140 {
			t.Errorf("of 400 connections %d are in queue %d", n, i)
		}
	}
}

// No packet that a peer sends reads or writes beyond itself.
func FuzzPacket(f *testing.F) {
	for _, protocol := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMP} {
		f.Add((&sample{from: four[0], to: four[1], protocol: protocol, flags: flagACK, payload: letters(30)}).bytes(), byte(3))
		f.Add((&sample{from: six[0], to: six[1], protocol: protocol, flags: flagACK, payload: letters(30)}).bytes(), byte(1))
	}
	f.Add(probeRequest(four[0].Addr(), four[1].Addr(), 100, 7), byte(0))
	f.Add(probeRequest(six[0].Addr(), six[1].Addr(), 100, 7), byte(0))
	f.Fuzz(func(t *testing.T, content []byte, outer byte) {
		n := lengthOf(content)
		if n == 0 {
			return
		}
		p := content[:n:n]
		source(p)
		destination(p)
		flowOf(p)
		if probeOf(p) != nil {
			reply := bytes.Clone(p)
			if probeReply(reply, echoReply4); !bytes.Equal(source(reply), destination(p)) || probeOf(reply) == nil {
				t.Errorf("the answer to %x is %x", p, reply)
			}
		}
		if decapsulate(p, outer) && lengthOf(p) != n {
			t.Errorf("ECN changes the length from %d to %d", n, lengthOf(p))
		}
		if h := headersOf(p); h > n || h > 0 && h < size4+sizeUDP {
			t.Errorf("headers of %d bytes", h)
		} else if h > 0 && intact(p) {
			got := merged([][]byte{p, p})
			if len(got) == 0 {
				t.Error("nothing is written")
			}
		}
	})
}
