package probe

import (
	"math"

	"weir/internal/stats"
)

// Place runs a function on a thread in a host's network namespace. Sockets that the
// function opens stay in that namespace.
type Place func(func() error) error

// Here is the namespace of this process.
func Here(f func() error) error { return f() }

// Delays are the delays of a series of packets.
type Delays struct {
	// Millis are the delays in milliseconds, in the order of sending. Lost packets
	// are left out.
	Millis stats.Sample
	Sent   int
	Lost   int
	// Jitter is the smoothed variation in milliseconds (RFC 3550, 6.4.1) at the end
	// of the series. Variation is the difference from each packet to the next one
	// that arrived (RFC 3393, without its sign).
	Jitter    float64
	Variation stats.Sample
}

// Quantiles returns the quantiles that reports show: the median, one packet in a hundred,
// and one in a thousand.
func (d *Delays) Quantiles() (p50, p99, p999 float64) {
	return d.Millis.Quantile(0.5), d.Millis.Quantile(0.99), d.Millis.Quantile(0.999)
}

// LostShare returns the share of packets that did not arrive, 0 to 1.
func (d *Delays) LostShare() float64 {
	if d.Sent == 0 {
		return 0
	}
	return float64(d.Lost) / float64(d.Sent)
}

// never marks a packet that did not arrive.
const never = 0

// delays evaluates times of sending and arrival in nanoseconds of one clock. [never]
// marks a packet that did not arrive.
func delays(sent, arrived []int64) *Delays {
	d := &Delays{Sent: len(sent)}
	for i, from := range sent {
		if arrived[i] == never {
			d.Lost++
			continue
		}
		d.Millis = append(d.Millis, float64(arrived[i]-from)/1e6)
	}
	for i := 1; i < len(d.Millis); i++ {
		d.Variation = append(d.Variation, math.Abs(d.Millis[i]-d.Millis[i-1]))
	}
	for _, v := range d.Variation {
		d.Jitter += (v - d.Jitter) / 16
	}
	return d
}

// Join merges the delays of several series of the same thing. Its jitter is the median of
// theirs.
func Join(parts []*Delays) *Delays {
	all := &Delays{}
	var jitter stats.Sample
	for _, p := range parts {
		all.Millis, all.Variation = append(all.Millis, p.Millis...), append(all.Variation, p.Variation...)
		all.Sent, all.Lost = all.Sent+p.Sent, all.Lost+p.Lost
		jitter = append(jitter, p.Jitter)
	}
	if len(jitter) > 0 {
		all.Jitter = jitter.Median()
	}
	return all
}
