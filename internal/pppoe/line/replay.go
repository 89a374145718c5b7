package line

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weir/internal/host/netif"
)

// A message is a route or a nexthop object as the kernel tells of it: a header and attributes. Given back to the kernel it makes the same
// again, with whatever weir knows nothing of.
type message []byte

// dump returns those messages of a kind that are chosen. It asks again if something has changed meanwhile.
func dump(get, kind uint16, header nl.NetlinkRequestData, chosen func(message) bool) (all []message, err error) {
	return netif.Dump(func() (all []message, err error) {
		request := nl.NewNetlinkRequest(int(get), unix.NLM_F_DUMP)
		request.AddData(header)
		err = request.ExecuteIter(unix.NETLINK_ROUTE, kind, func(m []byte) bool {
			if chosen(m) {
				all = append(all, slices.Clone(m))
			}
			return true
		})
		return all, err
	})
}

// give gives the kernel a message.
func give(kind, flags int, m message) error {
	request := nl.NewNetlinkRequest(kind, unix.NLM_F_ACK|flags)
	request.AddRawData(m)
	_, err := request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// rtaNexthop is RTA_NH_ID.
const rtaNexthop = 30

// An attribute is one of a message, with its header.
type attribute []byte

func (a attribute) kind() uint16 {
	return binary.NativeEndian.Uint16(a[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
}
func (a attribute) value() []byte { return a[unix.SizeofRtAttr:] }

// number returns that of an attribute of four bytes, or 0.
func (a attribute) number() uint32 {
	if len(a.value()) < 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(a.value())
}

// attributes splits what follows a header.
func attributes(b []byte) (all []attribute) {
	for _, piece := range netif.Pieces(b, unix.SizeofRtAttr) {
		all = append(all, piece)
	}
	return all
}

// find returns the attribute of a kind, or nil.
func find(all []attribute, kind uint16) attribute {
	at := slices.IndexFunc(all, func(a attribute) bool { return a.kind() == kind })
	if at < 0 {
		return nil
	}
	return all[at]
}

// with appends an attribute, and returns the message.
func (m message) with(a attribute) message {
	m = append(m, a...)
	return append(m, make([]byte, netif.Aligned(len(a))-len(a))...)
}

// A leg is one way of a route that has several: struct rtnexthop and attributes.
type leg []byte

func (l leg) link() int { return int(binary.NativeEndian.Uint32(l[4:])) }

// legs splits a multipath attribute.
func legs(b []byte) (all []leg) {
	for _, piece := range netif.Pieces(b, unix.SizeofRtNexthop) {
		all = append(all, piece)
	}
	return all
}

// A route is a message with struct rtmsg.
type route struct {
	message
	attributes []attribute
}

// asRoute reads a message; not ok: it is no route, or one that the kernel has made itself.
func asRoute(m message) (r route, ok bool) {
	if len(m) < unix.SizeofRtMsg {
		return r, false
	}
	r = route{m, attributes(m[unix.SizeofRtMsg:])}
	cloned := binary.NativeEndian.Uint32(m[8:])&unix.RTM_F_CLONED != 0
	return r, !cloned && r.protocol() != unix.RTPROT_KERNEL && r.table() != unix.RT_TABLE_LOCAL
}

func (r route) family() uint8   { return r.message[0] }
func (r route) protocol() uint8 { return r.message[5] }

func (r route) table() uint32 {
	if a := find(r.attributes, unix.RTA_TABLE); a != nil {
		return a.number()
	}
	return uint32(r.message[4])
}

// id returns that of the nexthop object that the route leads by; 0: none.
func (r route) id() uint32 {
	if a := find(r.attributes, rtaNexthop); a != nil {
		return a.number()
	}
	return 0
}

// by reports whether the route or one of its ways leads by a device.
func (r route) by(index int) bool {
	if a := find(r.attributes, unix.RTA_OIF); a != nil && int(a.number()) == index {
		return true
	}
	several := find(r.attributes, unix.RTA_MULTIPATH)
	return several != nil && slices.ContainsFunc(legs(several.value()), func(l leg) bool { return l.link() == index })
}

// putBack adds the route again. A gateway by the device need not be the session's peer: whatever is sent into a session reaches that.
// source replaces the address that packets have.
func (r route) putBack(index int, source func([]byte) []byte) error {
	m := slices.Clone(r.message[:unix.SizeofRtMsg])
	flags := binary.NativeEndian.Uint32(m[8:]) & unix.RTNH_F_ONLINK
	id, one := r.id(), find(r.attributes, unix.RTA_OIF)
	for _, a := range r.attributes {
		switch a.kind() {
		case unix.RTA_CACHEINFO:
			continue
		case unix.RTA_OIF, unix.RTA_GATEWAY, unix.RTA_VIA, unix.RTA_ENCAP, unix.RTA_ENCAP_TYPE, unix.RTA_MULTIPATH, unix.RTA_FLOW:
			if id != 0 { // the object says so
				continue
			}
		}
		switch a.kind() {
		case unix.RTA_GATEWAY, unix.RTA_VIA:
			if one != nil && int(one.number()) == index {
				flags |= unix.RTNH_F_ONLINK
			}
		case unix.RTA_PREFSRC:
			a = slices.Concat(a[:unix.SizeofRtAttr], source(a.value()))
		case unix.RTA_MULTIPATH:
			a = slices.Clone(a)
			for _, l := range legs(a.value()) {
				l[2] &= unix.RTNH_F_ONLINK | unix.RTNH_F_PERVASIVE
				if own := attributes(l[unix.SizeofRtNexthop:]); l.link() == index && (find(own, unix.RTA_GATEWAY) != nil || find(own, unix.RTA_VIA) != nil) {
					l[2] |= unix.RTNH_F_ONLINK
				}
			}
		}
		m = m.with(a)
	}
	binary.NativeEndian.PutUint32(m[8:], flags)
	err := give(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, m)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// same is putBack's source of a route whose packets have the address of before.
func same(address []byte) []byte { return address }

// network is for people.
func (r route) network() string {
	to := find(r.attributes, unix.RTA_DST)
	if to == nil {
		return fmt.Sprintf("default, table %d", r.table())
	}
	return fmt.Sprintf("%v/%d, table %d", net.IP(to.value()), r.message[1], r.table())
}

// routes returns those of a family that are chosen, and that the kernel has not made itself.
func routes(family uint8, chosen func(route) bool) (all []route, err error) {
	some, err := dump(unix.RTM_GETROUTE, unix.RTM_NEWROUTE, &nl.RtMsg{RtMsg: unix.RtMsg{Family: family}}, func(m message) bool {
		r, ok := asRoute(m)
		return ok && chosen(r)
	})
	for _, m := range some {
		if r, ok := asRoute(m); ok {
			all = append(all, r)
		}
	}
	return all, err
}
