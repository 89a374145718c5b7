package line

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// nexthopHeader is that of a request for all nexthop objects (struct nhmsg).
type nexthopHeader struct{}

func (nexthopHeader) Len() int          { return unix.SizeofNhmsg }
func (nexthopHeader) Serialize() []byte { return make([]byte, unix.SizeofNhmsg) }

// A nexthop is an object, or a group of some.
type nexthop struct {
	message
	attributes []attribute
}

func asNexthop(m message) (nexthop, bool) {
	if len(m) < unix.SizeofNhmsg {
		return nexthop{}, false
	}
	return nexthop{m, attributes(m[unix.SizeofNhmsg:])}, true
}

func (n nexthop) protocol() uint8 { return n.message[2] }

func (n nexthop) id() uint32 {
	if a := find(n.attributes, unix.NHA_ID); a != nil {
		return a.number()
	}
	return 0
}

// members returns the ids of a group's members.
func (n nexthop) members() (ids []uint32) {
	a := find(n.attributes, unix.NHA_GROUP)
	if a == nil {
		return nil
	}
	for entry := range slices.Chunk(a.value(), 8) { // struct nexthop_grp
		if len(entry) == 8 {
			ids = append(ids, binary.NativeEndian.Uint32(entry))
		}
	}
	return ids
}

// put makes the object, or with NLM_F_REPLACE has it be so again.
func (n nexthop) put(flags int) error {
	m := slices.Clone(n.message[:unix.SizeofNhmsg])
	m[1] = 0 // the kernel finds the scope itself
	header := uint32(0)
	if find(n.attributes, unix.NHA_GATEWAY) != nil {
		header = unix.RTNH_F_ONLINK // as in a route
	}
	binary.NativeEndian.PutUint32(m[4:], header)
	for _, a := range n.attributes {
		switch a.kind() {
		case unix.NHA_ID, unix.NHA_GROUP, unix.NHA_GROUP_TYPE, unix.NHA_OIF, unix.NHA_GATEWAY, unix.NHA_ENCAP, unix.NHA_ENCAP_TYPE, nhaResilient:
			m = m.with(a)
		}
	}
	return give(unix.RTM_NEWNEXTHOP, flags, m)
}

// nhaResilient is NHA_RES_GROUP.
const nhaResilient = 12

// Nexthops are nexthop objects by a device, the groups that they are in, and the routes by these. The kernel removes them when the device
// loses its carrier, though no other routes.
type Nexthops struct {
	device          Device
	objects, groups []nexthop
	routes          []route
}

// byHand reports whether what has a protocol is an administrator's. A program that routes sees that the carrier is back, and may then
// want something else.
func byHand(protocol uint8) bool {
	return protocol == unix.RTPROT_UNSPEC || protocol == unix.RTPROT_BOOT || protocol == unix.RTPROT_STATIC
}

// Nexthops returns those that administrators have made by the device. If there are none, as it may have lost its carrier already, it returns
// those of before.
func (d Device) Nexthops(before *Nexthops) (*Nexthops, error) {
	all, err := nexthops()
	if errors.Is(err, unix.EOPNOTSUPP) { // this kernel has none
		return before, nil
	}
	now, ids := &Nexthops{device: d}, map[uint32]bool{}
	for _, n := range all {
		if by := find(n.attributes, unix.NHA_OIF); by != nil && int(by.number()) == d.Index && byHand(n.protocol()) {
			now.objects = append(now.objects, n)
			ids[n.id()] = true
		}
	}
	if len(ids) == 0 || err != nil {
		return before, err
	}
	for _, n := range all {
		if byHand(n.protocol()) && slices.ContainsFunc(n.members(), func(id uint32) bool { return ids[id] }) {
			now.groups = append(now.groups, n)
		}
	}
	for _, n := range now.groups {
		ids[n.id()] = true
	}
	now.routes, err = routes(unix.AF_UNSPEC, func(r route) bool { return byHand(r.protocol()) && ids[r.id()] })
	if err != nil {
		err = fmt.Errorf("list the routes by nexthop objects of %s: %w", d.Name, err)
	}
	return now, err
}

func nexthops() (all []nexthop, err error) {
	some, err := dump(unix.RTM_GETNEXTHOP, unix.RTM_NEWNEXTHOP, nexthopHeader{}, func(message) bool { return true })
	for _, m := range some {
		if n, ok := asNexthop(m); ok {
			all = append(all, n)
		}
	}
	if err != nil {
		return all, fmt.Errorf("list nexthop objects: %w", err)
	}
	return all, nil
}

// PutBack makes again what the kernel has removed, when the device has a carrier, and still the addresses of before: others replace these in
// routes, too. What others have made meanwhile stays: an object of the same id, a group with other members, another route to the same network.
func (n *Nexthops) PutBack(d Device) error {
	if n == nil || n.device != d {
		return nil
	}
	there, err := nexthops()
	errs := []error{err}
	has := func(id uint32) (nexthop, bool) {
		at := slices.IndexFunc(there, func(is nexthop) bool { return is.id() == id })
		if at < 0 {
			return nexthop{}, false
		}
		return there[at], true
	}
	lost := map[uint32]bool{}
	for _, o := range n.objects {
		if _, ok := has(o.id()); !ok {
			lost[o.id()] = true
			errs = append(errs, o.put(unix.NLM_F_CREATE|unix.NLM_F_EXCL))
		}
	}
	for _, g := range n.groups {
		left := slices.DeleteFunc(g.members(), func(id uint32) bool { return lost[id] })
		switch is, ok := has(g.id()); {
		case !ok:
			errs = append(errs, g.put(unix.NLM_F_CREATE|unix.NLM_F_EXCL))
		case slices.Equal(is.members(), left) && len(left) < len(g.members()):
			errs = append(errs, g.put(unix.NLM_F_CREATE|unix.NLM_F_REPLACE))
		}
	}
	for _, r := range n.routes {
		if err := r.putBack(d.Index, same); err != nil {
			errs = append(errs, fmt.Errorf("the route to %s: %w", r.network(), err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("put back what went with the carrier of %s: %w", d.Name, err)
	}
	return nil
}
