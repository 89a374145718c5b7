package paths

import (
	"context"
	"errors"
	"fmt"
	"net"

	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
	"weir/internal/fw/dataplane"
	"weir/internal/host/netif"
	"weir/internal/lab"
)

// startTagged runs weir with VLAN tags on the frames of both wires. Other devices take
// the place of VLAN devices, which some kernels lack. They have the names and addresses
// of the firewall's devices. The daemon does not know them as VLAN devices, so this
// function tells the dataplane about them.
func startTagged(o WeirOptions) func(context.Context, *traffic.Setup) (func() error, error) {
	return func(ctx context.Context, w *traffic.Setup) (_ func() error, err error) {
		var undo UndoList
		defer func() {
			if err != nil {
				err = errors.Join(err, undo.Run())
			}
		}()
		undo.Add(w.Testbed.AddHosts) // undone last: the devices lose the hosts while others stand in for them
		vlans := map[string]uint16{testbed.NearDoor.Device: traffic.NearVLAN, testbed.FarDoor.Device: traffic.FarVLAN}
		for device := range vlans {
			back, err := w.Testbed.Lab.StandIn(lab.FW, device)
			undo.Add(back)
			if err != nil {
				return nil, err
			}
		}
		if err := w.Testbed.AddHosts(); err != nil {
			return nil, err
		}
		stop, err := startDaemon(ctx, w, o)
		if err != nil {
			return nil, err
		}
		undo.Add(stop)
		if err := enterVLANs(w, vlans); err != nil {
			return nil, err
		}
		return undo.Run, nil
	}
}

// enterVLANs makes XDP on the firewall's devices assign tagged frames to the stand-ins.
func enterVLANs(w *traffic.Setup, vlans map[string]uint16) error {
	var carried []dataplane.LogicalInterface
	err := w.Testbed.Lab.Do(lab.FW, func() error {
		for device, id := range vlans {
			own, err := net.InterfaceByName(device)
			if err != nil {
				return fmt.Errorf("find %s: %w", device, err)
			}
			below, err := net.InterfaceByName(lab.StandInFor(device))
			if err != nil {
				return fmt.Errorf("find %s: %w", lab.StandInFor(device), err)
			}
			carried = append(carried, dataplane.LogicalInterface{Ifindex: own.Index, Parent: below.Index, Tag: id})
		}
		return nil
	})
	if err != nil {
		return err
	}
	var dir string
	netns, err := netif.NamespacePath(w.Testbed.Firewall())
	if err == nil {
		dir, err = dataplane.Folder(netns)
	}
	if err != nil {
		return fmt.Errorf("find what weir has loaded: %w", err)
	}
	return dataplane.EnterLogicals(dir, carried)
}
