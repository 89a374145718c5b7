package dataplane

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"unsafe"

	"weir/internal/fw/bpfload"
)

// An origin is a set of tables that states are copied from. If they have another layout,
// the kernel's BTF of their maps gives the offsets of the fields.
type origin struct {
	maps       map[string]*bpfload.Map
	memory     []*bpfload.Memory
	states     rawStates
	extras     []xdpExtra   // beside the states; nil: they have none
	limited    []xdpLimited // likewise
	shared     sharedFields
	interfaces []xdpInterface // as they were when the origin was opened
	logicals   []uint64       // likewise
	all        []byte         // struct shared
	other      bool           // the tables have another layout
	layout     uint32
	begun      uint32 // tick at which copying from here began; 0: it begins now
}

// sharedFields holds the fields of struct shared that outlive their generation.
type sharedFields struct {
	now, heartbeat, routeGeneration, recording, prefetch, limit *uint32
	pathsHigh, pathsReserved                                    *uint32
	flags                                                       []*uint32 // of the known interfaces
}

// originOf returns an origin of tables with this version's layout. It owns their maps.
func originOf(t *tables) *origin {
	s := t.shared
	o := &origin{
		maps: t.maps, memory: t.memory, layout: stateLayout,
		states: rawStatesOf(t.states), extras: t.extras, limited: t.limited,
		shared: sharedFields{
			now: &s.Now, heartbeat: &s.Heartbeat, routeGeneration: &s.RouteGeneration, recording: &s.Recording,
			prefetch: &s.Prefetch, limit: &s.Limit, pathsHigh: &s.PathsHigh, pathsReserved: &s.PathsReserved,
		},
		interfaces: make([]xdpInterface, len(s.Interfaces)),
		logicals:   s.Logicals[:],
		all:        bytesOf(unsafe.Slice(s, 1)),
	}
	for i := range s.Interfaces {
		o.interfaces[i] = xdpInterface(s.Interfaces[i])
	}
	for _, raw := range t.interfaces() {
		o.shared.flags = append(o.shared.flags, &raw.Flags)
	}
	return o
}

// openOrigin opens the tables pinned in dir, which have the given layout.
func openOrigin(dir string, layout uint32) (_ *origin, err error) {
	if layout == stateLayout {
		t, err := openTables(dir)
		if err == nil {
			return originOf(t), nil
		}
		if !errors.Is(err, ErrLayout) {
			return nil, err
		}
	}
	o := &origin{maps: make(map[string]*bpfload.Map), other: true, layout: layout}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.close())
		}
	}()
	pins, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list the pinned tables: %w", err)
	}
	for _, pin := range pins {
		name := mapName(pin.Name(), layout)
		if o.maps[name], err = bpfload.OpenMap(filepath.Join(dir, pin.Name())); err != nil {
			return nil, err
		}
	}
	return o, errors.Join(o.mapStates(), o.mapExtras(), o.mapShared())
}

// mapStates maps the states and finds the offsets of their fields.
func (o *origin) mapStates() error {
	memory, from, err := o.mapMemory(mapStates)
	if err != nil {
		return err
	}
	o.states, err = newRawStates(memory, from, o.layout)
	return err
}

// newRawStates returns the states of a layout in mapped memory.
func newRawStates(memory *bpfload.Memory, from *bpfload.Shape, layout uint32) (r rawStates, err error) {
	to, err := ourShape(mapStates)
	if err != nil {
		return r, err
	}
	r = rawStates{bytes: memory.Bytes(), stride: memory.Stride(), count: memory.Count()}
	if r.status, _, err = from.Field(formerName("state", "status", layout)); err != nil {
		return r, err
	}
	r.convert, err = bpfload.NewConversion(from, to, renames(layout))
	return r, err
}

func (o *origin) mapMemory(name string) (*bpfload.Memory, *bpfload.Shape, error) {
	m := o.maps[name]
	if m == nil {
		return nil, nil, fmt.Errorf("there is no map %s: %w", name, ErrLayout)
	}
	_, value, err := bpfload.MapShapes(m)
	if err != nil {
		return nil, nil, err
	}
	memory, err := bpfload.MapMemory(m)
	if err != nil {
		return nil, nil, err
	}
	o.memory = append(o.memory, memory)
	return memory, value, nil
}

// ourShape returns the shape of a map's values in this version.
func ourShape(name string) (*bpfload.Shape, error) {
	specs, err := loadSpecs()
	if err != nil {
		return nil, err
	}
	for _, spec := range specs {
		if m := spec.Maps[name]; m != nil {
			_, value, err := bpfload.SpecShapes(m)
			return value, err
		}
	}
	return nil, fmt.Errorf("the objects have no map %s", name)
}

// mapShared finds the fields of struct shared.
func (o *origin) mapShared() error {
	memory, shape, err := o.mapMemory(mapShared)
	if err != nil {
		return err
	}
	o.all = memory.Bytes()[:shape.Size()]
	s := &o.shared
	for name, field := range map[string]**uint32{
		"now": &s.now, "heartbeat": &s.heartbeat, "route_generation": &s.routeGeneration, "recording": &s.recording,
		"prefetch": &s.prefetch, "limit": &s.limit, "paths_high": &s.pathsHigh, "paths_reserved": &s.pathsReserved,
	} {
		at, what, err := shape.Field(formerName("shared", name, o.layout))
		if err != nil {
			return err
		}
		if what.Size() != 4 {
			return fmt.Errorf("field %s of struct shared has %d bytes: %w", name, what.Size(), ErrLayout)
		}
		*field = word(memory.Bytes(), at)
	}
	return o.readInterfaces(memory, shape)
}

func (o *origin) readInterfaces(memory *bpfload.Memory, shared *bpfload.Shape) error {
	at, all, err := shared.Field(formerName("shared", "interfaces", o.layout))
	if err != nil {
		return err
	}
	one, count, err := all.Elements()
	if err != nil {
		return err
	}
	flags, _, err := one.Field(formerName("interface", "flags", o.layout))
	if err != nil {
		return err
	}
	o.interfaces, o.logicals = make([]xdpInterface, MaxIfindex), make([]uint64, maxLogicals)
	if err := o.readArray("interfaces", shared, bytesOf(o.interfaces)); err != nil {
		return err
	}
	if _, _, err := shared.Field(formerName("shared", "logicals", o.layout)); err == nil { // layout 8 has none
		if err := o.readArray("logicals", shared, bytesOf(o.logicals)); err != nil {
			return err
		}
	}
	for i := range min(count, MaxIfindex) {
		o.interfaces[i].Counters = o.newCounters(o.interfaces[i].Counters)
		if o.interfaces[i].has(InterfacePresent) {
			o.shared.flags = append(o.shared.flags, word(memory.Bytes(), at+i*one.Size()+flags))
		}
	}
	return nil
}

// readArray converts an array of struct shared.
func (o *origin) readArray(name string, shared *bpfload.Shape, to []byte) error {
	at, from, err := shared.Field(formerName("shared", name, o.layout))
	if err != nil {
		return err
	}
	ours, err := ourShape(mapShared)
	if err != nil {
		return err
	}
	_, field, err := ours.Field(name)
	if err != nil {
		return err
	}
	convert, err := bpfload.NewConversion(from, field, renames(o.layout))
	if err != nil {
		return err
	}
	if err := convert.Convert(to, o.all[at:at+from.Size()]); err != nil {
		return fmt.Errorf("read the %s: %w", name, err)
	}
	return nil
}

// word returns a word of mapped memory.
func word(memory []byte, at int) *uint32 { return (*uint32)(unsafe.Pointer(&memory[at])) }

func bytesOf[T any](values []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(*new(T))))
}

func (o *origin) close() error {
	var errs []error
	for _, m := range o.memory {
		errs = append(errs, m.Close())
	}
	for _, m := range o.maps {
		errs = append(errs, m.Close())
	}
	o.memory, o.maps, o.all, o.extras, o.states, o.shared = nil, nil, nil, nil, rawStates{}, sharedFields{}
	return errors.Join(errs...)
}

// stopPrefetch stops the programs that use these tables from prefetching.
func (o *origin) stopPrefetch() error {
	on := atomic.LoadUint32(o.shared.prefetch) != 0
	for _, flags := range o.shared.flags {
		on = on || InterfaceFlags(atomic.LoadUint32(flags))&(interfaceDevmap|interfacePrefetch) != 0
	}
	if !on {
		return nil
	}
	return stopPrefetch(o.shared.prefetch, slices.Values(o.shared.flags))
}

// captures reports whether packets went through the capture programs.
func (o *origin) captures() bool { return atomic.LoadUint32(o.shared.recording)&(1<<CaptureRing) != 0 }

// heartbeat tells the programs that use these tables that a daemon lives.
func (o *origin) heartbeat() {
	atomic.StoreUint32(o.shared.heartbeat, atomic.LoadUint32(o.shared.now))
}

// rawStates holds states of any layout.
type rawStates struct {
	bytes         []byte
	stride, count int
	status        int                 // its offset in a state
	convert       *bpfload.Conversion // nil: the states have this version's layout
}

// rawStatesOf returns states of this version's layout.
func rawStatesOf(states []xdpState) rawStates {
	return rawStates{
		bytes: bytesOf(states), stride: int(unsafe.Sizeof(xdpState{})), count: len(states),
		status: int(unsafe.Offsetof(xdpState{}.Status)),
	}
}

func (r *rawStates) at(i int) []byte { return r.bytes[i*r.stride : (i+1)*r.stride] }

func (r *rawStates) lives(i int) bool {
	return atomic.LoadUint32(word(r.at(i), r.status)) == statusLive
}

// read reads a state. It returns false if there is no live state at i, or if another one
// took the index meanwhile.
func (r *rawStates) read(i int, s *xdpState) (bool, error) {
	if !r.lives(i) {
		return false, nil
	}
	var again xdpState
	for _, to := range []*xdpState{s, &again} {
		if r.convert == nil {
			*to = *(*xdpState)(unsafe.Pointer(unsafe.SliceData(r.at(i))))
			continue
		}
		*to = xdpState{}
		if err := r.convert.Convert(bytesOf(unsafe.Slice(to, 1)), r.at(i)); err != nil {
			return true, fmt.Errorf("state %d: %w", i, err)
		}
	}
	return r.lives(i) && s.Created == again.Created && s.Forth.Tuple == again.Forth.Tuple && s.Back.Tuple == again.Back.Tuple, nil
}

// all yields the index of each live state after reading it into s. A state that cannot be
// read yields an error.
func (r *rawStates) all(s *xdpState) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := 1; i < r.count; i++ {
			if live, err := r.read(i, s); (live || err != nil) && !yield(i, err) {
				return
			}
		}
	}
}
