package netif

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// A Flow is packets that this machine sends, as far as rules for routing (ip rule) can tell them apart. What is zero is not
// known, or does not count.
type Flow struct {
	Protocol uint8
	From, To netip.AddrPort // the source may have a port only
	Out      int            // the index of the interface that the packets have to leave by
	Mark     uint32
}

// A Way is where the kernel's routes have packets go.
type Way struct {
	Link int
	Via  netip.Addr // the neighbour that they are sent to
	MTU  int        // that the route has; 0: it has none of its own
}

// WayOf returns the way of a flow. Unlike WayTo it asks as the kernel does when it sends such packets, so that all rules
// for routing count.
func WayOf(f Flow) (w Way, err error) {
	to := f.To.Addr()
	replies, err := f.request().Execute(unix.NETLINK_ROUTE, unix.RTM_NEWROUTE)
	if err != nil || len(replies) == 0 || len(replies[0]) < unix.SizeofRtMsg {
		return w, fmt.Errorf("look up the route to %s: %w", to, err)
	}
	w.Via = to
	attrs, err := nl.ParseRouteAttr(replies[0][unix.SizeofRtMsg:])
	if err != nil {
		return w, fmt.Errorf("read the route to %s: %w", to, err)
	}
	for _, a := range attrs {
		switch {
		case a.Attr.Type == unix.RTA_OIF && len(a.Value) >= 4:
			w.Link = int(binary.NativeEndian.Uint32(a.Value))
		case a.Attr.Type == unix.RTA_GATEWAY:
			w.Via = address(a.Value)
		case a.Attr.Type == unix.RTA_VIA && len(a.Value) > 2: // of another family, which is in front
			w.Via = address(a.Value[2:])
		case a.Attr.Type == unix.RTA_METRICS:
			metrics, err := nl.ParseRouteAttr(a.Value)
			if err != nil {
				return w, fmt.Errorf("read the route to %s: %w", to, err)
			}
			for _, m := range metrics {
				if m.Attr.Type == unix.RTAX_MTU && len(m.Value) >= 4 {
					w.MTU = int(binary.NativeEndian.Uint32(m.Value))
				}
			}
		}
	}
	return w, nil
}

// request is the question for the way of a flow.
func (f *Flow) request() *nl.NetlinkRequest {
	r := nl.NewNetlinkRequest(unix.RTM_GETROUTE, 0)
	to, from := f.To.Addr(), f.From.Addr()
	m := &nl.RtMsg{RtMsg: unix.RtMsg{Family: unix.AF_INET, Dst_len: uint8(to.BitLen())}}
	if to.Is6() {
		m.Family = unix.AF_INET6
	}
	add := func(kind int, value []byte) { r.AddData(nl.NewRtAttr(kind, value)) }
	number := func(kind int, n uint32) {
		if n != 0 {
			add(kind, binary.NativeEndian.AppendUint32(nil, n))
		}
	}
	port := func(kind int, n uint16) {
		if n != 0 {
			add(kind, binary.BigEndian.AppendUint16(nil, n))
		}
	}
	if from.IsValid() {
		m.Src_len = uint8(from.BitLen())
	}
	r.AddData(m)
	add(unix.RTA_DST, to.AsSlice())
	if from.IsValid() {
		add(unix.RTA_SRC, from.AsSlice())
	}
	number(unix.RTA_OIF, uint32(f.Out))
	number(unix.RTA_MARK, f.Mark)
	if f.Protocol != 0 {
		add(unix.RTA_IP_PROTO, []byte{f.Protocol})
		port(unix.RTA_SPORT, f.From.Port())
		port(unix.RTA_DPORT, f.To.Port())
	}
	return r
}
