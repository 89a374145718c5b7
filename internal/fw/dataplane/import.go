package dataplane

import (
	"fmt"
	"net/netip"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/state"
	"weir/internal/killpoint"
)

// A Connection is a TCP connection that existed before weir kept states. It gets a state,
// which learns its sequence numbers from the next packets.
type Connection struct {
	From, To netip.AddrPort // From opened it
	Zone     int            // interface index, if an address is IPv6 link-local
	Own      [2]bool        // whether From and To are the box itself
	Ends     [2]End         // of From and To
	Scaled   bool           // both ends scale their windows
}

// An End is one end of a Connection.
type End struct {
	Window uint32 // in bytes
	Scale  uint8
	Closed bool // it has sent its FIN
}

// Fresh reports whether this generation starts without states.
func (d *Dataplane) Fresh() bool { return !d.kept && d.old == nil }

// ImportConnections makes states of existing connections that no rule created. Call it before Commit,
// on a Fresh dataplane. It returns how many states there are now. There cannot be more
// than `set limit states` allows.
func (d *Dataplane) ImportConnections(connections []Connection) (entered int, err error) {
	err = d.place.Do(func() error {
		setTimeouts(d.tables.shared, &d.config.Options)
		if err := d.startGC(); err != nil { // it sets the clock
			return err
		}
		if err := d.need(programImport); err != nil {
			return err
		}
		for i := range connections {
			a := importing{State: connections[i].state(atomic.LoadUint32(&d.tables.shared.Now))}
			if _, err := bpfload.RunSyscall(d.objects.Programs[programImport], &a); err != nil {
				return fmt.Errorf("make a state of a connection from before: %w", err)
			}
			if a.Index != 0 {
				entered++
				killpoint.Done("import a connection")
			}
		}
		return nil
	})
	return entered, err
}

// state returns the state of an existing connection at a tick.
func (c *Connection) state(now uint32) xdpState {
	s := xdpState{Created: now, CheckAt: now, Phase: uint8(state.TCPEstablished)}
	s.Forth.Tuple = rawTCP(c.From, c.To, c.Zone)
	s.Back.Tuple = rawTCP(c.To, c.From, c.Zone)
	if c.Own[0] {
		s.Flags |= uint8(state.Out)
	}
	if c.Own[1] {
		s.Flags |= uint8(state.In)
	} else {
		s.Back.Nexthop = nexthopLocal // replies go to the box
	}
	for i, f := range []*xdpFlow{&s.FlowForth, &s.FlowBack} {
		end := &c.Ends[i]
		f.Last = now
		f.MaxWin = max(end.Window, 1)
		f.Peer = uint8(state.PeerEstablished)
		if c.Scaled {
			f.Wscale, f.Flags = end.Scale, uint8(state.FlowScaled)
		}
		if end.Closed {
			f.Peer = uint8(state.PeerClosing)
			s.Phase = uint8(state.TCPClosing)
		}
	}
	return s
}

func rawTCP(from, to netip.AddrPort, zone int) xdpTuple {
	return xdpTuple{
		Src: rawAddr(from.Addr()), Dst: rawAddr(to.Addr()),
		Sport: fromWire(from.Port()), Dport: fromWire(to.Port()),
		Proto: unix.IPPROTO_TCP, Zone: uint16(zone),
	}
}
