package wire

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// mark is what our priorities have above the PCP, so that nobody else's packets have them.
const mark = 0x77650000

// Priority has the VLAN device below give frames of a priority, which it returns for Open, a PCP. The
// device's own table keeps it.
func Priority(name string, pcp uint8) (int, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return 0, fmt.Errorf("find %s: %w", name, err)
	}
	vlan, ok := link.(*netlink.Vlan)
	if !ok {
		return 0, fmt.Errorf("a priority needs a VLAN: %s is none", name)
	}
	priority := uint32(mark | int(pcp))
	change := &netlink.Vlan{
		LinkAttrs: netlink.LinkAttrs{Index: vlan.Attrs().Index, Name: name}, VlanId: vlan.VlanId, VlanProtocol: vlan.VlanProtocol,
		EgressQosMap: map[uint32]uint32{priority: uint32(pcp)},
	}
	if err := netlink.LinkModify(change); err != nil {
		return 0, fmt.Errorf("have %s send frames with the priority %d: %w", name, pcp, err)
	}
	return int(priority), nil
}
