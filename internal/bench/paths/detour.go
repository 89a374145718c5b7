package paths

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"weir/internal/bench/testbed"
	"weir/internal/fw/bpfload"
	"weir/internal/pppoe/line"
)

// DetourServer is the far host's address at a detour's device.
func DetourServer() netip.Addr { return detourServer }

var detourServer = netip.MustParseAddr("203.0.113.9")

// startDetour makes a device of the far host like that of a session, but without one: its packets take the same way there, with a
// device more than others. So what a session costs the firewall is not that device.
func startDetour(ctx context.Context, b *testbed.Testbed, undo *UndoList) error {
	in := func(f func() error) error { return b.Lab.Do(testbed.FarEnd.Host, f) }
	text, _ := b.Lab.MACs(testbed.FarDoor.Host, testbed.FarDoor.Device)
	door, err := net.ParseMAC(text)
	if err != nil {
		return err
	}
	err = in(func() error {
		device, err := line.Add(farDevice)
		if err != nil {
			return err
		}
		undo.Add(func() error { return in(device.Remove) })
		carrier, err := net.InterfaceByName(testbed.FarEnd.Device)
		if err != nil {
			return fmt.Errorf("find %s: %w", testbed.FarEnd.Device, err)
		}
		attach := func(at int, d bpfload.Detour) error {
			p, err := bpfload.NewDetour(d)
			if err != nil {
				return err
			}
			defer p.Close()
			l, err := bpfload.Attach(p, bpfload.Ingress, at)
			if err == nil {
				undo.Add(func() error { return in(l.Close) })
			}
			return err
		}
		out := bpfload.Detour{Device: carrier.Index}
		copy(out.Addresses[copy(out.Addresses[:], door):], carrier.HardwareAddr)
		return errors.Join(
			attach(carrier.Index, bpfload.Detour{Device: device.Index, In: true}), attach(device.Line, out),
			device.Describe(carrier.HardwareAddr, carrier.MTU), device.SetCarrier(true),
		)
	})
	if err != nil {
		return err
	}
	if err := b.Lab.AddNeighbours(testbed.FarDoor.Host, testbed.FarDoor.Device, []netip.Addr{detourServer}); err != nil {
		return err
	}
	firewall := b.Lab.Addr(testbed.FarDoor.Host, testbed.FarDoor.Device, false)
	_, err = b.Lab.Run(ctx, testbed.FarEnd.Host, "ip", "address", "replace", detourServer.String(), "peer", firewall.String(), "dev", farDevice)
	return err
}
