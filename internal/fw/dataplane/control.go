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

// RouteGeneration is another number after each BumpRoutes: all hints are void then.
func (d *Dataplane) RouteGeneration() uint32 {
	return atomic.LoadUint32(&d.tables.shared.RouteGeneration)
}

// setLimits sets how many states and sources there may be, and how fragments meet the rules.
func setLimits(s *xdpShared, o *ruleset.Options) {
	atomic.StoreUint32(&s.Limit, o.MaxStates)
	atomic.StoreUint32(&s.SourceLimit, o.MaxSources)
	atomic.StoreUint32(&s.Fragments, uint32(o.Fragments))
}

// setTimeouts sets the timeouts as configured; the garbage collection scales them.
func setTimeouts(s *xdpShared, o *ruleset.Options) {
	for phase, ticks := range o.Timeouts {
		atomic.StoreUint32(&s.TimeoutSet[phase], ticks)
	}
	atomic.StoreUint32(&s.TimeoutFragSet, o.FragTimeout)
	atomic.StoreUint32(&s.TimeoutStamp, o.StampTimeout)
	atomic.StoreUint32(&s.AdaptiveStart, o.AdaptiveStart)
	atomic.StoreUint32(&s.AdaptiveEnd, o.AdaptiveEnd)
	if atomic.LoadUint32(&s.Prefetch) != 0 {
		atomic.AddUint32(&s.RouteGeneration, 1) // hints were made with other timeouts
	}
	killpoint.Done("set the timeouts")
}

// startGC arms the timer that keeps the clock and releases dead states. The timer ends
// with its map: when the generation's pin is removed and no process has the map open.
func (d *Dataplane) startGC() error {
	if d.swept || d.config.Frozen {
		return nil
	}
	err := armed(func() (uint32, error) { return bpfload.RunSyscall(d.objects.Programs[programStart], nil) })
	if err != nil {
		return fmt.Errorf("start the garbage collection: %w", err)
	}
	if start := d.objects.Programs[programQueueStart]; start != nil {
		if err := armed(func() (uint32, error) { return bpfload.RunSyscall(start, nil) }); err != nil {
			return fmt.Errorf("start the queues: %w", err)
		}
	}
	d.swept = true
	killpoint.Done("start the garbage collection")
	return nil
}

// How often arming a timer is tried, and the pause after the first attempt. The pause
// doubles; together that is 5 s.
const (
	armAttempts = 10
	armPause    = 5 * time.Millisecond
)

// armed calls start to arm a timer, and tries again if the kernel has no memory for it.
// Within a program bpf_timer_init takes memory without waiting. So on a busy machine it
// may fail and succeed a moment later.
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

// BumpRoutes makes every state look up its next hops again at its next packet.
func (d *Dataplane) BumpRoutes() { atomic.AddUint32(&d.tables.shared.RouteGeneration, 1) }

// Heartbeat says that the daemon lives and probes neighbours. After three seconds without
// one the programs do that themselves: they hand packets off to the stack. They do not do
// so while two sets of tables are in use, because the programs at the other end of the
// stack may use the other set.
func (d *Dataplane) Heartbeat() {
	if t := d.tables; t != nil {
		atomic.StoreUint32(&t.shared.Heartbeat, atomic.LoadUint32(&t.shared.Now))
	}
	for _, o := range d.origins() {
		o.heartbeat()
	}
}
