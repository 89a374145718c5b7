package bpfload

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"

	"weir/internal/killpoint"
)

// OpenMap opens a pinned map. The error is fs.ErrNotExist if there is none.
func OpenMap(path string) (*Map, error) {
	m, err := ebpf.LoadPinnedMap(path, nil)
	if err != nil {
		return nil, fmt.Errorf("open the pinned map %s: %w", path, err)
	}
	return m, nil
}

// PinMap pins the map at path, so that it outlives the process.
func PinMap(m *Map, path string) error {
	// Pin a clone, because the library lets a map be pinned in one place only.
	clone, err := m.Clone()
	if err != nil {
		return fmt.Errorf("pin a map at %s: %w", path, err)
	}
	defer clone.Close()
	if err := clone.Pin(path); err != nil {
		return fmt.Errorf("pin a map: %w", err)
	}
	killpoint.Done("pin %s", path)
	return nil
}

// MapIDs returns the ids of the maps pinned in a folder. It returns none if the folder
// does not exist.
func MapIDs(dir string) (map[uint32]bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list pins: %w", err)
	}
	ids := make(map[uint32]bool, len(entries))
	for _, e := range entries {
		id, err := MapID(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		ids[id] = true
	}
	return ids, nil
}

// MapID returns the id of a pinned map.
func MapID(path string) (uint32, error) {
	m, err := OpenMap(path)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	return ID(m)
}

// ID returns a map's id.
func ID(m *Map) (uint32, error) {
	info, err := m.Info()
	if err != nil {
		return 0, fmt.Errorf("ask about a map: %w", err)
	}
	id, ok := info.ID()
	if !ok {
		return 0, errors.New("this kernel does not number maps")
	}
	return uint32(id), nil
}
