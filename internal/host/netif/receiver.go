package netif

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Receiver takes a receive queue's packets out of its ring (NAPI). The kernel reports
// them since 6.8.
type Receiver struct {
	Queue int
	IRQ   int // 0: none, or the driver does not report it
	PID   int // its thread; 0: it runs in softirq
}

// Commands and attributes of the netdev family (linux/netdev.h).
const (
	netdevQueueGet     = 10
	netdevNAPIGet      = 11
	netdevQueueID      = 1
	netdevQueueIfindex = 2
	netdevQueueType    = 3
	netdevQueueNAPI    = 4
	netdevQueueRx      = 0
	netdevNAPIIfindex  = 1
	netdevNAPIID       = 2
	netdevNAPIIRQ      = 3
	netdevNAPIPID      = 4
)

// Receivers returns an interface's receivers, by queue. Some drivers (veth) do not report
// which queue a receiver has. These receivers are numbered in the order of their
// creation, because drivers create them queue by queue.
func Receivers(index int) ([]Receiver, error) {
	all, err := dumpNetdev(netdevNAPIGet, netdevNAPIIfindex, index)
	if err != nil {
		return nil, fmt.Errorf("list the receivers of interface %d: %w", index, err)
	}
	queues, err := dumpNetdev(netdevQueueGet, netdevQueueIfindex, index)
	if err != nil {
		return nil, fmt.Errorf("list the queues of interface %d: %w", index, err)
	}
	byID := map[uint64]Receiver{}
	for _, m := range all {
		byID[m[netdevNAPIID]] = Receiver{IRQ: int(m[netdevNAPIIRQ]), PID: int(m[netdevNAPIPID])}
	}
	return numbered(byID, queues), nil
}

// numbered gives receivers their queues as the queues report them, otherwise in the order
// of their ids.
func numbered(byID map[uint64]Receiver, queues []map[uint16]uint64) (receivers []Receiver) {
	for _, q := range queues {
		r, known := byID[q[netdevQueueNAPI]]
		if q[netdevQueueType] == netdevQueueRx && known {
			r.Queue = int(q[netdevQueueID])
			receivers = append(receivers, r)
		}
	}
	if len(receivers) == 0 {
		for i, id := range slices.Sorted(maps.Keys(byID)) {
			r := byID[id]
			r.Queue = i
			receivers = append(receivers, r)
		}
	}
	slices.SortFunc(receivers, func(a, b Receiver) int { return cmp.Compare(a.Queue, b.Queue) })
	return receivers
}

// dumpNetdev asks for all objects of an interface and returns their numeric attributes.
// It does not use the library, because the messages of this family's dumps lack the flag
// of a multipart message.
func dumpNetdev(command uint8, attribute, index int) (all []map[uint16]uint64, err error) {
	family, err := netlink.GenlFamilyGet(netdevFamily)
	if err != nil {
		return nil, err
	}
	socket, err := nl.Subscribe(unix.NETLINK_GENERIC)
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	request := nl.NewNetlinkRequest(int(family.ID), unix.NLM_F_DUMP)
	request.AddRawData([]byte{command, netdevVersion, 0, 0})
	request.AddRawData(nl.NewRtAttr(attribute, nl.Uint32Attr(uint32(index))).Serialize())
	if err := socket.Send(request); err != nil {
		return nil, err
	}
	for {
		messages, _, err := socket.Receive()
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			switch m.Header.Type {
			case unix.NLMSG_DONE, unix.NLMSG_ERROR:
				return all, replyError(m.Data)
			}
			object, err := numbersOf(m.Data)
			if err != nil {
				return nil, err
			}
			all = append(all, object)
		}
	}
}

// replyError returns the error at the end of a reply.
func replyError(data []byte) error {
	if len(data) < 4 {
		return errors.New("a short answer")
	}
	if code := int32(binary.NativeEndian.Uint32(data)); code < 0 {
		return unix.Errno(-code)
	}
	return nil
}

// numbersOf returns an object's numeric attributes.
func numbersOf(m []byte) (map[uint16]uint64, error) {
	if len(m) < nl.SizeofGenlmsg {
		return nil, fmt.Errorf("it answered %d bytes", len(m))
	}
	attributes, err := nl.ParseRouteAttr(m[nl.SizeofGenlmsg:])
	if err != nil {
		return nil, err
	}
	all := map[uint16]uint64{}
	for _, a := range attributes {
		switch len(a.Value) {
		case 4:
			all[a.Attr.Type] = uint64(binary.NativeEndian.Uint32(a.Value))
		case 8:
			all[a.Attr.Type] = binary.NativeEndian.Uint64(a.Value)
		}
	}
	return all, nil
}
