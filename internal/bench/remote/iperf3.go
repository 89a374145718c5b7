package remote

import (
	"context"
	"fmt"
	"time"

	"weir/internal/bench/iperf"
)

const (
	// IPerf3Port is the port of a stock iperf3 server.
	IPerf3Port = 5201
	// iperf3Slack is how long iperf3 may take beyond its time, to connect, end and
	// exchange results.
	iperf3Slack = 10 * time.Second
	// keptUp is the share of the due datagrams that a sender has to send.
	keptUp = 0.97
)

// direction is one direction of a run as iperf3 measured it. UDP rates count whole frames.
type direction struct {
	iperf.Result
	Series []float64 // bit/s of each interval, as the client's iperf3 measured
	Held   bool      // the sender did not keep up with the rate
}

func (d *direction) rate() float64 { return d.Rate }

// loss returns the share of UDP datagrams that did not arrive, in per cent.
func (d *direction) loss() float64 { return 100 * float64(max(d.Lost, 0)) / float64(max(d.Packets, 1)) }

func (d *direction) jitter() float64 { return 1e3 * d.Jitter } // µs

func (d *direction) again() float64 { return float64(max(d.Retransmits, 0)) }

// traffic runs the client's iperf3 and stores its results.
func (r *result) traffic(ctx context.Context, tool *iperf.Tool, host string, port uint16) error {
	run := &r.granted
	got, series, err := tool.Measure(ctx, run.load(host), port, run.time()+iperf3Slack)
	switch {
	case ctx.Err() != nil:
		return err
	case err != nil:
		return fmt.Errorf("%s", plain(err.Error()))
	}
	r.up = run.direction(got, series[0])
	switch run.Direction {
	case Down:
		r.up, r.down = nil, r.up
	case Both:
		r.down = run.direction(got.Back, series[1])
	}
	r.process, r.remote = got.HostCPU/100*got.Seconds, got.RemoteCPU/100*got.Seconds
	r.full = fullEnds(got, tool.Version.Threads())
	return nil
}

// framed is the share of bytes on the wire for each of payload, which iperf3 counts.
func (r *Run) framed() float64 {
	if r.Protocol == UDP {
		return float64(r.Frame) / float64(r.Payload)
	}
	return 1
}

// direction converts iperf3's counts of payload to whole frames.
func (r *Run) direction(got *iperf.Result, series []float64) *direction {
	d := &direction{Result: *got, Series: series}
	d.Rate, d.Received = d.Rate*r.framed(), d.Received*r.framed()
	for i := range series {
		series[i] *= r.framed()
	}
	d.Held = r.Protocol == UDP && float64(got.Packets*r.Frame)*8 < keptUp*float64(r.Rate)*got.Seconds
	return d
}

// load returns what the client's iperf3 does in a run.
func (r *Run) load(host string) *iperf.Load {
	return &iperf.Load{
		Pair: iperf.Pair{Address: host}, Streams: r.Connections, Time: r.Count, Omit: r.Omit, UDP: r.Protocol == UDP, Length: r.Payload,
		Rate: float64(r.Rate) / r.framed(), Reverse: r.Direction == Down, Both: r.Direction == Both,
		Interval: max(250*time.Millisecond, r.time()/100),
	}
}

// fullEnds returns the ends whose iperf3 used all the time it can: that of one core, or
// of one for each stream. It assumes that the other side has our version.
func fullEnds(got *iperf.Result, threads bool) []string {
	cores := 1
	if threads {
		cores = max(got.Streams, 1)
	}
	var full []string
	for end, percent := range map[string]float64{"here": got.HostCPU, "there": got.RemoteCPU} {
		if percent >= 100*coreFull*float64(cores) {
			full = append(full, "iperf3 "+end+", which took all the time of its core")
		}
	}
	return full
}
