package dataplane

import (
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
	"weir/internal/killpoint"
)

// setTimeouts sets the timeouts as configured; the garbage collection scales them.
func setTimeouts(s *xdpShared, o *ruleset.Options) {
	for phase, ticks := range o.Timeouts {
		atomic.StoreUint32(&s.TimeoutSet[phase], ticks)
	}
	atomic.StoreUint32(&s.TimeoutFragSet, o.FragTimeout)
	atomic.StoreUint32(&s.AdaptiveStart, o.AdaptiveStart)
	atomic.StoreUint32(&s.AdaptiveEnd, o.AdaptiveEnd)
	if atomic.LoadUint32(&s.Prefetch) != 0 {
		atomic.AddUint32(&s.RouteGeneration, 1) // hints were made by other timeouts
	}
	killpoint.Done("set the timeouts")
}

// startGC arms the timer that keeps the clock and releases dead states. It ends
// with the map that holds it: when the generation's pin is removed and no
// process has the map open.
func (d *Dataplane) startGC() error {
	if d.swept || d.config.Frozen {
		return nil
	}
	err := armed(func() (uint32, error) { return bpfload.RunSyscall(d.objects.Programs[programStart], nil) })
	if err != nil {
		return fmt.Errorf("start the garbage collection: %w", err)
	}
	d.swept = true
	killpoint.Done("start the garbage collection")
	return nil
}

// How often a timer is tried to be armed, and the pause after the first attempt,
// which doubles: 5 s in all.
const (
	armAttempts = 10
	armPause    = 5 * time.Millisecond
)

// armed has start arm a timer, and tries again where the kernel has no memory for
// it: within a program bpf_timer_init takes memory without waiting, so on a busy
// machine it may find none at once that is there a moment later.
func armed(start func() (uint32, error)) error {
	for attempt, pause := 1, armPause; ; attempt, pause = attempt+1, 2*pause {
		result, err := start()
		if err != nil {
			return err
		}
		switch errno := unix.Errno(-int32(result)); {
		case errno == 0:
			return nil
		case errno != unix.ENOMEM || attempt == armAttempts:
			return fmt.Errorf("arm its timer: %w", errno)
		}
		time.Sleep(pause)
	}
}

// BumpRoutes has every state look up its next hops again, at its next packet.
func (d *Dataplane) BumpRoutes() { atomic.AddUint32(&d.tables.shared.RouteGeneration, 1) }

// Heartbeat says that the daemon lives and probes neighbours. After three
// seconds without one the programs do so by handing up packets: not while they run over
// two tables, of which those at the other end of the stack's way may know another.
func (d *Dataplane) Heartbeat() {
	if t := d.tables; t != nil {
		atomic.StoreUint32(&t.shared.Heartbeat, atomic.LoadUint32(&t.shared.Now))
	}
	for _, o := range d.origins() {
		o.heartbeat()
	}
}
