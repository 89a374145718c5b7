package dataplane

import (
	"math/bits"
	"path/filepath"

	"weir/internal/fw/bpfload"
)

// What bpf/config.h says of round-trip times.
const (
	queueRTTBuckets = 176
	queueRTTMS      = 8192 // of one part of the samples
	queueTrips      = 4096 // slots
)

// A QueueRTT is the round-trip times of a class's TCP segments in the last 8 to 16 seconds: from
// where weir sees a segment with data until its acknowledgement comes back, in whole milliseconds.
type QueueRTT struct {
	Samples uint64  `json:"samples"`
	Median  float64 `json:"median_ms"`
	P99     float64 `json:"p99_ms"`

	counts [queueRTTBuckets]uint64
}

// Add adds the samples of another class.
func (r *QueueRTT) Add(other *QueueRTT) {
	for i, n := range other.counts {
		r.counts[i] += n
	}
	r.settle()
}

// Count counts a sample of so many milliseconds.
func (r *QueueRTT) Count(ms uint32) {
	r.counts[queueRTTBucketOf(ms)]++
	r.settle()
}

// settle computes what is shown.
func (r *QueueRTT) settle() {
	r.Samples = 0
	for _, n := range r.counts {
		r.Samples += n
	}
	r.Median, r.P99 = r.below(0.5), r.below(0.99)
}

// below returns the milliseconds below which this part of the samples is.
func (r *QueueRTT) below(part float64) float64 {
	rank := part * float64(r.Samples)
	for i, n := range r.counts {
		if n == 0 || rank > float64(n) {
			rank -= float64(n)
			continue
		}
		least, most := queueRTTBucket(i), queueRTTBucket(i+1)-1
		return float64(least) + float64(most-least)*rank/float64(n)
	}
	return 0
}

// queueRTTBucket returns the least milliseconds of a bucket (queue_rtt_bucket in bpf/queue/trip.h).
func queueRTTBucket(i int) int {
	if i < 16 {
		return i
	}
	return (16 + i%16) << (i/16 - 1)
}

// queueRTTBucketOf is the inverse.
func queueRTTBucketOf(ms uint32) int {
	ms = min(ms, 16383)
	if ms < 16 {
		return int(ms)
	}
	e := bits.Len32(ms) - 1
	return 16*(e-3) + int(ms>>(e-4)&15)
}

// readQueueRTTs reads the round-trip times of classes. now is the timer's millisecond.
func readQueueRTTs(dir string, classes []QueueClass, now uint32) error {
	m, err := bpfload.OpenMap(filepath.Join(dir, pinName(mapQueueRTTs)))
	if isMissing(err) { // an earlier version has loaded the queues
		return nil
	}
	if err != nil {
		return err
	}
	defer m.Close()
	if err := checkLayout(mapQueueRTTs, m); err != nil {
		return err
	}
	return changeArray(m, func(raw []xdpQueueRtt) {
		for i := range min(len(classes), len(raw)-1) {
			classes[i].RTT = queueRTTOf(&raw[i+1], now)
		}
	})
}

func queueRTTOf(raw *xdpQueueRtt, now uint32) (r QueueRTT) {
	for _, part := range raw.Part {
		if now/queueRTTMS-part.Window > 1 { // of before
			continue
		}
		for i, n := range part.Counts {
			r.counts[i] += uint64(n)
		}
	}
	r.settle()
	return r
}
