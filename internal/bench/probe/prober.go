package probe

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// mostProbes limits the probes under way. On a line where a probe takes long, more would
// be a load of their own.
const mostProbes = 16

// prober sends probes while the load runs, in turn on new connections and on loaded ones.
// It does not wait for earlier probes.
type prober struct {
	done    chan struct{}
	between atomic.Int64 // nanoseconds between two probes

	mu    sync.Mutex
	times []probeTimes // in the order in which they ended
}

func startProber(ctx context.Context, l *load) *prober {
	p := &prober{done: make(chan struct{})}
	p.setRate(probesPerSecond)
	go func() {
		defer close(p.done)
		var under sync.WaitGroup
		defer under.Wait()
		between := p.between.Load()
		ticks := time.NewTicker(time.Duration(between))
		defer ticks.Stop()
		room := make(chan struct{}, mostProbes)
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
			// Not before a tick: a rate that changes often would put off all.
			if now := p.between.Load(); now != between {
				between = now
				ticks.Reset(time.Duration(between))
			}
			room <- struct{}{} // probes end with ctx, too
			under.Go(func() {
				p.note(ctx, l, i)
				<-room
			})
		}
	}()
	return p
}

// setRate sets the number of probes per second from now on.
func (p *prober) setRate(perSecond float64) { p.between.Store(int64(float64(time.Second) / perSecond)) }

// note sends a probe and keeps its times.
func (p *prober) note(ctx context.Context, l *load, turn int) {
	t, err := l.probe(ctx, turn)
	if err != nil {
		l.fail(err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t.at = time.Now()
	p.times = append(p.times, t)
}

// since returns the probes that ended after a moment.
func (p *prober) since(moment time.Time) []probeTimes {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, _ := slices.BinarySearchFunc(p.times, moment, func(t probeTimes, m time.Time) int { return t.at.Compare(m) })
	return slices.Clone(p.times[i:])
}

// probe sends one probe. Every second one is foreign; the others use one of the loaded
// connections.
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
