package bpfload

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// liveFrames is BPF_F_TEST_XDP_LIVE_FRAMES (linux/bpf.h).
const liveFrames = 1 << 1

// xdpContext is struct xdp_md of linux/bpf.h.
type xdpContext struct {
	Data, DataEnd, DataMeta      uint32
	IngressIfindex, RxQueueIndex uint32
	EgressIfindex                uint32
}

// RunLive runs an XDP program n times on frames that seem to have just come in by a
// device of the calling thread's network namespace, and carries out the verdicts (XDP_TX
// sends the frames out of that device). New frames are copies of frame. Reused frames
// keep what earlier runs wrote into them. RunLive returns when all runs are done. A
// signal to the thread starts them again. Frames leave after batch runs (1 to 256; 0 is
// the kernel's 64), or when 16 frames wait.
func RunLive(p *Program, frame []byte, ifindex int, n, batch uint32) error {
	_, err := p.Run(&ebpf.RunOptions{
		Data:    frame,
		Context: xdpContext{DataEnd: uint32(len(frame)), IngressIfindex: uint32(ifindex)},
		Repeat:  n,
		Flags:   liveFrames,

		BatchSize: batch,
	})
	if err != nil {
		return fmt.Errorf("run on live frames of interface %d: %w", ifindex, err)
	}
	return nil
}

// PutDevice sets an entry of a device map.
func PutDevice(m *Map, key, ifindex uint32) error {
	if err := m.Put(key, ifindex); err != nil {
		return fmt.Errorf("put interface %d into %s: %w", ifindex, m, err)
	}
	return nil
}
