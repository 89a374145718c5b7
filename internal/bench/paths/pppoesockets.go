package paths

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
	"weir/internal/fw/bpfload"
	"weir/internal/pppoe/ac"
	"weir/internal/pppoe/line"
)

// SessionServer is the far host's address in a session: that of the sockets of a session's path.
func SessionServer() netip.Addr { return sessionPeer }

// farDevice is the device of the session at the far host.
const farDevice = "isp0"

// startSessionForSockets runs weir-nat with a session whose other end is a device of the far host,
// so that the sockets there use it.
func startSessionForSockets(ctx context.Context, w *traffic.Setup, undo *UndoList) error {
	b := w.Testbed
	if err := raiseMTU(b, undo); err != nil {
		return err
	}
	server, err := startConcentrator(b, undo)
	if err != nil {
		return err
	}
	rules, err := sessionRules(w)
	if err != nil {
		return err
	}
	stop, err := StartWeir(ctx, b, rules, WeirOptions{Hook: "xdp"})
	if err != nil {
		return err
	}
	undo.Add(stop)
	number, err := awaitSession(ctx, b)
	if err != nil {
		return err
	}
	var sessions []ac.Info
	server.Do(func(s *ac.Server, _ time.Time) { sessions = s.Sessions() })
	i := slices.IndexFunc(sessions, func(s ac.Info) bool { return s.ID == number })
	if i < 0 {
		return fmt.Errorf("the concentrator has no session 0x%04x", number)
	}
	if err := openFarDevice(b, &sessions[i], undo); err != nil {
		return err
	}
	_, err = b.Lab.Run(ctx, testbed.FarEnd.Host, "ip", "address", "replace", sessionPeer.String(), "peer", sessionAddr.String(), "dev", farDevice)
	return err
}

// openFarDevice makes the far host's device of a session. The programs that put the session's
// header in front of frames, and take it off, are those of weir's own devices.
func openFarDevice(b *testbed.Testbed, s *ac.Info, undo *UndoList) error {
	folder := filepath.Join(b.Folder, "far")
	in := func(f func() error) error { return b.Lab.Do(testbed.FarEnd.Host, f) }
	undo.Add(func() error { return in(func() error { return bpfload.UnmountFS(folder) }) })
	var device line.Device
	err := in(func() (err error) {
		if err := bpfload.MountFS(folder); err != nil {
			return err
		}
		device, err = line.Add(farDevice)
		return err
	})
	if err != nil {
		return err
	}
	undo.Add(func() error { return in(device.Remove) })
	return in(func() error {
		pins := filepath.Join(folder, "session")
		programs, err := line.Open(pins)
		if err != nil {
			return err
		}
		undo.Add(func() error { return in(func() error { return errors.Join(programs.Close(), line.Remove(pins)) }) })
		carrier, err := net.InterfaceByName(testbed.FarEnd.Device)
		if err != nil {
			return fmt.Errorf("find %s: %w", testbed.FarEnd.Device, err)
		}
		return errors.Join(
			programs.Enter(line.Session{Device: device, Carrier: carrier.Index, ID: s.ID, Peer: s.Peer, Local: [6]byte(carrier.HardwareAddr), MTU: s.MTU}),
			device.Describe(carrier.HardwareAddr, int(s.MTU)), device.SetCarrier(true),
		)
	})
}
