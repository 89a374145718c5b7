package probe

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// mostProbes may be under way at once: on a line where a probe takes long, more
// of them would be a load of their own.
const mostProbes = 16

// prober sends probes while the load goes on, foreign ones and ones on loaded
// connections by turns, without waiting for the ones before.
type prober struct {
	failed  chan error // the first one
	done    chan struct{}
	between atomic.Int64 // nanoseconds from one to the next

	mu    sync.Mutex
	times []probeTimes // in the order of their ends
}

func startProber(ctx context.Context, l *load) *prober {
	p := &prober{failed: make(chan error, 1), done: make(chan struct{})}
	p.setRate(probesPerSecond)
	go func() {
		defer close(p.done)
		var under sync.WaitGroup
		defer under.Wait()
		room := make(chan struct{}, mostProbes)
		between := p.between.Load()
		ticks := time.NewTicker(time.Duration(between))
		defer ticks.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
			if now := p.between.Load(); now != between {
				between = now
				ticks.Reset(time.Duration(between))
			}
			select {
			case <-ctx.Done():
				return
			case room <- struct{}{}:
			}
			under.Go(func() {
				p.note(ctx, l, i)
				<-room
			})
		}
	}()
	return p
}

// setRate says how many probes a second are sent from now on.
func (p *prober) setRate(perSecond float64) { p.between.Store(int64(float64(time.Second) / perSecond)) }

// note sends a probe and keeps what it says.
func (p *prober) note(ctx context.Context, l *load, turn int) {
	t, err := l.probe(ctx, turn)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		select {
		case p.failed <- err:
		default: // another one was first
		}
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t.at = time.Now()
	p.times = append(p.times, t)
}

// wait gives the error that the prober ended with, nil if it was told to end.
func (p *prober) wait() error {
	<-p.done
	select {
	case err := <-p.failed:
		return err
	default:
		return nil
	}
}

// since are the probes that ended after a moment.
func (p *prober) since(moment time.Time) []probeTimes {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, _ := slices.BinarySearchFunc(p.times, moment, func(t probeTimes, m time.Time) int { return t.at.Compare(m) })
	return slices.Clone(p.times[i:])
}

// probe sends one probe: every second one is foreign, the others go by any of the
// loaded connections.
func (l *load) probe(ctx context.Context, turn int) (t probeTimes, err error) {
	if turn%probeShareForeign != 0 {
		took, err := l.any().small(ctx)
		return probeTimes{loaded: millis(took)}, err
	}
	o, err := l.dial(ctx)
	if err != nil {
		return t, err
	}
	c := newClient(o, l.test.Address)
	defer c.close()
	took, err := c.small(ctx)
	return probeTimes{foreign: true, tcp: millis(o.tcp), tls: millis(o.tls), http: millis(took)}, err
}

func millis(d time.Duration) float64 { return d.Seconds() * 1000 }
