package dataplane

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"weir/internal/killpoint"
)

// EtherTypes of tags between a frame's MACs and its IP header.
const (
	Type8021Q  = 0x8100
	Type8021AD = 0x88a8
	TypePPPoE  = 0x8864
)

const (
	maxLogicals   = 16384 // MAX_LOGICALS of bpf/config.h
	logicalBucket = 8     // LOGICAL_BUCKET
	encapLayers   = 2     // ENCAP_LAYERS
	tagLength     = 4
	pppoeLength   = 8
	vlanIDMask    = 0x0fff
)

// SetLogicals sets the interfaces that XDP takes tagged frames for. SetInterface must
// have described each of them with a parent. Frames with any other tag go to the stack.
// It returns the interfaces for which there is no room, or whose frames would have too
// many tags.
func (d *Dataplane) SetLogicals(ifindexes []int) (left []int, err error) {
	wanted := make(map[uint64]bool)
	for _, ifindex := range ifindexes {
		raw, err := d.interfaceAt(ifindex)
		if err != nil {
			return nil, err
		}
		front, ok := d.front(raw)
		if !ok {
			left = append(left, ifindex)
			continue
		}
		raw.Front = front // no frame is assigned to this interface yet, or front has not changed
		wanted[logicalEntry(raw, ifindex)] = true
	}
	all := &d.tables.shared.Logicals
	for i := range all {
		if entry := atomic.LoadUint64(&all[i]); entry != 0 && !wanted[entry] {
			atomic.StoreUint64(&all[i], 0)
		} else {
			delete(wanted, entry)
		}
	}
	for entry := range wanted {
		if !enterLogical(all[:], entry) {
			left = append(left, logicalOf(entry))
		}
	}
	killpoint.Done("tell of logical interfaces")
	slices.Sort(left)
	return left, nil
}

// Logicals returns the interfaces that XDP takes tagged frames for.
func (d *Dataplane) Logicals() []int {
	var found []int
	all := &d.tables.shared.Logicals
	for i := range all {
		if entry := atomic.LoadUint64(&all[i]); entry != 0 {
			found = append(found, logicalOf(entry))
		}
	}
	slices.Sort(found)
	return found
}

func (d *Dataplane) forgetLogicals(gone func(carrier, logical int) bool) {
	all := &d.tables.shared.Logicals
	for i := range all {
		if entry := atomic.LoadUint64(&all[i]); entry != 0 && gone(int(entry>>48), logicalOf(entry)) {
			atomic.StoreUint64(&all[i], 0)
		}
	}
}

// front returns how many bytes of tags the frames of a logical interface have.
func (d *Dataplane) front(raw *xdpInterface) (length uint8, ok bool) {
	for range encapLayers {
		length += tagLength
		if fromWire(raw.TagType) == TypePPPoE {
			length += pppoeLength - tagLength
		}
		carrier, err := d.interfaceAt(int(raw.Parent))
		if err != nil {
			return 0, false
		}
		if carrier.Parent == 0 {
			return length, true
		}
		raw = carrier
	}
	return 0, false
}

// logicalEntry returns the word by which bpf/packet/logical.h finds a logical interface.
func logicalEntry(raw *xdpInterface, ifindex int) uint64 {
	id := raw.Tag
	if fromWire(raw.TagType) != TypePPPoE {
		id &= vlanIDMask
	}
	return uint64(raw.Parent)<<48 | uint64(raw.TagType)<<32 | uint64(id)<<16 | uint64(ifindex)
}

func logicalOf(entry uint64) int { return int(entry & 0xffff) }

// logicalPlace is logical_bucket() of bpf/packet/logical.h.
func logicalPlace(entry uint64) int {
	return int((entry >> 16) * 0x9e3779b97f4a7c15 >> 32 & (maxLogicals - logicalBucket))
}

// enterLogical puts an entry where the programs look for it. It returns false if there is
// no room.
func enterLogical(all []uint64, entry uint64) bool {
	first := logicalPlace(entry)
	for i := first; i < first+logicalBucket; i++ {
		if atomic.LoadUint64(&all[i]) == 0 {
			atomic.StoreUint64(&all[i], entry)
			return true
		}
	}
	return false
}

// LogicalInterface is an interface whose frames another interface carries, with a VLAN tag.
type LogicalInterface struct {
	Ifindex int
	Parent  int
	Tag     uint16 // 802.1Q
}

// EnterLogicals makes the running dataplane in a folder take tagged frames for interfaces that
// are no VLAN devices. It is for benchmarks on kernels without VLAN devices. The daemon
// leaves these interfaces in place, but knows nothing else about them.
func EnterLogicals(dir string, all []LogicalInterface) error {
	v, err := Open(dir)
	if err != nil {
		return err
	}
	d := &Dataplane{tables: v.tables}
	ifindexes := make([]int, 0, len(all))
	for _, c := range all {
		raw, err := d.interfaceAt(c.Ifindex)
		if err != nil {
			return errors.Join(err, v.Close())
		}
		raw.Tag, raw.TagType = c.Tag, fromWire(Type8021Q)
		atomic.StoreUint32(&raw.Parent, uint32(c.Parent))
		raw.change(InterfaceXDP, 0)
		ifindexes = append(ifindexes, c.Ifindex)
	}
	left, err := d.SetLogicals(ifindexes)
	if err == nil && left != nil {
		err = fmt.Errorf("no room for interfaces %d", left)
	}
	if err == nil {
		d.BumpRoutes() // next hops behind these interfaces have changed
	}
	return errors.Join(err, v.Close())
}
