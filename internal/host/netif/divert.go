package netif

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// divertTable is the routing table in which every address is the box's own, and
// divertPriority where its rule stands: before all other rules but that of the table local.
const (
	divertTable    = 0x77656972 // "weir"
	divertPriority = 1
)

// A MarkMatch is what a packet's mark must be in the bits of a mask.
type MarkMatch struct {
	Mark uint32 `json:"mark"`
	Mask uint32 `json:"mask"`
}

// DivertOn has the kernel deliver packets with a mark to the box's sockets, whatever their
// destination. What is there already stays.
func DivertOn(m MarkMatch) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	for _, family := range divertFamilies() {
		err := netlink.RouteReplace(&netlink.Route{
			LinkIndex: lo.Attrs().Index, Dst: everywhere(family), Table: divertTable,
			Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST, Family: family,
		})
		if err != nil {
			return fmt.Errorf("add the route of diverted packets: %w", err)
		}
		if err := netlink.RuleAdd(divertRule(family, m)); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("add the routing rule of diverted packets: %w", err)
		}
	}
	return nil
}

// DivertOff removes the routing rule of a mark. If last, the route goes, too. It is no
// error if they are not there.
func DivertOff(m MarkMatch, last bool) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	var errs []error
	for _, family := range divertFamilies() {
		if err := netlink.RuleDel(divertRule(family, m)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove the routing rule of diverted packets: %w", err))
		}
		if !last {
			continue
		}
		err := netlink.RouteDel(&netlink.Route{
			LinkIndex: lo.Attrs().Index, Dst: everywhere(family), Table: divertTable,
			Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST, Family: family,
		})
		if err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("remove the route of diverted packets: %w", err))
		}
	}
	return errors.Join(errs...)
}

// divertFamilies returns the families that the kernel has.
func divertFamilies() []int {
	if _, err := os.Stat("/proc/self/net/if_inet6"); err != nil {
		return []int{netlink.FAMILY_V4}
	}
	return []int{netlink.FAMILY_V4, netlink.FAMILY_V6}
}

func divertRule(family int, m MarkMatch) *netlink.Rule {
	r := netlink.NewRule()
	r.Family, r.Priority, r.Table, r.Mark, r.Mask = family, divertPriority, divertTable, m.Mark, &m.Mask
	return r
}

func everywhere(family int) *net.IPNet {
	if family == netlink.FAMILY_V4 {
		return &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}
	}
	return &net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}
}
