package line_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/lab"
	"weir/internal/pppoe/line"
)

// A fate is what an end has to do with a frame.
type fate int

const (
	passedOn   fate = iota // to the stack, unchanged: it is none of the session's packets
	delivered              // its packet comes out of ppp0
	wrongPeer              // dropped
	wrongSize              // dropped: its lengths contradict each other
	answeredTo             // an echo request
	fates
)

// hostile makes a frame: one of the session, with something at random changed. It stays away from what ends a
// session, which TestEnd sends.
func hostile(random *rand.Rand, home, provider net.HardwareAddr) []byte {
	to, from, id, ether, kind := slices.Clone(home), slices.Clone(provider), uint16(session), uint16(0x8864), uint16(0x1100)
	proto := []uint16{0x0021, 0x0021, 0x0057, 0xc021, 0xc021, 0x8021, 0xc223, uint16(random.Uint32())}[random.IntN(8)]
	packet := make([]byte, random.IntN(120))
	for i := range packet {
		packet[i] = byte(random.Uint32())
	}
	switch {
	case proto == 0x0021 && len(packet) > 20:
		copy(packet, []byte{0x45, 0, 0, byte(len(packet)), 0, 0, 0, 0, 64, 253})
		copy(packet[16:], []byte{203, 0, 113, 7}) // nobody's
	case proto == 0x0057 && len(packet) > 40:
		copy(packet, []byte{0x60, 0, 0, 0, 0, byte(len(packet) - 40), 59, 64})
		copy(packet[24:], []byte{0x20, 1, 0xd, 0xb8, 9, 9})
	case proto == 0xc021 && len(packet) >= 4:
		packet[0] = byte(8 + random.IntN(4)) // Protocol-Reject, echo, Discard-Request
		binary.BigEndian.PutUint16(packet[2:], uint16(len(packet)))
	}
	b := framed(to, from, id, ether, kind, binary.BigEndian.AppendUint16(nil, proto))
	b = append(b, packet...)
	binary.BigEndian.PutUint16(b[18:], uint16(2+len(packet)))
	for range random.IntN(3) {
		switch random.IntN(9) {
		case 0: // another number, often a near one
			binary.BigEndian.PutUint16(b[16:], id+uint16(random.IntN(3)))
		case 1: // from another station
			b[11] ^= byte(1 << random.IntN(8))
		case 2: // to another station, which is nobody's
			b[4] ^= 0x40
		case 3: // a length that lies
			binary.BigEndian.PutUint16(b[18:], uint16(int(binary.BigEndian.Uint16(b[18:]))+random.IntN(41)-20))
		case 4: // one that lies a lot
			binary.BigEndian.PutUint16(b[18:], uint16(random.Uint32()))
		case 5: // a cut frame
			if n := 20 + random.IntN(60); n < len(b) {
				b = b[:n]
			}
		case 6: // padding
			b = append(b, make([]byte, random.IntN(40))...)
		case 7: // another version, type or code
			b[14+random.IntN(2)] ^= byte(1 << random.IntN(8))
		case 8: // a length of LCP that lies
			if len(b) > 26 {
				b[25] += byte(random.IntN(5))
			}
		}
	}
	return b
}

// fateOf says what has to become of a frame, by RFC 2516 and RFC 1661.
func fateOf(b []byte, home, provider net.HardwareAddr, mtu, magic uint32) fate {
	if len(b) < 22 || !bytes.Equal(b[:6], home) || binary.BigEndian.Uint16(b[16:]) != session {
		return passedOn
	}
	length, proto := int(binary.BigEndian.Uint16(b[18:])), binary.BigEndian.Uint16(b[20:])
	switch {
	case !bytes.Equal(b[6:12], provider):
		return wrongPeer
	case b[14] != 0x11 || b[15] != 0:
		return passedOn
	case proto == 0x0021 || proto == 0x0057:
		least := map[uint16]int{0x0021: 20, 0x0057: 40}[proto]
		if length < 2+least || 20+length > len(b) {
			return wrongSize
		}
		return delivered
	case proto != 0xc021 || len(b) < 30 || b[22] != 9:
		return passedOn
	}
	echo, number := int(binary.BigEndian.Uint16(b[24:])), binary.BigEndian.Uint32(b[26:])
	if echo < 8 || echo > int(mtu) || length != echo+2 || len(b) < 22+echo || number != 0 && number == magic {
		return passedOn
	}
	return answeredTo
}

// TestHostileFrames sends an end without a client frames that others' stations, or a concentrator that lies, may send. Each
// has its fate, and is counted; none of another session or station comes out of ppp0, and nothing is answered but echo requests.
func TestHostileFrames(t *testing.T) {
	l, ends := pair(t, 1492)
	home, provider := ends[0], ends[1]
	const magic = 0x11223344
	home.session.Magic, home.session.MTU = magic, 1492
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("WEIR_HOSTILE_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("WEIR_HOSTILE_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	if err := l.Do("home", func() error { return home.programs.Enter(home.session) }); err != nil {
		t.Fatal(err)
	}
	// The provider is a wire only: its own programs are not to answer.
	if err := l.Do("provider", func() error { return provider.programs.Leave(provider.Device) }); err != nil {
		t.Fatal(err)
	}
	losses, err := home.programs.Losses()
	if err != nil {
		t.Fatal(err)
	}
	defer losses.Close()
	if err := home.programs.Watch(true); err != nil {
		t.Fatal(err)
	}
	shown := map[line.Why]int{}
	inside, far := socketOn(t, l, "home", "ppp0"), socketOn(t, l, "provider", "eth0")
	var want, got [fates]int
	var packets [][]byte
	for range 100 {
		var sent, all [][]byte
		for range 50 {
			b := hostile(random, home.mac, provider.mac)
			f := fateOf(b, home.mac, provider.mac, 1492, magic)
			want[f]++
			all = append(all, b)
			if f == delivered {
				length := int(binary.BigEndian.Uint16(b[18:]))
				sent = append(sent, b[22:20+length])
			}
			if _, err := unix.Write(far, b); err != nil {
				t.Fatalf("send % x: %v", b, err)
			}
		}
		time.Sleep(5 * time.Millisecond)
		came := received(inside)
		got[delivered] += len(came)
		for i, b := range came {
			if i >= len(sent) || !bytes.HasPrefix(b[14:], sent[i]) {
				t.Fatalf("packet %d out of ppp0: % x; want those of %d frames", i, b, len(sent))
			}
		}
		packets = append(packets, received(far)...)
		err := losses.Read(0, func(raw []byte) {
			lost, err := line.ParseLost(raw)
			is := slices.ContainsFunc(all, func(b []byte) bool { return lost.Length == len(b) && bytes.Equal(lost.Data, b[:min(len(b), 256)]) })
			if err != nil || !is || lost.Ifindex != home.session.Carrier {
				t.Errorf("shown as dropped: %+v, %v", lost, err)
			}
			shown[lost.Why]++
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	drops, ended, err := home.programs.Drops()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range packets {
		if b[12] != 0x88 || b[13] != 0x64 {
			continue // the kernel's own
		}
		if len(b) < 30 || !bytes.Equal(b[:6], provider.mac) || !bytes.Equal(b[6:12], home.mac) || b[20] != 0xc0 || b[22] != 10 || binary.BigEndian.Uint32(b[26:]) != magic {
			t.Errorf("sent into the session: % x", b)
		}
		got[answeredTo]++
	}
	got[answeredTo] += int(drops.Echo)
	got[wrongPeer], got[wrongSize] = int(drops.Peer), int(drops.Length)
	want[passedOn] = got[passedOn] // nobody counts these
	if got != want || ended != (line.Ends{}) || drops.Over+drops.Kernel+drops.Ends != 0 {
		t.Errorf("fates of the frames (passed on, delivered, wrong peer, wrong size, echo): %v, want %v; drops %+v", got, want, drops)
	}
	if shown[line.LostPeer] != want[wrongPeer] || shown[line.LostLength] != want[wrongSize] || shown[line.LostEcho] != int(drops.Echo) {
		t.Errorf("shown as dropped, by reason: %v; dropped %+v", shown, drops)
	}
	for f, n := range want {
		if n < 50 && f != int(passedOn) {
			t.Errorf("only %d frames had fate %d", n, f)
		}
	}
	// The session goes on.
	if err := l.Do("provider", func() error { return provider.programs.Enter(provider.session) }); err != nil {
		t.Fatal(err)
	}
	run(t, l, "home", "ping", "-c", "1", "-W", "1", "198.51.100.2")
}

// socketOn opens a packet socket on a device of a host. It does not block.
func socketOn(t *testing.T, l *lab.Lab, host, device string) (fd int) {
	t.Helper()
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8
	err := l.Do(host, func() error {
		nic, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			return err
		}
		return errors.Join(unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: nic.Index}), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20))
	})
	if err != nil {
		t.Fatal(fmt.Errorf("a socket on %s: %w", device, err))
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// received returns the frames that have come in by a socket's device.
func received(fd int) (frames [][]byte) {
	buffer := make([]byte, 4096)
	for {
		n, from, err := unix.Recvfrom(fd, buffer, 0)
		if err != nil {
			return frames
		}
		if at, ok := from.(*unix.SockaddrLinklayer); ok && at.Pkttype != unix.PACKET_OUTGOING {
			frames = append(frames, slices.Clone(buffer[:n]))
		}
	}
}
