package datapath

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"
)

// merged returns what is written for packets.
func merged(packets [][]byte) (written [][]byte) {
	var m merger
	end := func() {
		if m.count == 0 {
			return
		}
		var b []byte
		for _, part := range m.end() {
			b = append(b, unsafeBytes(part)...)
		}
		written = append(written, b)
		m.count = 0
	}
	for _, p := range packets {
		p = append([]byte{}, p...)
		headers := headersOf(p)
		if headers > 0 && !intact(p) {
			headers = 0
		}
		if m.count > 0 && m.add(p, headers) {
			continue
		}
		end()
		m.begin(p, headers)
	}
	end()
	return written
}

// What was merged and is split again is what it was, in the order it had, whatever the packets are.
func TestMergeIsUndone(t *testing.T) {
	count, pieces := 0, 0
	for range 200 {
		var packets [][]byte
		for len(packets) < 60 {
			s := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_TCP, flags: flagACK, seq: rand.Uint32(), id: uint16(rand.Uint32()), fragments: rand.IntN(2) == 0}
			if rand.IntN(2) == 0 {
				s.from, s.to = six[0], six[1]
			}
			if rand.IntN(3) == 0 {
				s.protocol = unix.IPPROTO_UDP
			}
			size := 1 + rand.IntN(1400)
			for range 1 + rand.IntN(20) {
				p := s
				p.payload = letters(size)
				if rand.IntN(30) == 0 {
					p.payload = p.payload[:rand.IntN(len(p.payload))]
				}
				switch rand.IntN(40) {
				case 0:
					p.flags |= byte(1 << rand.IntN(8))
				case 1:
					p.withoutCheck = true
				case 2:
					p.class = byte(rand.Uint32())
				case 3:
					p.seq++
				case 4:
					p.id += 5
				case 5:
					p.options = []byte{1, 1, 1, 1}
				}
				packets = append(packets, p.bytes())
				s.seq += uint32(len(p.payload))
				s.id++
			}
		}
		written := merged(packets)
		pieces += len(written)
		count += len(packets)
		var got [][]byte
		for _, w := range written {
			got = append(got, all(w)...)
		}
		if len(got) != len(packets) {
			t.Fatalf("%d packets became %d", len(packets), len(got))
		}
		for i := range got {
			want := append([]byte{}, packets[i]...)
			if want[0]>>4 == 4 && want[6]&0x40 != 0 && right(got[i]) { // the number of what is not fragmented says nothing
				copy(want[4:6], got[i][4:6])
				copy(want[10:12], got[i][10:12])
			}
			if !bytes.Equal(got[i], want) {
				t.Fatalf("packet %d is\n%x, not\n%x", i, got[i], want)
			}
		}
	}
	if pieces > count/2 {
		t.Errorf("%d packets were written in %d pieces: hardly any were merged", count, pieces)
	}
}

// A whole burst of one connection is written at once.
func TestMerge(t *testing.T) {
	for _, protocol := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
		var packets [][]byte
		s := sample{from: six[0], to: six[1], protocol: protocol, flags: flagACK}
		for i := range 40 {
			s.payload = letters(1000)
			if i == 39 {
				s.flags |= flagPSH
			}
			packets = append(packets, s.bytes())
			s.seq += 1000
		}
		if written := merged(packets); len(written) != 1 || written[0][0] != unix.VIRTIO_NET_HDR_F_NEEDS_CSUM {
			t.Errorf("protocol %d: 40 packets were written in %d pieces", protocol, len(written))
		}
	}
}
