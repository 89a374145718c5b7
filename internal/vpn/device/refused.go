package device

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Refused are packets of a peer that were dropped, as their source is in none of its allowed networks.
type Refused struct {
	Packets uint64
	Source  netip.Addr // of the last
	Time    time.Time
}

// refused is what a peer remembers of them.
type refused struct {
	sync.Mutex
	Refused
}

// Refuse notes that a packet of the peer, with a source of 4 or 16 bytes, was dropped. Those that no host sends beyond
// its link do not count: a system sends some by itself at each interface.
func (peer *Peer) Refuse(source []byte, now time.Time) {
	from, ok := netip.AddrFromSlice(source)
	if !ok || from.IsUnspecified() || from.Is6() && from.IsLinkLocalUnicast() {
		return
	}
	r := &peer.First().refused
	r.Lock()
	defer r.Unlock()
	r.Packets, r.Source, r.Time = r.Packets+1, from, now
}

// Refused returns what was dropped.
func (peer *Peer) Refused() Refused {
	r := &peer.refused
	r.Lock()
	defer r.Unlock()
	return r.Refused
}

// A Stranger is somebody who has begun a handshake with this end, which no peer has.
type Stranger struct {
	From netip.AddrPort
	Key  NoisePublicKey // zero: the handshake was for another public key than this end's, so nothing of it can be read
	Time time.Time
}

// How many strangers are remembered, and how often one is noted: anybody may send such messages.
const (
	mostStrangers = 8
	strangerPause = time.Second / 4
)

// strangers are those of the device, each address once.
type strangers struct {
	sync.Mutex
	all  []Stranger // the last one at the end
	last time.Time
}

func (s *strangers) note(is Stranger) {
	s.Lock()
	defer s.Unlock()
	if is.Time.Sub(s.last) < strangerPause {
		return
	}
	s.last = is.Time
	s.all = slices.DeleteFunc(s.all, func(was Stranger) bool { return was.From.Addr() == is.From.Addr() })
	if len(s.all) == mostStrangers {
		s.all = slices.Delete(s.all, 0, 1)
	}
	s.all = append(s.all, is)
}

// Strangers returns who has begun handshakes that no peer has, the last one at the end.
func (device *Device) Strangers() []Stranger {
	s := &device.strangers
	s.Lock()
	defer s.Unlock()
	return slices.Clone(s.all)
}
