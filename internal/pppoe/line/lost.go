package line

import (
	"errors"
	"fmt"
	"unsafe"

	"weir/internal/fw/bpfload"
)

const (
	mapLosses  = "pppoe_losses"
	mapWatched = "pppoe_watched"
)

// Why is why a frame was dropped.
type Why uint8

// Reasons, as enum pppoe_drop of bpf/pppoe.bpf.c.
const (
	LostPeer Why = iota // in the session, but not from its concentrator
	LostLength
	_ // what leaves is not shown
	LostKernel
	LostOver
	LostEcho
	LostEnds // beyond the frames that end sessions and go on in a second
)

// Lost is a frame that was dropped where it came in.
type Lost struct {
	Time    uint64 // nanoseconds of CLOCK_BOOTTIME
	Ifindex int    // of the carrier
	Length  int
	Why     Why
	Data    []byte // its first bytes
}

// Watch says whether anybody wants to see frames that are dropped.
func (p *Programs) Watch(on bool) error {
	value := uint32(0)
	if on {
		value = 1
	}
	if err := p.objects.Maps[mapWatched].Put(uint32(0), value); err != nil {
		return fmt.Errorf("show what PPPoE drops: %w", err)
	}
	return nil
}

// Losses opens the ring with those frames. The caller closes it.
func (p *Programs) Losses() (*bpfload.Ring, error) {
	return bpfload.OpenRing(p.objects.Maps[mapLosses])
}

// ParseLost parses what the ring holds. Data is a slice of it.
func ParseLost(b []byte) (Lost, error) {
	var raw pppoePppoeLost
	if len(b) < int(unsafe.Sizeof(raw)) {
		return Lost{}, errors.New("not what PPPoE drops: too short")
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&raw)), unsafe.Sizeof(raw)), b)
	if int(raw.Captured) > len(raw.Data) {
		return Lost{}, errors.New("not what PPPoE drops: more bytes than there are")
	}
	data := b[unsafe.Offsetof(raw.Data):][:raw.Captured]
	return Lost{Time: raw.Time, Ifindex: int(raw.Ifindex), Length: int(raw.Length), Why: Why(raw.Why), Data: data}, nil
}
