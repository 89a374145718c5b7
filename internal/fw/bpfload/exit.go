package bpfload

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// PutDevmap sets an entry of a device map: an interface of the calling thread's network
// namespace, and the program that runs on frames redirected to it.
func PutDevmap(m *Map, key, ifindex uint32, p *Program) error {
	entry := struct { // struct bpf_devmap_val
		ifindex uint32
		fd      int32
	}{ifindex, int32(p.FD())}
	if err := m.Update(key, &entry, ebpf.UpdateAny); err != nil {
		return fmt.Errorf("put interface %d and a program into %s: %w", ifindex, m, err)
	}
	return nil
}

// RunAlone makes a devmap program load as one that RunXDP accepts.
func RunAlone(spec *Spec, program string) {
	if p := spec.Programs[program]; p != nil {
		p.AttachType = ebpf.AttachXDP
	}
}

// membarrierGlobal is MEMBARRIER_CMD_GLOBAL (linux/membarrier.h).
const membarrierGlobal = 1

// WaitForRuns returns when every program run and every poll of a device's queue that had
// begun before it has ended. It waits for a grace period of RCU, some 10 ms. It returns
// an error if the kernel offers none (with nohz_full).
func WaitForRuns() error {
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0); errno != 0 {
		return fmt.Errorf("wait for running programs: membarrier: %w", errno)
	}
	return nil
}

// OpenCore has a CPU map take frames for a core, so many at once. It does nothing if the map does so already:
// another entry would start another thread.
func OpenCore(m *Map, core, frames uint32) error {
	var now uint32
	err := m.Lookup(core, &now)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return m.Put(core, frames)
	}
	return err
}
