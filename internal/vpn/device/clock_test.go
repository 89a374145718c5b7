package device

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/tai64n"
)

// stampAt is the timestamp of a time.
func stampAt(seconds uint64, n uint32) (t tai64n.Timestamp) {
	copy(t[:], []byte{byte(seconds >> 56), byte(seconds >> 48), byte(seconds >> 40), byte(seconds >> 32), byte(seconds >> 24), byte(seconds >> 16), byte(seconds >> 8), byte(seconds)})
	copy(t[8:], []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	return t
}

// Each message is later than the one before, whatever the clock does, and says the clock's time again as soon as that is later.
func TestStamp(t *testing.T) {
	var h Handshake
	base := uint64(timestampBase)
	for i, c := range []struct{ clock, want tai64n.Timestamp }{
		{stampAt(base+1000, 0), stampAt(base+1000, 0)},
		{stampAt(base+1000, 0), stampAt(base+1000, timestampStep)},
		{stampAt(base+10, 7), stampAt(base+1000, 2*timestampStep)},
		{stampAt(base+1000, 59*timestampStep), stampAt(base+1000, 59*timestampStep)},
		{stampAt(base+1000, 58*timestampStep), stampAt(base+1001, 0)},
		{stampAt(base+2000, 0), stampAt(base+2000, 0)},
	} {
		if got := h.stamp(c.clock); got != c.want {
			t.Errorf("message %d says %s, want %s", i, got, c.want)
		}
	}
	if got, want := timeOf(tai64n.Now()), time.Now(); want.Sub(got) < 0 || want.Sub(got) > time.Second {
		t.Errorf("now is %v, want %v", got, want)
	}
}

// The clock of an end goes back, and the other end takes its handshakes all the same. It takes none of an end that begins anew with such a
// clock, and remembers that.
func TestClockGoesBack(t *testing.T) {
	ends := linkOf(t, 1)
	from := netip.MustParseAddrPort("192.0.2.0:51820")
	begin := func() (message recordedMessage, taken bool) {
		t.Helper()
		message = ends[0].initiationTo(t)
		time.Sleep(HandshakeInitationRate + 5*time.Millisecond)
		ends[1].arrive(message.message, from, 0)
		_, taken = ends[1].network.take(MessageResponseType)
		return message, taken
	}
	hour := uint64(time.Hour / time.Second)
	ends[0].peer.handshake.sentTimestamp = stampAt(timestampBase+uint64(time.Now().Unix())+hour, 0) // an hour ahead
	first, taken := begin()
	if !taken {
		t.Fatal("the first handshake is not taken")
	}
	second, taken := begin() // by the clock that is right
	if !taken {
		t.Error("after the clock has gone back no handshake is taken")
	}
	ends[1].arrive(second.message, from, 0)
	if b := ends[1].peer.Behind(); b.Messages != 0 {
		t.Errorf("a message that comes twice is taken for a clock that has gone back: %+v", b)
	}
	ends[0].peer.handshake.sentTimestamp = tai64n.Timestamp{} // another process
	if _, taken = begin(); taken {
		t.Error("a handshake of an earlier time is taken")
	}
	b := ends[1].peer.Behind()
	if ahead := b.Last.Sub(b.Theirs); b.Messages != 1 || ahead < time.Hour-time.Minute || ahead > time.Hour+time.Minute || time.Since(b.Time) > time.Minute {
		t.Errorf("of a clock that is an hour behind: %+v", b)
	}
	ends[0].Device.StampAfter(b.Last) // it knows what the one before has sent
	if _, taken = begin(); !taken {
		t.Error("a handshake that is later than those of the process before is not taken")
	}
	if said := ends[0].Device.Stamped(); !said.After(b.Last) || said.Sub(b.Last) > time.Second {
		t.Errorf("after %v a message says %v", b.Last, said)
	}
	ends[1].arrive(first.message, from, 0) // somebody sends it again
	if b = ends[1].peer.Behind(); b.Messages != 2 {
		t.Errorf("of an old message that somebody sends again: %+v", b)
	}
}

// A peer may say any time. What is told of it can be written.
func TestTimesThatAreNone(t *testing.T) {
	for _, s := range []tai64n.Timestamp{{}, stampAt(1<<64-1, 1<<32-1), stampAt(1<<63, 0), stampAt(timestampBase, 1<<32-1), stampAt(timestampBase-1, 0)} {
		if _, err := json.Marshal(timeOf(s)); err != nil {
			t.Errorf("the time of %s: %v", s, err)
		}
	}
}
