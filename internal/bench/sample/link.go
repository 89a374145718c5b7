package sample

import (
	"cmp"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// openLinks opens a netlink socket in the network namespace of a file. "" means the
// process's own.
func openLinks(path string) (*netlink.Handle, error) {
	ns := netns.None()
	if path != "" {
		var err error
		if ns, err = netns.GetFromPath(path); err != nil {
			return nil, fmt.Errorf("open network namespace %s: %w", path, err)
		}
		defer ns.Close()
	}
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink in %s: %w", cmp.Or(path, "this network namespace"), err)
	}
	return h, nil
}

// readLinks reads the counters of all links, by index.
func readLinks(h *netlink.Handle) (map[int]Link, error) {
	all, err := h.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list the links: %w", err)
	}
	links := make(map[int]Link, len(all))
	for _, l := range all {
		a, s := l.Attrs(), l.Attrs().Statistics
		if s == nil {
			continue
		}
		links[a.Index] = Link{
			Name: a.Name, RxPackets: s.RxPackets, TxPackets: s.TxPackets, RxBytes: s.RxBytes, TxBytes: s.TxBytes,
			RxDropped: s.RxDropped + s.RxMissedErrors, TxDropped: s.TxDropped, Errors: s.RxErrors + s.TxErrors,
		}
	}
	return links, addQueues(h, links)
}

// addQueues adds what the queueing disciplines hold and have dropped. A parent includes
// the counters of its children, so only roots are added.
func addQueues(h *netlink.Handle, links map[int]Link) error {
	disciplines, err := h.QdiscList(nil)
	if err != nil {
		return fmt.Errorf("list the links' queues: %w", err)
	}
	for _, d := range disciplines {
		a := d.Attrs()
		l, known := links[a.LinkIndex]
		if !known || a.Parent != netlink.HANDLE_ROOT || a.Statistics == nil || a.Statistics.Queue == nil {
			continue
		}
		l.Queued += uint64(a.Statistics.Queue.Backlog)
		l.QueueDrops += uint64(a.Statistics.Queue.Drops)
		links[a.LinkIndex] = l
	}
	return nil
}

// since returns what a link did since an earlier reading. If a counter went back, the
// device was made again.
func (l Link) since(before Link) Link {
	diff := func(now, then uint64) uint64 {
		if now < then {
			return 0
		}
		return now - then
	}
	return Link{
		Name:      l.Name,
		RxPackets: diff(l.RxPackets, before.RxPackets), TxPackets: diff(l.TxPackets, before.TxPackets),
		RxBytes: diff(l.RxBytes, before.RxBytes), TxBytes: diff(l.TxBytes, before.TxBytes),
		RxDropped: diff(l.RxDropped, before.RxDropped), TxDropped: diff(l.TxDropped, before.TxDropped),
		Errors: diff(l.Errors, before.Errors), Queued: l.Queued, QueueDrops: diff(l.QueueDrops, before.QueueDrops),
	}
}

func (l Link) quiet() bool { return l == Link{Name: l.Name} }
