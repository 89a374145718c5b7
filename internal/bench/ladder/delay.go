package ladder

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"

	"weir/internal/bench/probe"
)

// Probes of a line: one each millisecond. UDP probes have the size of a call's packets.
const (
	probeInterval = time.Millisecond
	callLength    = 172 // 20 ms of G.711 with its RTP header (RFC 3551)
	callPort      = 5390
	responsePort  = 5443
	loadStreams   = 4
)

const (
	// margin is how long the load runs before probes begin, and after they should
	// have ended.
	margin = time.Second / 2
	// filled is the number of bytes after which TCP counts as running.
	filled = 1 << 20
	// leastSent is the share of its packets that a series has to send before the load
	// ends. Otherwise it does not count.
	leastSent = 0.5
)

// latency measures round trips on an idle line. Then it measures round trips and one-way
// delays of datagrams while TCP fills the line.
func (l *ladder) latency(ctx context.Context, s spot) error {
	n := l.line(s, 0)
	count := min(int(time.Duration(l.options.Seconds)*time.Second/probeInterval), 1<<16)
	echo := probe.Echo{From: n.near(), Source: n.from, To: n.to, Interval: probeInterval, Count: count}
	idle, err := echo.Run(ctx)
	if err != nil {
		return err
	}
	call := probe.OneWay{From: n.near(), To: n.far(), Source: n.from, Target: netip.AddrPortFrom(n.to, callPort),
		Interval: probeInterval, Count: count, Length: callLength}
	var loaded, oneWay *probe.Delays
	err = l.whileFull(ctx, s, func(until time.Time) error {
		echo.Until, call.Until = until, until
		var both errgroup.Group
		both.Go(func() (err error) { loaded, err = echo.Run(ctx); return err })
		both.Go(func() (err error) { oneWay, err = call.Run(ctx); return err })
		return both.Wait()
	})
	if err != nil {
		return fmt.Errorf("while TCP fills the line: %w", err)
	}
	f := &l.figures
	f.idle[s] = append(f.idle[s], idle)
	if least := leastSent * float64(count); float64(loaded.Sent) < least || float64(oneWay.Sent) < least {
		f.cut[s]++
		return nil
	}
	f.loaded[s], f.oneWay[s] = append(f.loaded[s], loaded), append(f.oneWay[s], oneWay)
	return nil
}

// whileFull fills a line with TCP and calls f when it is full. The load lasts at least
// until the time given to f, because iperf3's time begins with its first byte.
func (l *ladder) whileFull(ctx context.Context, s spot, f func(until time.Time) error) error {
	n, load := l.line(s, 0), l.load(s, 0, loadStreams)
	load.Time += 2 * margin
	before, err := n.sent()
	if err != nil {
		return err
	}
	begun := make(chan time.Time, 1)
	var running errgroup.Group
	ended := make(chan struct{})
	running.Go(func() error {
		defer close(ended)
		return l.watch(scene{s, PartLatency, 0}, load.Time, l.atServer(s), func(watch func()) error {
			load.Begun = func() { begun <- time.Now(); watch() }
			_, err := l.tool.Run(ctx, load)
			return err
		})
	})
	select {
	case at := <-begun:
		if err = n.awaitSent(ctx, before+filled, ended); err == nil {
			time.Sleep(margin)
			err = f(at.Add(load.Time))
		}
	case <-ended:
	}
	return errors.Join(err, running.Wait())
}

// awaitSent waits until the client's host has sent a number of bytes in total, or until
// the sender has ended.
func (n line) awaitSent(ctx context.Context, bytes uint64, ended <-chan struct{}) error {
	for {
		now, err := n.sent()
		if err != nil || now >= bytes {
			return err
		}
		select {
		case <-ended:
			return fmt.Errorf("the load ended before the line was full: %d bytes were sent, %d are wanted", now, bytes)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// sent returns the number of bytes sent by all devices of the client's host, loopback
// included.
func (n line) sent() (total uint64, err error) {
	err = n.lab.Do(n.client, func() error {
		p, err := procfs.NewFS("/proc/thread-self")
		if err != nil {
			return fmt.Errorf("read what was sent: %w", err)
		}
		devices, err := p.NetDev()
		if err != nil {
			return fmt.Errorf("read what was sent: %w", err)
		}
		total = devices.Total().TxBytes
		return nil
	})
	return total, err
}

// partOf returns the name of a direction of responsiveness.
func partOf(up bool) string {
	return PartRPM + map[bool]string{false: " download", true: " upload"}[up]
}

// receiver returns the host that data arrives at.
func receiver(n line, up bool) string {
	if up {
		return n.server
	}
	return n.client
}

// intervals is the number of intervals in a run of responsiveness: enough for all
// connections to carry load (16) and for four stable values after that.
const intervals = 20

// responsiveness measures round-trips per minute in both directions, one after the other.
// The intervals are shorter than the draft's, because no queue of a lab takes a second to
// fill.
func (l *ladder) responsiveness(ctx context.Context, s spot) error {
	n := l.line(s, 0)
	seconds := time.Duration(l.options.Seconds) * time.Second
	for i, up := range []bool{false, true} {
		r := probe.Responsiveness{Client: n.near(), Server: n.far(), Source: n.from,
			Address: netip.AddrPortFrom(n.to, uint16(responsePort+i)), Up: up, Interval: seconds / intervals, Most: seconds}
		var found *probe.RPM
		err := l.watch(scene{s, partOf(up), 0}, 0, []onlooker{{receiver(n, up), "arriving"}}, func(begun func()) (err error) {
			begun()
			found, err = r.Run(ctx)
			return err
		})
		if errors.Is(err, probe.ErrUnanswered) {
			l.figures.silent[s]++
			continue
		}
		if err != nil {
			return err
		}
		d := direction{s, up}
		l.figures.respond[d] = append(l.figures.respond[d], found)
	}
	return nil
}
