package bpfload

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// NewInner makes a map of the kind that a map of maps holds. The caller closes it. A map
// of maps keeps the maps that are put into it.
func (l *Objects) NewInner(outer string) (*Map, error) {
	spec := l.innerSpec(outer)
	if spec == nil {
		return nil, fmt.Errorf("the objects have no map of maps %s", outer)
	}
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return nil, fmt.Errorf("make a map of %s: %w", outer, err)
	}
	return m, nil
}

func (l *Objects) innerSpec(outer string) *MapSpec {
	for i := range l.objects {
		if m := l.objects[i].spec.Maps[outer]; m != nil {
			return m.InnerMap
		}
	}
	return nil
}

// PutInner puts maps into a map of maps from index first on, all in one call. At the end
// of a call the kernel waits until no program uses what it replaced.
func (l *Objects) PutInner(outer string, first uint32, inner []*Map) error {
	keys, values := make([]uint32, len(inner)), make([]uint32, len(inner))
	for i, m := range inner {
		keys[i], values[i] = first+uint32(i), uint32(m.FD())
	}
	if len(inner) == 0 {
		return nil
	}
	if _, err := l.Maps[outer].BatchUpdate(keys, values, nil); err != nil {
		return fmt.Errorf("put %d maps into %s: %w", len(inner), outer, err)
	}
	return nil
}

// OpenInner opens a map in a map of maps. The caller closes it.
func OpenInner(outer *Map, index uint32) (*Map, error) {
	var id ebpf.MapID
	if err := outer.Lookup(index, &id); err != nil {
		return nil, fmt.Errorf("look for map %d in %s: %w", index, outer, err)
	}
	m, err := ebpf.NewMapFromID(id)
	if err != nil {
		return nil, fmt.Errorf("open map %d of %s: %w", index, outer, err)
	}
	return m, nil
}
