package dataplane

import (
	"errors"

	"github.com/cilium/ebpf"
)

// mapSteerFrames are the frames on their way to cores (bpf/hook/xdp.h).
const mapSteerFrames = "steer_frames"

// queueHeldBy is QUEUE_HELD_BY: a byte says that a qdisc holds packets, and which core goes on with them.
const queueHeldBy = 2

// MostHeldCore is the last core that may go on with packets that the kernel holds.
const MostHeldCore = 255 - queueHeldBy

// roomForFrames is how many frames may wait for a core: those of milliseconds, if it is busy.
const roomForFrames = 2048

// openCore has the kernel take frames for a core, unless it does: anew it would start another thread.
func (d *Dataplane) openCore(core uint32) error {
	m := d.objects.Maps[mapSteerFrames]
	var frames uint32
	err := m.Lookup(core, &frames)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return m.Put(core, uint32(roomForFrames))
	}
	return err
}
