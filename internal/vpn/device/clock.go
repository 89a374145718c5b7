package device

import (
	"encoding/binary"
	"sync"
	"time"

	"golang.zx2c4.com/wireguard/tai64n"
)

// A timestamp has the seconds of TAI64 and a number of nanoseconds, of which the lowest bits are zero: they would tell how fast this
// machine is.
const (
	timestampBase = 1<<62 + 10
	timestampStep = 1 << 24
)

// stamp returns the time that the next first message of a handshake has: now. If the clock has gone back, or another message was created
// just before, it is a moment later than the last one: the peer takes no message that is not.
func (h *Handshake) stamp(now tai64n.Timestamp) tai64n.Timestamp {
	if !now.After(h.sentTimestamp) {
		now = h.sentTimestamp
		seconds, n := binary.BigEndian.Uint64(now[:8]), binary.BigEndian.Uint32(now[8:])
		if n += timestampStep; n >= uint32(time.Second) {
			seconds, n = seconds+1, 0
		}
		binary.BigEndian.PutUint64(now[:8], seconds)
		binary.BigEndian.PutUint32(now[8:], n)
	}
	h.sentTimestamp = now
	return now
}

// stamps are the times that first messages of handshakes had, whoever they were for.
type stamps struct {
	sync.Mutex
	after, last tai64n.Timestamp
}

// StampAfter has all first messages be later than a time: those of an earlier process had it. Peers remember the latest one, and take none
// that is not later; so a box would be alone after its clock has gone back over a restart.
func (device *Device) StampAfter(t time.Time) {
	device.stamps.Lock()
	defer device.stamps.Unlock()
	device.stamps.after = stampOf(t)
}

// Stamped returns the latest time that a first message had; zero: there was none.
func (device *Device) Stamped() time.Time {
	device.stamps.Lock()
	defer device.stamps.Unlock()
	if device.stamps.last == (tai64n.Timestamp{}) {
		return time.Time{}
	}
	return timeOf(device.stamps.last)
}

// stamp returns the time of the next first message to a peer, whose handshake is locked.
func (device *Device) stamp(h *Handshake) tai64n.Timestamp {
	device.stamps.Lock()
	defer device.stamps.Unlock()
	if device.stamps.after.After(h.sentTimestamp) {
		h.sentTimestamp = device.stamps.after
	}
	t := h.stamp(tai64n.Now())
	if t.After(device.stamps.last) {
		device.stamps.last = t
	}
	return t
}

// stampOf returns the timestamp of a time since 1970.
func stampOf(at time.Time) (t tai64n.Timestamp) {
	binary.BigEndian.PutUint64(t[:8], timestampBase+uint64(max(at.Unix(), 0)))
	binary.BigEndian.PutUint32(t[8:], uint32(at.Nanosecond()))
	return t
}

// Behind are first messages of handshakes that were dropped, as the last one that counted has a later time: the peer's clock has gone back,
// or somebody sends messages of the peer again.
type Behind struct {
	Messages uint64
	Theirs   time.Time // of the last that was dropped
	Last     time.Time // of the last that counted
	Time     time.Time // when it was dropped
}

// behind is what a peer remembers of them.
type behind struct {
	sync.Mutex
	Behind
}

// fallBehind notes that a message was dropped. One that came twice is none.
func (peer *Peer) fallBehind(theirs, last tai64n.Timestamp, now time.Time) {
	if !last.After(theirs) {
		return
	}
	b := &peer.First().behind
	b.Lock()
	defer b.Unlock()
	b.Behind = Behind{b.Messages + 1, timeOf(theirs), timeOf(last), now}
}

// Behind returns what was dropped.
func (peer *Peer) Behind() Behind {
	b := &peer.behind
	b.Lock()
	defer b.Unlock()
	return b.Behind
}

// timeOf returns the time of a timestamp. A peer may say anything: what cannot be written as a date is the first or the last one that can.
func timeOf(t tai64n.Timestamp) time.Time {
	const last = 253402300799 // 9999-12-31
	seconds := binary.BigEndian.Uint64(t[:8])
	if seconds < timestampBase {
		return time.Unix(0, 0)
	}
	return time.Unix(int64(min(seconds-timestampBase, last)), int64(min(binary.BigEndian.Uint32(t[8:]), uint32(time.Second)-1)))
}

// LastHandshake returns when the last handshake came to its end; zero: none has. How long ago that is does not depend on changes of
// the clock.
func (peer *Peer) LastHandshake() time.Time {
	if at := peer.lastHandshake.Load(); at != nil {
		return *at
	}
	return time.Time{}
}
