package bpfload

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
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

// coreEntry is struct bpf_cpumap_val.
type coreEntry struct {
	Frames uint32
	FD     int32 // when read, the program's id
}

// CoreRoom returns how many frames may wait for a core in a CPU map with programs; 0: the map takes none for it.
func CoreRoom(m *Map, core uint32) (uint32, error) {
	var now coreEntry
	err := m.Lookup(core, &now)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return 0, nil
	}
	return now.Frames, err
}

// OpenCoreWith is OpenCore with a program that runs on the frames there. It says whether the map has not taken
// frames for the core before.
func OpenCoreWith(m *Map, core, frames uint32, p *Program) (opened bool, err error) {
	room, err := CoreRoom(m, core)
	if err != nil || room > 0 {
		return false, err
	}
	return true, m.Put(core, coreEntry{frames, int32(p.FD())})
}

// Twin adds a copy of an XDP program to an object, to be loaded for CPU maps. The copy has another map in
// place of one. There is none of a program that the object does not have.
func Twin(spec *Spec, program, name, from, to string) {
	p := spec.Programs[program]
	if p == nil || spec.Programs[name] != nil {
		return
	}
	twin := p.Copy()
	twin.Name, twin.AttachType = name, ebpf.AttachXDPCPUMap
	for i := range twin.Instructions {
		if in := &twin.Instructions[i]; in.Reference() == from && in.IsLoadFromMap() {
			*in = in.WithReference(to)
		}
	}
	spec.Programs[name] = twin
}
