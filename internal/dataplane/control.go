package dataplane

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"

	"weir/internal/bpfload"
	"weir/internal/state"
	"weir/internal/steps"
	"weir/pf/resolve"
)

// setTimeouts sets the timeouts as configured; the sweep scales them.
func setTimeouts(s *xdpShared, o *resolve.Options) {
	t := &o.Timeouts
	for phase, ticks := range state.TimeoutsOf(t) {
		atomic.StoreUint32(&s.TimeoutSet[phase], ticks)
	}
	atomic.StoreUint32(&s.TimeoutFragSet, t.Frag*state.TicksPerSecond)
	atomic.StoreUint32(&s.AdaptiveStart, t.AdaptiveStart)
	atomic.StoreUint32(&s.AdaptiveEnd, t.AdaptiveEnd)
	steps.Done("set the timeouts")
}

// startSweep arms the timer that keeps the clock and sweeps dead states. It ends
// with the map that holds it: when the generation's pin is removed and no
// process has the map open.
func (d *Dataplane) startSweep() error {
	if d.swept || d.config.Frozen {
		return nil
	}
	result, err := bpfload.RunSyscall(d.objects.Programs["weir_sweep_start"], nil)
	if err != nil {
		return fmt.Errorf("start the sweep: %w", err)
	}
	if result != 0 {
		return fmt.Errorf("start the sweep: the program returned %d", int32(result))
	}
	d.swept = true
	steps.Done("start the sweep")
	return nil
}

// BumpRoutes has every state look up its next hops again, at its next packet.
func (d *Dataplane) BumpRoutes() { atomic.AddUint32(&d.tables.shared.RouteGeneration, 1) }

// Heartbeat says that the daemon lives and probes neighbours. After three
// seconds without one the programs do so by handing up packets.
func (d *Dataplane) Heartbeat() {
	s := d.tables.shared
	atomic.StoreUint32(&s.Heartbeat, atomic.LoadUint32(&s.Now))
}

// SetAddresses replaces the addresses of the box (each with the index of its
// interface): no frame may come in with one of them as its source.
func (d *Dataplane) SetAddresses(addresses map[netip.Addr]int) error {
	m := d.tables.maps[mapAddresses]
	stale := make(map[xdpAddr]bool)
	var key xdpAddr
	var ifindex uint32
	for all := m.Iterate(); ; {
		if !all.Next(&key, &ifindex) {
			if err := all.Err(); err != nil {
				return fmt.Errorf("list the box's addresses: %w", err)
			}
			break
		}
		stale[key] = true
	}
	for a, ifindex := range addresses {
		key := rawAddr(a.WithZone(""))
		delete(stale, key)
		if err := m.Put(&key, uint32(ifindex)); err != nil {
			return fmt.Errorf("add %s to the box's addresses: %w", a, err)
		}
		steps.Done("add an address")
	}
	for key := range stale {
		if err := m.Delete(&key); err != nil && !errors.Is(err, bpfload.ErrNoKey) {
			return fmt.Errorf("remove %s from the box's addresses: %w", key.addr(), err)
		}
	}
	return nil
}
