package datapath

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	released "golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun/tuntest"

	"weir/internal/vpn/device"
	"weir/internal/vpn/key"
)

// Packets of all kinds come out as they went in, over both families.
func TestPath(t *testing.T) {
	for _, at := range []string{"127.0.0.1", "::1"} {
		for _, workers := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, %d workers", at, workers), func(t *testing.T) {
				a, b := pairOf(t, at, workers)
				for _, ends := range [][2]netip.AddrPort{four, six} {
					for _, protocol := range []byte{unix.IPPROTO_ICMP, unix.IPPROTO_UDP, unix.IPPROTO_TCP} {
						for _, size := range []int{0, 1, 500, 1300, 1301, 60000} {
							s := sample{from: ends[0], to: ends[1], protocol: protocol, flags: flagACK, payload: letters(size)}
							if protocol == unix.IPPROTO_ICMP {
								s.payload = s.payload[:min(size, 1380)]
							}
							there, back := s, s
							back.from, back.to = s.to, s.from
							comesOut(t, a, b, &there)
							comesOut(t, b, a, &back)
						}
					}
				}
				for _, e := range []*end{a, b} {
					if len(e.errors) > 0 {
						t.Errorf("errors: %q", e.errors)
					}
				}
			})
		}
	}
}

func comesOut(t *testing.T, from, to *end, s *sample) {
	t.Helper()
	read := together(s, 1300)
	want := all(read)
	from.put(0, read)
	for i := 0; i < len(want); {
		got := to.takeAny(patience)
		if got == nil {
			t.Fatalf("%v protocol %d, %d bytes: packet %d of %d did not come", s.from, s.protocol, len(s.payload), i, len(want))
		}
		for _, p := range got {
			if i == len(want) || !bytes.Equal(p, want[i]) {
				t.Fatalf("%v protocol %d, %d bytes: packet %d of %d is wrong: %x", s.from, s.protocol, len(s.payload), i, len(want), p[:60])
			}
			i++
		}
	}
}

// wireguard-go as it is released is at the other end. Either begins.
func TestReleased(t *testing.T) {
	for _, ours := range []bool{true, false} {
		t.Run(fmt.Sprintf("ours begins: %v", ours), func(t *testing.T) {
			a := newEnd(t, 2)
			secret := key.NewPrivate()
			tun := tuntest.NewChannelTUN()
			other := released.NewDevice(tun.TUN(), conn.NewDefaultBind(), released.NewLogger(released.LogLevelError, ""))
			defer other.Close()
			raw, public := secret.Reveal(), a.secret.Public()
			endpoint := ""
			if !ours {
				endpoint = fmt.Sprintf("endpoint=127.0.0.1:%d\n", a.port)
			}
			if err := other.IpcSet(fmt.Sprintf("private_key=%x\nlisten_port=0\npublic_key=%s\n%sallowed_ip=10.1.0.0/16\nallowed_ip=fd01::/64\n", raw, public.Hex(), endpoint)); err != nil {
				t.Fatal(err)
			}
			if err := other.Up(); err != nil {
				t.Fatal(err)
			}
			text, err := other.IpcGet()
			var port uint16
			if _, at, _ := bytes.Cut([]byte(text), []byte("listen_port=")); err == nil {
				_, err = fmt.Sscan(string(at), &port)
			}
			if err != nil {
				t.Fatal(err)
			}
			if !ours {
				port = 0
			}
			a.meets(secret.Public(), "127.0.0.1", port, "10.2.0.0/16", "fd02::/64")
			for i := range 200 {
				s := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(7 * i)}
				if i%2 == 1 {
					s.from, s.to = six[0], six[1]
				}
				back := s
				back.from, back.to = s.to, s.from
				send := func() {
					a.put(i%2, append(make([]byte, sizeVnet), s.bytes()...))
					select {
					case got := <-tun.Inbound:
						if !bytes.Equal(got, s.bytes()) {
							t.Fatalf("packet %d is %x", i, got)
						}
					case <-time.After(patience):
						t.Fatalf("packet %d did not come", i)
					}
				}
				if ours {
					send()
				}
				tun.Outbound <- back.bytes()
				for got := a.takeAny(patience); ; got = a.takeAny(patience) {
					if len(got) != 1 || !bytes.Equal(got[0], back.bytes()) {
						t.Fatalf("packet %d back is %x", i, got)
					}
					break
				}
				if !ours {
					send()
				}
			}
		})
	}
}

// Packets of a connection come out in order, though several workers decrypt them.
func TestOrder(t *testing.T) {
	const count = 30000
	a, b := pairOf(t, "127.0.0.1", 4)
	a.reaches(b, (&sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(10)}).bytes())
	go func() {
		for i := range uint32(count) {
			s := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: make([]byte, 4+i%1000)}
			binary.BigEndian.PutUint32(s.payload, i)
			a.put(1, append(make([]byte, sizeVnet), s.bytes()...))
			if i%64 == 0 {
				time.Sleep(300 * time.Microsecond)
			}
		}
	}()
	last, came := -1, 0
	for last < count-1 {
		got := b.takeAny(time.Second)
		if got == nil {
			break
		}
		for _, p := range got {
			n := int(binary.BigEndian.Uint32(p[28:]))
			if n <= last {
				t.Fatalf("packet %d comes after %d", n, last)
			}
			last = n
			came++
		}
	}
	if came < count*9/10 {
		t.Errorf("of %d packets only %d came", count, came)
	}
}

// A message that comes again, whole or later, is not delivered again, by no worker.
func TestReplay(t *testing.T) {
	a, b := newEnd(t, 2), newEnd(t, 3)
	w := newWire(t, b.port)
	a.meets(b.secret.Public(), "127.0.0.1", w.port, "10.2.0.0/16")
	b.meets(a.secret.Public(), "127.0.0.1", 0, "10.1.0.0/16")
	const count = 200
	for i := range uint32(count) {
		s := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: make([]byte, 40)}
		binary.BigEndian.PutUint32(s.payload, i)
		a.reaches(b, s.bytes())
	}
	for _, m := range w.messages(device.MessageTransportType) {
		for range 3 {
			if _, err := w.far.Write(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := b.takeAny(300 * time.Millisecond); got != nil {
		t.Errorf("a replayed message is delivered: %x", got)
	}
	a.reaches(b, (&sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(50)}).bytes())
}

// What does not come from the networks of its peer is dropped, as is what is no packet.
func TestAllowed(t *testing.T) {
	a, b := pairOf(t, "127.0.0.1", 2)
	good := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(100)}
	a.reaches(b, good.bytes())
	for _, from := range []string{"10.3.0.1:5", "10.2.0.1:5", "127.0.0.1:5"} {
		s := good
		s.from = netip.MustParseAddrPort(from)
		a.put(0, append(make([]byte, sizeVnet), s.bytes()...))
	}
	for _, spoil := range []func(p []byte){
		func(p []byte) { p[0] = 0x4f },                             // longer headers than the packet
		func(p []byte) { p[0] = 0x41 },                             // shorter than they can be
		func(p []byte) { binary.BigEndian.PutUint16(p[2:], 2000) }, // longer than the message
		func(p []byte) { binary.BigEndian.PutUint16(p[2:], 3) },    // shorter than its header
	} {
		s := good
		s.payload = letters(20)
		s.class = 1
		p := s.bytes()
		spoil(p)
		peer := a.device.LookupPeer(device.NoisePublicKey(b.secret.Public()))
		peer.Stage(p)
		peer.SendStagedPackets()
	}
	if got := b.takeAny(300 * time.Millisecond); got != nil {
		t.Errorf("this is delivered: %x", got)
	}
	a.reaches(b, good.bytes())
	if r := b.device.LookupPeer(device.NoisePublicKey(a.secret.Public())).Refused(); r.Packets != 3 || r.Source != netip.MustParseAddr("127.0.0.1") || time.Since(r.Time) > patience {
		t.Errorf("of three packets that the peer may not send it says %+v", r)
	}
}

// A peer that roams is found by what it sends, and only by that.
func TestRoaming(t *testing.T) {
	a, b := pairOf(t, "127.0.0.1", 2)
	good := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(100)}
	back := good
	back.from, back.to = good.to, good.from
	a.reaches(b, good.bytes())
	was := endpointOf(t, b, a.secret.Public())
	junk, err := net.Dial("udp4", fmt.Sprintf("127.0.0.1:%d", b.port))
	if err != nil {
		t.Fatal(err)
	}
	defer junk.Close()
	w := newWire(t, b.port)
	a.set("public_key=%s\nendpoint=127.0.0.1:%d\n", b.secret.Public().Hex(), w.port)
	a.reaches(b, good.bytes())
	is := endpointOf(t, b, a.secret.Public())
	if is == was {
		t.Errorf("the peer is still looked for at %v", was)
	}
	b.reaches(a, back.bytes())
	for _, m := range w.messages(device.MessageTransportType) { // authentic, but not new
		m[len(m)-1]++
		junk.Write(m) //nolint:errcheck // it is read or not
		m[len(m)-1]--
		junk.Write(m) //nolint:errcheck // it is read or not
	}
	b.reaches(a, back.bytes())
	if now := endpointOf(t, b, a.secret.Public()); now != is {
		t.Errorf("a message that was replayed moves the peer from %v to %v", is, now)
	}
}

// Inner packets get the mark of congestion that the outer ones met, and outer ones have the ECN of inner ones.
func TestECN(t *testing.T) {
	for _, at := range []string{"127.0.0.1", "::1"} {
		a, b := pairOf(t, at, 1)
		for _, c := range []byte{0, 1, 2, 3} {
			s := sample{from: six[0], to: six[1], protocol: unix.IPPROTO_UDP, class: 46<<2 | c, payload: letters(100)}
			a.reaches(b, s.bytes())
			for until := time.Now().Add(patience); b.path.lastClass(at) != c; time.Sleep(time.Millisecond) {
				if time.Now().After(until) {
					t.Fatalf("over %s, a packet with ECN %d came in one with class %#x", at, c, b.path.lastClass(at))
				}
			}
		}
	}
}

// lastClass returns the class of the batch that was used last.
func (p *Path) lastClass(at string) byte {
	r := p.four
	if at == "::1" {
		r = p.six
	}
	for { // a worker may have all of them for a moment
		r.mu.Lock()
		n := len(r.free)
		if n > 0 {
			defer r.mu.Unlock()
			return r.free[n-1].class
		}
		r.mu.Unlock()
		time.Sleep(10 * time.Microsecond)
	}
}

// Another port, and the one of before, under traffic.
func TestPort(t *testing.T) {
	a, b := pairOf(t, "127.0.0.1", 3)
	good := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(100)}
	a.reaches(b, good.bytes())
	done := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				a.put(1, append(make([]byte, sizeVnet), good.bytes()...))
				time.Sleep(50 * time.Microsecond)
			}
		}
	}()
	for range 20 {
		a.set("listen_port=0\n")
		other := good
		other.payload = letters(120)
		a.reaches(b, other.bytes())
	}
	close(stop)
	<-done
}
