package iperf

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Result is what one iperf3 client measured, or several together.
type Result struct {
	Version    string  // as iperf3 says it: "3.12"; "" where it does not
	Protocol   string  // TCP or UDP
	Streams    int     // connections
	Seconds    float64 // of traffic
	Sent       float64 // bytes that left the sender
	Received   float64 // bytes that arrived
	Rate       float64 // bits per second that arrived
	HostCPU    float64 // per cent of one core that the client's process took
	RemoteCPU  float64 // per cent of one core that the server's took
	Congestion string  // the sender's TCP congestion control; "" where iperf3 does not say
	// Retransmits are TCP segments sent again; -1 where the sender's system does
	// not count them.
	Retransmits int
	// UDP alone: datagrams sent and lost, and the jitter of RFC 3550 in
	// milliseconds as the receiver saw it.
	Packets, Lost, Reordered int
	Jitter                   float64
	// Back is the way from the server where both directions were measured at
	// once. Its CPU times are those of both; nil: there was one direction.
	Back *Result
}

// ToolError is what iperf3 itself said was wrong. In its JSON form it says so
// there and not by its exit status.
type ToolError struct{ Text string }

func (e *ToolError) Error() string { return "iperf3: " + e.Text }

// errNoResult says that a test ended without a sum.
var errNoResult = errors.New("iperf3 gave no sum of what was transferred")

// output is the part of iperf3's JSON that is used. Versions differ in what
// else there is, and in which of the sums they have.
type output struct {
	Error string `json:"error"`
	Start struct {
		Version string `json:"version"`
		Test    struct {
			Protocol string `json:"protocol"`
			Streams  int    `json:"num_streams"`
			Reverse  int    `json:"reverse"`
		} `json:"test_start"`
	} `json:"start"`
	End struct {
		sums
		BackSum      *sum `json:"sum_bidir_reverse"`
		BackSent     *sum `json:"sum_sent_bidir_reverse"`
		BackReceived *sum `json:"sum_received_bidir_reverse"`
		Streams      []struct {
			UDP struct {
				Reordered int  `json:"out_of_order"`
				Sender    bool `json:"sender"`
			} `json:"udp"`
		} `json:"streams"`
		CPU struct {
			Host   float64 `json:"host_total"`
			Remote float64 `json:"remote_total"`
		} `json:"cpu_utilization_percent"`
		Congestion string `json:"sender_tcp_congestion"`
	} `json:"end"`
}

// sums are those of one direction.
type sums struct {
	Sum      *sum `json:"sum"` // UDP
	Sent     *sum `json:"sum_sent"`
	Received *sum `json:"sum_received"`
}

// sum is one of the sums over all streams.
type sum struct {
	Seconds     float64 `json:"seconds"`
	Bytes       float64 `json:"bytes"`
	Rate        float64 `json:"bits_per_second"`
	Retransmits *int    `json:"retransmits"`
	Jitter      float64 `json:"jitter_ms"`
	Lost        int     `json:"lost_packets"`
	Packets     int     `json:"packets"`
	LostShare   float64 `json:"lost_percent"`
}

// Parse reads what "iperf3 -c … -J" wrote. The error is a [*ToolError] where
// iperf3 says that something went wrong, whatever else it wrote.
func Parse(text []byte) (*Result, error) {
	var o output
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, fmt.Errorf("read iperf3's output: %w", err)
	}
	if o.Error != "" {
		return nil, &ToolError{strings.TrimPrefix(o.Error, "error - ")}
	}
	r := &Result{
		Version: strings.TrimPrefix(o.Start.Version, "iperf "), Protocol: o.Start.Test.Protocol, Streams: o.Start.Test.Streams,
		HostCPU: o.End.CPU.Host, RemoteCPU: o.End.CPU.Remote, Congestion: o.End.Congestion, Retransmits: -1,
	}
	if back := (sums{o.End.BackSum, o.End.BackSent, o.End.BackReceived}); back.Received != nil || back.Sum != nil {
		r.Back = &Result{Version: r.Version, Protocol: r.Protocol, Streams: r.Streams, Retransmits: -1}
		if err := r.Back.add(&back); err != nil {
			return nil, err
		}
	}
	for _, s := range o.End.Streams {
		if r.Back != nil && !s.UDP.Sender {
			r.Back.Reordered += s.UDP.Reordered
			continue
		}
		r.Reordered += s.UDP.Reordered
	}
	return r, r.add(&o.End.sums)
}

// Series are the rates of the intervals that count, in bit/s: those of the
// test's direction, and those of the way back where both were measured at once.
func Series(text []byte) (ahead, back []float64) {
	type rate struct {
		Rate    float64 `json:"bits_per_second"`
		Omitted bool    `json:"omitted"`
	}
	var v struct {
		Intervals []struct {
			Sum  rate  `json:"sum"`
			Back *rate `json:"sum_bidir_reverse"`
		} `json:"intervals"`
	}
	if json.Unmarshal(text, &v) != nil {
		return nil, nil
	}
	for _, i := range v.Intervals {
		if i.Sum.Omitted {
			continue
		}
		ahead = append(ahead, i.Sum.Rate)
		if i.Back != nil {
			back = append(back, i.Back.Rate)
		}
	}
	return ahead, back
}

func (r *Result) add(s *sums) error {
	if r.Protocol == "UDP" {
		return r.addUDP(s)
	}
	return r.addTCP(s)
}

func (r *Result) addTCP(s *sums) error {
	if s.Sent == nil || s.Received == nil || s.Received.Seconds <= 0 {
		return errNoResult
	}
	r.Sent, r.Received, r.Rate, r.Seconds = s.Sent.Bytes, s.Received.Bytes, s.Received.Rate, s.Received.Seconds
	if s.Sent.Retransmits != nil {
		r.Retransmits = *s.Sent.Retransmits
	}
	return nil
}

// addUDP takes the receiver's sum where there is one. Older versions have one
// sum only: the sender's bytes and rate with the receiver's loss.
func (r *Result) addUDP(all *sums) error {
	s := all.Sum
	if s == nil {
		s = all.Received
	}
	if s == nil || s.Seconds <= 0 {
		return errNoResult
	}
	r.Packets, r.Lost, r.Jitter, r.Seconds = s.Packets, s.Lost, s.Jitter, s.Seconds
	r.Sent = s.Bytes
	if all.Sent != nil {
		r.Sent = all.Sent.Bytes
	}
	if got := all.Received; got != nil && got.Bytes > 0 {
		r.Received, r.Rate = got.Bytes, got.Rate
		return nil
	}
	arrived := 1 - s.LostShare/100
	r.Received, r.Rate = s.Bytes*arrived, s.Rate*arrived
	return nil
}

// Total adds up what several clients measured at the same time.
func Total(parts []*Result) *Result {
	if len(parts) == 0 {
		return &Result{Retransmits: -1}
	}
	t := &Result{Version: parts[0].Version, Protocol: parts[0].Protocol, Congestion: parts[0].Congestion}
	for _, p := range parts {
		t.Streams += p.Streams
		t.Seconds = max(t.Seconds, p.Seconds)
		t.Sent, t.Received, t.Rate = t.Sent+p.Sent, t.Received+p.Received, t.Rate+p.Rate
		t.HostCPU, t.RemoteCPU = t.HostCPU+p.HostCPU, t.RemoteCPU+p.RemoteCPU
		t.Packets, t.Lost, t.Jitter = t.Packets+p.Packets, t.Lost+p.Lost, max(t.Jitter, p.Jitter)
		if p.Retransmits < 0 || t.Retransmits < 0 {
			t.Retransmits = -1
			continue
		}
		t.Retransmits += p.Retransmits
	}
	return t
}
