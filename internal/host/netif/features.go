package netif

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The kernel's netdev family (Documentation/netlink/specs/netdev.yaml, Linux 6.3).
const (
	netdevFamily      = "netdev"
	netdevVersion     = 1
	netdevDevGet      = 1
	netdevIfindex     = 1
	netdevXDPFeatures = 3
	netdevNdoXmit     = 0x4  // the device accepts frames that XDP redirects to it
	netdevNdoXmitSG   = 0x20 // also frames that fill several buffers
)

// XDPTarget says which frames an XDP redirect brings to an interface now.
type XDPTarget struct {
	Any       bool // those that fill one buffer
	Scattered bool // also those that fill several
}

// XDPTargetOf returns what an XDP redirect brings to an interface. It reaches a veth as
// long as the other end has an XDP program or GRO, and many NICs while they have an XDP
// program. A redirect to any other device silently loses the frame.
func XDPTargetOf(index int) (XDPTarget, error) {
	family, err := netlink.GenlFamilyGet(netdevFamily)
	if err != nil {
		return XDPTarget{}, fmt.Errorf("ask whether XDP can redirect to a device: %w", err)
	}
	// It asks for one device at a time, because the messages of the kernel's dump
	// lack the flag of a multipart message. It builds the header by hand, because
	// nl.Genlmsg leaves the reserved bytes unset.
	request := nl.NewNetlinkRequest(int(family.ID), 0)
	request.AddRawData([]byte{netdevDevGet, netdevVersion, 0, 0})
	request.AddRawData(nl.NewRtAttr(netdevIfindex, nl.Uint32Attr(uint32(index))).Serialize())
	answers, err := request.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return XDPTarget{}, fmt.Errorf("ask whether XDP can redirect to a device: %w", err)
	}
	var all uint64
	for _, m := range answers {
		numbers, err := numbersOf(m)
		if err != nil {
			return XDPTarget{}, fmt.Errorf("ask whether XDP can redirect to a device: %w", err)
		}
		all |= numbers[netdevXDPFeatures]
	}
	reached := all&netdevNdoXmit != 0
	return XDPTarget{Any: reached, Scattered: reached && all&netdevNdoXmitSG != 0}, nil
}
