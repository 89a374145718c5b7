package htb

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// hostFilter is the name of weir's filters, as tc shows it.
const hostFilter = "weir_queue_host"

// TellHosts has a program, by its descriptor, tell the queues of a device which host a packet is of,
// where hosts share them. Without it they go by its addresses, which translation has changed. leaves
// are the kinds of the queues, by class, as Set has returned them.
func TellHosts(d Device, leaves []string, program int) error {
	if !slices.Contains(leaves, leafCake) {
		return nil
	}
	m, err := Read()
	if err != nil {
		return err
	}
	for at, kind := range leaves {
		if kind != leafCake {
			continue
		}
		q := m.below(d.Index, classID(at))
		if q == nil || q.kind != leafCake {
			continue // somebody has just removed it; the daemon hears of that
		}
		if err := putHostFilter(d.Index, q.handle, program); err != nil {
			return fmt.Errorf("tell the queues of %s which host a packet is of: %w", d.Name, err)
		}
	}
	return nil
}

// Told reports whether weir's filters tell the queues of a device about hosts, where TellHosts has set that up.
func (m *Machine) Told(ifindex int, leaves []string) (bool, error) {
	for at, kind := range leaves {
		if kind != leafCake {
			continue
		}
		q := m.below(ifindex, classID(at))
		if q == nil {
			return false, nil
		}
		filters, err := netlink.FilterList(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: ifindex}}, q.handle)
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return false, fmt.Errorf("read the filters of a queue: %w", err)
		}
		if !slices.ContainsFunc(filters, isHostFilter) {
			return false, nil
		}
	}
	return true, nil
}

func isHostFilter(f netlink.Filter) bool {
	b, is := f.(*netlink.BpfFilter)
	return is && b.Name == hostFilter
}

// putHostFilter adds weir's filter to a queue, or gives it another program.
func putHostFilter(ifindex int, queue uint32, program int) error {
	err := netlink.FilterReplace(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: ifindex, Parent: queue, Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL},
		Fd:          program, Name: hostFilter,
	})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
		return errors.New("this kernel has no filters by programs (CONFIG_NET_CLS_BPF)")
	}
	return err
}
