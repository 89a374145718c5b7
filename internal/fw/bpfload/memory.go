package bpfload

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Memory is a map's values, mapped into this process. Programs and other processes may
// change them at any time.
type Memory struct {
	bytes []byte
	value uintptr // bytes from one value to the next
	count int
}

// MapMemory maps the values of an array that was made with BPF_F_MMAPABLE.
func MapMemory(m *Map) (*Memory, error) {
	value := (uintptr(m.ValueSize()) + 7) &^ 7 // the kernel rounds values up
	size := int(value) * int(m.MaxEntries())
	page := os.Getpagesize()
	size = (size + page - 1) / page * page
	bytes, err := unix.Mmap(m.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s into memory: %w", m, err)
	}
	return &Memory{bytes: bytes, value: value, count: int(m.MaxEntries())}, nil
}

// Close ends the mapping. Slices of it must not be used any more.
func (m *Memory) Close() error {
	if m.bytes == nil {
		return nil
	}
	err := unix.Munmap(m.bytes)
	m.bytes = nil
	return err
}

// Values returns the values of m as a slice of T, which must have their size.
func Values[T any](m *Memory) ([]T, error) {
	if size := unsafe.Sizeof(*new(T)); size != m.value {
		return nil, fmt.Errorf("values of %d bytes seen as %T of %d", m.value, *new(T), size)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(m.bytes))), m.count), nil
}

// Count returns the number of values.
func (m *Memory) Count() int { return m.count }

// Stride returns the number of bytes from one value to the next.
func (m *Memory) Stride() int { return int(m.value) }

// Bytes returns all values, one after the other.
func (m *Memory) Bytes() []byte { return m.bytes }
