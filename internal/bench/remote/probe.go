package remote

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/stats"
)

// probeEvery is how often the client asks for an echo: rarely enough to be no
// load, often enough for a 99th percentile of a run of three seconds.
const probeEvery = 5 * time.Millisecond

// probeLate is how long an echo is waited for after the last probe. One that
// takes longer counts as lost.
const probeLate = time.Second

// prober measures round-trip times over its own UDP flow.
type prober struct {
	conn *net.UDPConn
	tag  [tagLen]byte
	next uint32
}

// measure sends probes until ctx ends, and gives the round-trip times in
// milliseconds and how many probes had no echo.
func (p *prober) measure(ctx context.Context) (rtts stats.Sample, lost int, err error) {
	begun, first := time.Now(), p.next
	var all sync.WaitGroup
	var reading error
	if err := p.conn.SetReadDeadline(time.Time{}); err != nil {
		return nil, 0, err
	}
	var answered atomic.Int64
	all.Go(func() { rtts, reading = p.read(begun, first, &answered) })
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for ctx.Err() == nil && err == nil {
		d := datagram{kind: kindProbe, tag: p.tag, number: p.next, sent: uint64(time.Since(begun))}
		if _, err = p.conn.Write(d.append(nil)); passing(err) {
			err = nil
		}
		p.next++
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	for end := time.Now().Add(probeLate); err == nil && answered.Load() < int64(p.next-first) && time.Now().Before(end); {
		time.Sleep(probeEvery)
	}
	err = errors.Join(err, p.conn.SetReadDeadline(time.Now()))
	all.Wait()
	return rtts, int(p.next-first) - len(rtts), errors.Join(err, reading)
}

// read takes echoes of this measurement, each once, until the deadline.
func (p *prober) read(begun time.Time, first uint32, answered *atomic.Int64) (rtts stats.Sample, err error) {
	seen := map[uint32]bool{}
	buffer := make([]byte, probeLen+1)
	for {
		n, err := p.conn.Read(buffer)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return rtts, nil
		case err != nil && passing(err):
			continue
		case err != nil:
			return rtts, err
		}
		now := time.Since(begun)
		d, err := parseDatagram(buffer[:n])
		if err != nil || d.kind != kindEcho || d.tag != p.tag || d.number-first >= 1<<31 || seen[d.number] {
			continue
		}
		took := now - time.Duration(d.sent)
		if took <= 0 || took > now {
			continue // it was not sent in this measurement
		}
		seen[d.number] = true
		rtts = append(rtts, took.Seconds()*1e3)
		answered.Add(1)
	}
}
