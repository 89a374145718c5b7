package datapath

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/blake2s"
	"golang.org/x/sys/unix"

	"weir/internal/vpn/device"
	"weir/internal/vpn/key"
)

// initiation returns the first message of a handshake by somebody who knows nothing but a public key. Its first
// code is right, so it has to be looked at.
func initiation(to key.Public) []byte {
	m := make([]byte, device.MessageInitiationSize)
	rand.Read(m) //nolint:errcheck // it does not fail
	binary.LittleEndian.PutUint32(m, device.MessageInitiationType)
	h, _ := blake2s.New256(nil) //nolint:errcheck // it does not fail without a key
	h.Write([]byte("mac1----"))
	h.Write(to[:])
	mac, _ := blake2s.New128(h.Sum(nil)) //nolint:errcheck // the key has the right size
	mac.Write(m[:116])
	copy(m[116:], mac.Sum(nil))
	clear(m[132:])
	return m
}

// flood sends what next returns from several sockets until the test ends, and counts what comes back by type.
func flood(t *testing.T, port uint16, next func() []byte) (answers func() map[byte]int) {
	t.Helper()
	var mu sync.Mutex
	count := map[byte]int{}
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 2 {
		c, err := net.Dial("udp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		all.Add(1)
		go func() {
			defer all.Done()
			for {
				select {
				case <-stop:
					c.Close()
					return
				default:
					for range 64 {
						c.Write(next()) //nolint:errcheck // it is a flood
					}
					time.Sleep(2 * time.Millisecond)
				}
			}
		}()
		go func() {
			for b := make([]byte, 2000); ; {
				n, err := c.Read(b)
				if err != nil {
					return
				}
				if n > 0 {
					mu.Lock()
					count[b[0]]++
					mu.Unlock()
				}
			}
		}()
	}
	var once sync.Once
	end := func() { once.Do(func() { close(stop); all.Wait() }) }
	t.Cleanup(end)
	return func() map[byte]int {
		end()
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}

// Whatever comes to the port, packets of sessions that there are go on, and a peer still gets a new session.
func TestHostile(t *testing.T) {
	for _, c := range []struct {
		name    string
		next    func(b *end, seen [][]byte) func() []byte
		cookies bool
	}{
		{"junk", func(*end, [][]byte) func() []byte {
			return func() []byte {
				m := letters(int(letters(1)[0]) + 1)
				m[0] %= 6
				if len(m) > 4 {
					clear(m[1:4])
				}
				return m
			}
		}, false},
		{"replayed messages", func(_ *end, seen [][]byte) func() []byte {
			i := 0
			var mu sync.Mutex
			return func() []byte {
				mu.Lock()
				defer mu.Unlock()
				i++
				return seen[i%len(seen)]
			}
		}, false},
		{"initiations of strangers", func(b *end, _ [][]byte) func() []byte {
			public := b.secret.Public()
			var ready [64][]byte
			for i := range ready {
				ready[i] = initiation(public)
			}
			return func() []byte { return ready[letters(1)[0]%64] }
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := newEnd(t, 2), newEnd(t, 2)
			w := newWire(t, b.port)
			a.meets(b.secret.Public(), "127.0.0.1", w.port, "10.2.0.0/16")
			b.meets(a.secret.Public(), "127.0.0.1", 0, "10.1.0.0/16")
			good := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(1000)}
			for range 20 {
				a.reaches(b, good.bytes())
			}
			w.mu.Lock()
			seen := slices.Clone(w.seen)
			w.mu.Unlock()
			answers := flood(t, b.port, c.next(b, seen))
			time.Sleep(200 * time.Millisecond)
			came := 0
			const count = 100
			for i := range uint32(count) {
				s := good
				s.payload = slices.Clone(s.payload)
				binary.BigEndian.PutUint32(s.payload, i)
				a.put(0, append(make([]byte, sizeVnet), s.bytes()...))
				for until := time.Now().Add(300 * time.Millisecond); time.Now().Before(until); {
					got := b.takeAny(100 * time.Millisecond)
					if len(got) == 1 && binary.BigEndian.Uint32(got[0][28:]) == i {
						came++
						break
					}
				}
			}
			if came < count*9/10 {
				t.Errorf("of %d packets only %d came", count, came)
			}
			// A peer that has lost its session gets another, by a cookie where that is asked for.
			a.device.LookupPeer(device.NoisePublicKey(b.secret.Public())).ExpireCurrentKeypairs()
			good.payload = letters(90)
			retries := 0
			for until := time.Now().Add(20 * time.Second); ; retries++ {
				a.put(0, append(make([]byte, sizeVnet), good.bytes()...))
				if got := b.takeAny(500 * time.Millisecond); len(got) > 0 && len(got[0]) == 118 {
					break
				}
				if time.Now().After(until) {
					t.Fatal("there is no new session")
				}
			}
			got := answers()
			t.Logf("%d of %d packets came; a session after %d retries; answers by type: %v", came, count, retries, got)
			if c.cookies && got[device.MessageCookieReplyType] == 0 {
				t.Errorf("no cookie was sent: %v", got)
			}
			if got[device.MessageResponseType]+got[device.MessageTransportType] > 0 {
				t.Errorf("strangers got answers of the types %v", got)
			}
		})
	}
}

// No key is used twice with one number: not by several workers, not after a session was made anew, not after the
// process was.
func TestNoncesNeverRepeat(t *testing.T) {
	for _, workers := range []int{1, 3} {
		a, b := newEnd(t, workers), newEnd(t, 2)
		w := newWire(t, b.port)
		meet := func() { a.meets(b.secret.Public(), "127.0.0.1", w.port, "10.2.0.0/16") }
		meet()
		b.meets(a.secret.Public(), "127.0.0.1", 0, "10.1.0.0/16")
		send := func() {
			for i := range 30 {
				a.put(i%workers, append(make([]byte, sizeVnet), (&sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(20 + i)}).bytes()...))
				a.put(i%workers, together(&sample{from: four[0], to: four[1], protocol: unix.IPPROTO_TCP, flags: flagACK, payload: letters(30000)}, 1000))
			}
			// What waits for a session is dropped if other workers have more: it is sent until it comes.
			last := (&sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(99)}).bytes()
			came := false
			for until := time.Now().Add(2 * patience); !came; {
				a.put(0, append(make([]byte, sizeVnet), last...))
				for again := time.Now().Add(time.Second); !came && time.Now().Before(again); {
					for _, p := range b.takeAny(100 * time.Millisecond) {
						came = came || bytes.Equal(p, last)
					}
				}
				if time.Now().After(until) {
					t.Fatalf("nothing comes: %q %q", a.errors, b.errors)
				}
			}
			time.Sleep(30 * time.Millisecond) // handshakes that follow faster are refused
		}
		send()
		for range 3 {
			a.device.LookupPeer(device.NoisePublicKey(b.secret.Public())).ExpireCurrentKeypairs()
			send()
			a.device.Close()
			a.start(workers)
			meet()
			send()
		}
		type number struct {
			receiver uint32
			counter  uint64
		}
		used, sessions := map[number]bool{}, map[uint32]bool{}
		for _, m := range w.messages(device.MessageTransportType) {
			n := number{binary.LittleEndian.Uint32(m[4:]), binary.LittleEndian.Uint64(m[8:])}
			if used[n] {
				t.Fatalf("%d workers: number %d of session %x is used twice", workers, n.counter, n.receiver)
			}
			used[n], sessions[n.receiver] = true, true
		}
		if len(sessions) < 7 || len(used) < 7*30 {
			t.Errorf("%d workers: %d messages in %d sessions", workers, len(used), len(sessions))
		}
	}
}

// A hundred peers at one end: each reaches its own network, and nobody else's.
func TestPeers(t *testing.T) {
	const count = 100
	hub := newEnd(t, 2)
	peers := make([]*end, count)
	for i := range peers {
		peers[i] = newEnd(t, 1)
		hub.meets(peers[i].secret.Public(), "127.0.0.1", peers[i].port, fmt.Sprintf("10.%d.0.0/16", 100+i))
		peers[i].meets(hub.secret.Public(), "127.0.0.1", hub.port, "10.1.0.0/16")
	}
	for round := range 5 {
		for i := range peers {
			s := sample{from: four[0], to: netipAddr(fmt.Sprintf("10.%d.0.1:80", 100+i)), protocol: unix.IPPROTO_UDP, payload: letters(100 + round)}
			hub.put(i%2, append(make([]byte, sizeVnet), s.bytes()...))
		}
		for i, p := range peers {
			got := p.takeAny(patience)
			if len(got) != 1 || got[0][17] != byte(100+i) {
				t.Fatalf("round %d: peer %d got %x", round, i, got)
			}
			back := sample{from: netipAddr(fmt.Sprintf("10.%d.0.1:80", 100+i)), to: four[0], protocol: unix.IPPROTO_UDP, payload: letters(100 + round)}
			p.reaches(hub, back.bytes())
		}
	}
}

// A connection's packets are not allocated for.
func TestAllocations(t *testing.T) {
	a, b := pairOf(t, "127.0.0.1", 1)
	a.reaches(b, (&sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(100)}).bytes())
	read := together(&sample{from: four[0], to: four[1], protocol: unix.IPPROTO_TCP, flags: flagACK, payload: letters(60000)}, 1300)
	room := make([]byte, 1<<17)
	got := testing.AllocsPerRun(300, func() {
		if _, err := unix.Write(a.tun[0], read); err != nil {
			t.Fatal(err)
		}
		for came := 0; came < 60000; {
			n, err := unix.Read(b.tun[0], room)
			if err != nil {
				t.Fatal(err)
			}
			came += n - 50
		}
	})
	// 47 packets in a run; what is left are timers.
	if got > 3 {
		t.Errorf("%v allocations in 47 packets", got)
	}
}
