package view

import (
	"net/netip"
)

// Arrivals returns how many packets have come to a port of this machine from the end of a connection, as its state counts
// them; ok is false without a state.
func (v *View) Arrivals(proto uint8, from netip.AddrPort, port uint16) (packets uint64, ok bool, err error) {
	ready := func(*reading) error { return nil }
	err = v.consistent(ready, func(r *reading) error {
		packets, ok = 0, false
		for s := range r.pins.States() {
			for i := range s.Tuple {
				if t := &s.Tuple[i]; t.Proto == proto && netip.AddrPortFrom(t.Src, t.SPort) == from && t.DPort == port {
					packets, ok = packets+s.Flow[i].Packets, true
				}
			}
		}
		return nil
	})
	return packets, ok, err
}
