package dataplane

import "fmt"

// mapSteerFrames are the frames on their way to cores (bpf/hook/xdp.h).
const mapSteerFrames = "steer_frames"

// queueHeldBy is QUEUE_HELD_BY: a byte says that a qdisc holds packets, and which core goes on with them.
const queueHeldBy = 2

// MostHeldCore is the last core that may go on with packets that the kernel holds.
const MostHeldCore = 255 - queueHeldBy

// roomForFrames is how many frames may wait for a core: those of milliseconds, if it is busy.
const roomForFrames = 2048

// HostProgram returns the descriptor of a program for filters of traffic control: it says of which
// host a packet is that the kernel holds where it leaves. It is open as long as the dataplane is.
func (d *Dataplane) HostProgram() (int, error) {
	if err := d.need(programQueueHost); err != nil {
		return 0, fmt.Errorf("load what tells hosts apart: %w", err)
	}
	return d.objects.Programs[programQueueHost].FD(), nil
}
