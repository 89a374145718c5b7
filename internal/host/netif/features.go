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
	netdevNdoXmit     = 0x4 // the device takes what XDP redirects to it
)

// XDPTarget reports whether an XDP redirect reaches the interface at this
// moment. A veth is reached as long as its other end has an XDP program or GRO,
// many NICs while they have an XDP program. A redirect to any other device
// loses the frame without a word.
func XDPTarget(index int) (bool, error) {
	family, err := netlink.GenlFamilyGet(netdevFamily)
	if err != nil {
		return false, fmt.Errorf("ask whether XDP can redirect to a device: %w", err)
	}
	// One device at a time: the messages of the kernel's dump lack the flag that
	// says so. The header by hand: nl.Genlmsg leaves its reserved bytes unset.
	request := nl.NewNetlinkRequest(int(family.ID), 0)
	request.AddRawData([]byte{netdevDevGet, netdevVersion, 0, 0})
	request.AddRawData(nl.NewRtAttr(netdevIfindex, nl.Uint32Attr(uint32(index))).Serialize())
	answers, err := request.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return false, fmt.Errorf("ask whether XDP can redirect to a device: %w", err)
	}
	var all uint64
	for _, m := range answers {
		numbers, err := numbersOf(m)
		if err != nil {
			return false, fmt.Errorf("ask whether XDP can redirect to a device: %w", err)
		}
		all |= numbers[netdevXDPFeatures]
	}
	return all&netdevNdoXmit != 0, nil
}
