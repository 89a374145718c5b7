package dataplane

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"weir/internal/fw/bpfload"
)

// An importer is a set of tables that states are copied into, with the import program of
// their layout.
type importer struct {
	maps    map[string]*bpfload.Map
	shared  sharedFields
	states  rawStates
	ours    []xdpState          // the states, if they have this version's layout
	back    *bpfload.Conversion // converts this version's states to the importer's; nil: they are the same
	program *bpfload.Program
	form    importForm
	alone   bool // no packets use the tables, so only states from here are in them
}

// An importForm holds the offsets of the fields of struct import (bpf/state/import.h).
type importForm struct {
	size                      int
	state, index, owner, find int // -1: no such field
	extra, hop, limiters      int // likewise
	use, normal               int // likewise
}

// currentForm is the form of this version.
var currentForm = importForm{
	size:  int(unsafe.Sizeof(importing{})),
	state: int(unsafe.Offsetof(importing{}.State)), index: int(unsafe.Offsetof(importing{}.Index)),
	owner: int(unsafe.Offsetof(importing{}.Owner)), find: int(unsafe.Offsetof(importing{}.Find)),
	extra: int(unsafe.Offsetof(importing{}.Extra)), limiters: int(unsafe.Offsetof(importing{}.Limiters)),
	hop: int(unsafe.Offsetof(importing{}.Hop)), use: int(unsafe.Offsetof(importing{}.Use)),
	normal: int(unsafe.Offsetof(importing{}.Normal)),
}

// newImporter returns an importer for tables of this version.
func newImporter(t *tables, program *bpfload.Program) *importer {
	s := t.shared
	return &importer{
		maps: t.maps, ours: t.states, states: rawStatesOf(t.states), program: program, form: currentForm,
		shared: sharedFields{pathsHigh: &s.PathsHigh, pathsReserved: &s.PathsReserved},
	}
}

// importState enters a state, or with find only looks for its owner. It returns the index of
// the state, or the index of the state that has one of its tuples. 0 means none. A version
// that knows no next hops that rules have chosen does not get a state with one: it would send
// the packets elsewhere.
func (d *importer) importState(s *xdpState, more *beside, find bool) (index, owner uint32, err error) {
	if s.Entered&keptRoutes != 0 && d.form.hop < 0 {
		return 0, 0, nil
	}
	if find && d.form.find < 0 {
		return 0, d.scan(s), nil
	}
	buffer := make([]byte, d.form.size)
	if err := d.encode(buffer[d.form.state:], s); err != nil {
		return 0, 0, err
	}
	if d.form.extra >= 0 {
		copy(buffer[d.form.extra:], bytesOf([]xdpExtra{more.extra}))
	}
	if d.form.limiters >= 0 {
		binary.NativeEndian.PutUint32(buffer[d.form.limiters:], more.limiters)
	}
	if d.form.hop >= 0 {
		copy(buffer[d.form.hop:], bytesOf(more.hops[:]))
	}
	if d.form.use >= 0 {
		copy(buffer[d.form.use:], bytesOf([]xdpPoolUse{more.use}))
	}
	if d.form.normal >= 0 {
		copy(buffer[d.form.normal:], bytesOf([]xdpNormal{more.normal}))
	}
	if find {
		binary.NativeEndian.PutUint32(buffer[d.form.find:], 1)
	}
	if _, err := bpfload.RunSyscall(d.program, buffer); err != nil {
		return 0, 0, fmt.Errorf("copy a state: %w", err)
	}
	index = binary.NativeEndian.Uint32(buffer[d.form.index:])
	switch {
	case index != 0 || d.alone:
	case d.form.owner < 0:
		owner = d.scan(s)
	default:
		owner = binary.NativeEndian.Uint32(buffer[d.form.owner:]) >> 1
	}
	return index, owner, nil
}

// encode writes a state in the importer's layout.
func (d *importer) encode(to []byte, s *xdpState) error {
	from := bytesOf(unsafe.Slice(s, 1))
	if d.back == nil {
		copy(to, from)
		return nil
	}
	return d.back.Convert(to, from)
}

// scan searches for the state that has the first tuple, if the importer does not report
// it.
func (d *importer) scan(s *xdpState) uint32 {
	var n xdpState
	for i, err := range d.states.all(&n) {
		if err == nil && n.Forth.Tuple == s.Forth.Tuple {
			return uint32(i)
		}
	}
	return 0
}

// read reads the state at index. It returns false if no live state is there.
func (d *importer) read(index uint32, n *xdpState) bool {
	if index == 0 || int(index) >= d.states.count {
		return false
	}
	live, err := d.states.read(int(index), n)
	return live && err == nil
}

// change lets f change a state that packets may use at the same time. n holds the values
// read from it.
func (d *importer) change(index uint32, n *xdpState, f func(*xdpState)) error {
	if d.ours != nil {
		f(&d.ours[index])
		return nil
	}
	before, after := make([]byte, d.states.stride), make([]byte, d.states.stride)
	if err := d.encode(before, n); err != nil {
		return err
	}
	f(n)
	if err := d.encode(after, n); err != nil {
		return err
	}
	raw := d.states.at(int(index))
	for at := 0; at < d.states.stride; at += 4 {
		if value := *word(after, at); value != *word(before, at) {
			atomic.StoreUint32(word(raw, at), value)
		}
	}
	return nil
}

// end marks a state dead.
func (d *importer) end(index uint32) {
	atomic.CompareAndSwapUint32(word(d.states.at(int(index)), d.states.status), statusLive, statusDead)
}
