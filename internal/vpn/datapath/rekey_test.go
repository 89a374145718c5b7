package datapath

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/device"
)

// Both ends agree on other keys under traffic, again and again. No packet is lost, none comes twice, and none overtakes another.
func TestRekeyUnderTraffic(t *testing.T) {
	a, b := pairOf(t, "127.0.0.1", 2)
	good := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(200)}
	a.reaches(b, good.bytes())
	const count, rekeys, burst = 12000, 12, 500
	ends := [2]*end{a, b}
	peers := [2]*device.Peer{a.device.LookupPeer(device.NoisePublicKey(b.secret.Public())), b.device.LookupPeer(device.NoisePublicKey(a.secret.Public()))}
	before := peers[0].LastHandshake()
	sent := make(chan struct{})
	var next atomic.Uint32 // the packet that comes next
	go func() {
		defer close(sent)
		for i := range uint32(count) {
			s := good
			s.payload = slices.Clone(s.payload)
			binary.BigEndian.PutUint32(s.payload, i)
			a.put(0, append(make([]byte, sizeVnet), s.bytes()...))
			if i%(count/rekeys) == burst/4 {
				if _, err := peers[i/(count/rekeys)%2].Probe(nil); err != nil {
					t.Error(err)
				}
			}
			for i >= next.Load()+burst && t.Context().Err() == nil { // the sockets hold no more for sure
				time.Sleep(time.Millisecond)
			}
			if i%burst == 0 {
				time.Sleep(5 * time.Millisecond) // handshakes are as far apart as they have to be
			}
		}
	}()
	others, last := 0, before
	for next.Load() < count {
		got := b.takeAny(patience)
		if got == nil {
			t.Fatalf("nothing comes after %d of %d packets: %q %q", next.Load(), count, ends[0].errors, ends[1].errors)
		}
		for _, p := range got {
			if i := binary.BigEndian.Uint32(p[28:]); i != next.Load() {
				t.Fatalf("packet %d came instead of %d", i, next.Load())
			}
			next.Add(1)
		}
		if at := peers[0].LastHandshake(); !at.Equal(last) {
			others, last = others+1, at
		}
	}
	<-sent
	if others < rekeys/2 {
		t.Errorf("there were other keys %d times, want %d", others, rekeys)
	}
}
