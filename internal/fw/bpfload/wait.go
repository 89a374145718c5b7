package bpfload

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// WaitForRuns returns when every program run and every poll of a device's queue that had
// begun before it has ended. It waits for a grace period of RCU, some 10 ms: the kernel does
// so after each update of a map of maps, which has no other use here. membarrier(2) would
// wait as well, but not with nohz_full.
func WaitForRuns() error {
	inner := &ebpf.MapSpec{Name: "weir_wait_in", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}
	m, err := ebpf.NewMap(inner)
	if err != nil {
		return fmt.Errorf("wait for running programs: %w", err)
	}
	outer, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: "weir_wait", Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4, MaxEntries: 1, InnerMap: inner,
	})
	if err != nil {
		return fmt.Errorf("wait for running programs: %w", errors.Join(err, m.Close()))
	}
	err = outer.Put(uint32(0), m)
	if err = errors.Join(err, outer.Close(), m.Close()); err != nil {
		return fmt.Errorf("wait for running programs: %w", err)
	}
	return nil
}
