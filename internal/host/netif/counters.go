package netif

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// Counters are what an interface has counted since it was made.
type Counters struct{ BytesSent, BytesReceived, PacketsSent, PacketsReceived uint64 }

// CountersOf returns the counters of an interface.
func CountersOf(name string) (c Counters, err error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return c, fmt.Errorf("read the counters of %s: %w", name, err)
	}
	if s := l.Attrs().Statistics; s != nil {
		c = Counters{BytesSent: s.TxBytes, BytesReceived: s.RxBytes, PacketsSent: s.TxPackets, PacketsReceived: s.RxPackets}
	}
	return c, nil
}
