package iperf

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Result is the result of one iperf3 client, or of several together.
type Result struct {
	Version    string  // iperf3's version: "3.12"; "": unknown
	Protocol   string  // TCP or UDP
	Streams    int     // connections
	Seconds    float64 // length of the traffic
	Sent       float64 // bytes that left the sender
	Received   float64 // bytes that arrived
	Rate       float64 // bits per second that arrived
	HostCPU    float64 // per cent of one core that the client's process used
	RemoteCPU  float64 // per cent of one core that the server's process used
	Congestion string  // the sender's TCP congestion control; "": unknown
	// Retransmits are TCP segments sent again. -1 means that the sender's system does
	// not count them.
	Retransmits int
	// UDP only: datagrams sent and lost, and RFC 3550's jitter in milliseconds,
	// measured by the receiver.
	Packets, Lost, Reordered int
	Jitter                   float64
	// Back is the direction from the server if both were measured at once, else nil.
	// Its CPU times are those of both directions.
	Back *Result
}

// CPU returns the core seconds that both processes took.
func (r *Result) CPU() float64 { return (r.HostCPU + r.RemoteCPU) / 100 * r.Seconds }

// ToolError is an error that iperf3 reports. In JSON output the error is in the text and
// not in the exit status.
type ToolError struct{ Text string }

func (e *ToolError) Error() string { return "iperf3: " + e.Text }

// errNoResult says that a test ended without a sum.
var errNoResult = errors.New("iperf3 gave no sum of what was transferred")

// output is the part of iperf3's JSON that is used. Versions differ in the rest, and in
// which sums they have.
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

// sums are the sums of one direction.
type sums struct {
	Sum      *sum `json:"sum"` // UDP
	Sent     *sum `json:"sum_sent"`
	Received *sum `json:"sum_received"`
}

// sum is a sum over all streams.
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

// Parse reads the output of "iperf3 -c … -J". The error is a [*ToolError] if iperf3
// reports one, whatever else it wrote.
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

// Series returns the rates of the intervals that count, in bit/s: those of the test's
// direction, and those of the way back if both were measured at once.
func Series(text []byte) (forward, reverse []float64) {
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
		forward = append(forward, i.Sum.Rate)
		if i.Back != nil {
			reverse = append(reverse, i.Back.Rate)
		}
	}
	return forward, reverse
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

// addUDP uses the receiver's sum if there is one. Older versions have only one sum: the
// sender's bytes and rate with the receiver's loss.
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

// Total adds the results of clients that ran at the same time.
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
